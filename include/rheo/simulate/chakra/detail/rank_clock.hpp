#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the time of a rank is: it computes, or else it communicates, or else it is idle.

#include "rheo/simulate/chakra/played_traces.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class Time>
class rank_clock {
public:
    void compute(Time now, int more) { change(now, computing_, more); }
    void communicate(Time now, int more) { change(now, communicating_, more); }
    void end_step(Time now) { times_.end = now; }

    played_rank<Time> const& times() const { return times_; }

private:
    void change(Time now, int& count, int more)
    {
        if (computing_ > 0) {
            times_.busy += now - since_;
        } else if (communicating_ > 0) {
            times_.exposed += now - since_;
        }
        since_ = now;
        count += more;
    }

    played_rank<Time> times_;
    Time since_{};
    int computing_ = 0;
    int communicating_ = 0;
};

}  // namespace detail
}  // namespace rheo::inline v0
