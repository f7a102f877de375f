#pragma once
// SPDX-License-Identifier: Apache-2.0

// Energy between the updates of a counter. Devices update theirs every 20 to 100 ms, computations are shorter; so
// between updates the power of the last interval continues, for at most as long as that interval was: a counter that
// stands still for longer gives nothing to extrapolate. The estimate never falls: where it ran ahead of
// the counter it waits. A value without a clock of its own: it is given the time.

#include "rheo/units/units.hpp"

namespace rheo::inline v0::power {

/// A counter of a given width that begins again at zero, as one that does not. Seen less often than it wraps, it loses whole turns.
struct unwrapped_counter {
    double range = 0.0;  ///< the counter runs from 0 to this, and then begins again; 0: it never does
    double last = 0.0;
    double turns = 0.0;  ///< what all turns so far add up to
    bool begun = false;

    /// @return the count as if it had never begun again
    constexpr double take(double count)
    {
        if (begun && count < last) {
            turns += range > 0.0 ? range : last;  // without a known range the device was reset: it resumes from there
        }
        begun = true;
        last = count;
        return turns + count;
    }
};

class energy_meter {
public:
    /// Takes note of what the counter says. @pre times do not fall
    constexpr void observe(seconds now, joules counter)
    {
        if (updates_ > 0 && counter == counter_) {
            return;
        }
        if (updates_ > 0) {
            interval_ = now - at_;
            power_ = interval_ > seconds{} && counter > counter_ ? (counter - counter_) / interval_ : watts{};
        }
        counter_ = counter;
        at_ = now;
        updates_ += 1;
    }

    /// The energy at a time: no less than the counter, and than any earlier answer. @pre something was looked at, and not after now
    constexpr joules at(seconds now)
    {
        auto const passed = now - at_ < interval_ ? now - at_ : interval_;
        auto const estimate = counter_ + power_ * (passed > seconds{} ? passed : seconds{});
        reported_ = estimate > reported_ || !has_reported_ ? estimate : reported_;
        has_reported_ = true;
        return reported_;
    }

    /// The power of the last interval; none before two updates were seen.
    constexpr watts power() const { return power_; }
    constexpr bool begun() const { return updates_ > 0; }

private:
    joules counter_{};
    seconds at_{};
    seconds interval_{};
    watts power_{};
    int updates_ = 0;
    joules reported_{};
    bool has_reported_ = false;
};

}  // namespace rheo::inline v0::power
