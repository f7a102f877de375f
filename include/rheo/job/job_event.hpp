#pragma once
// SPDX-License-Identifier: Apache-2.0

// What happens to the ranks of a job: they are lost, return, are drained, they or their links become slow and recover.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

enum class job_event_kind : std::uint8_t {
    lose,
    rejoin,  ///< "return" in files
    drain,   ///< leaves at the end of the step, with its state until then
    slow,    ///< computations take `value` times as long, from the next step on
    well,    ///< computations and links are as described again
    link,    ///< bytes take `value` times as long on its links, from the next step on
};

inline constexpr std::array<std::string_view, 6> job_event_names{"lose", "return", "drain", "slow", "well", "link"};

constexpr std::string_view name_of(job_event_kind kind) { return job_event_names[static_cast<std::size_t>(kind)]; }

struct job_event {
    whole_nanoseconds at;
    job_event_kind kind;
    rank_id first;  ///< of the ranks to which it happens
    rank_id last;
    double value = 1.0;  ///< of slow and link

    friend constexpr bool operator==(job_event, job_event) = default;
};

/// The end of time: sums with it fit 64 bits.
inline constexpr whole_nanoseconds latest_job_time{std::int64_t{1} << 62};

/// Which ranks are in the job, event by event. A drained rank has left. An event of a node applies to those of its ranks to which it can.
class rank_presence {
public:
    /// @param all whether the job starts with all ranks, or with none
    rank_presence(int ranks, bool all) : present_(static_cast<std::size_t>(ranks), all) {}

    bool operator[](rank_id rank) const { return present_[at(rank)]; }

    /// Applies the next event. @returns what is wrong with it, to be appended to its file and line; empty if nothing is
    template <class OnlyWhenCalled = void>
    std::string take(job_event const& event)
    {
        if (event.at < last_) {
            return "time " + seconds_text(event.at) + " s is before that of the event before it, " + seconds_text(last_) +
                   " s; events come in the order of time";
        }
        last_ = event.at;
        bool const returns = event.kind == job_event_kind::rejoin;
        bool happens = false;
        for (auto rank = event.first; rank <= event.last; ++rank) {
            if (rank.value < 0 || at(rank) >= present_.size()) {
                return "rank " + std::to_string(rank.value) + " does not exist: the job has " + std::to_string(present_.size()) + " ranks";
            }
            happens = happens || present_[at(rank)] != returns;
        }
        if (!happens) {
            bool const is_one = event.first == event.last;
            auto const name =
                is_one ? "rank " + std::to_string(event.first.value) : "ranks " + std::to_string(event.first.value) + " to " + std::to_string(event.last.value);
            return returns ? name + (is_one ? " returns but has not left" : " return but have not left") + "; expected ranks that were lost or drained"
                           : name + (is_one ? " has" : " have") + " already left; expected ranks that are in the job";
        }
        for (auto rank = event.first; rank <= event.last; ++rank) {
            if (returns || event.kind == job_event_kind::lose || event.kind == job_event_kind::drain) {
                present_[at(rank)] = returns;
            }
        }
        return {};
    }

private:
    static std::string seconds_text(whole_nanoseconds time)
    {
        auto text = std::to_string(time.count / 1'000'000'000);
        auto rest = std::to_string(time.count % 1'000'000'000 + 1'000'000'000).substr(1);
        rest.erase(rest.find_last_not_of('0') + 1);
        return rest.empty() ? text : text + '.' + rest;
    }

    std::vector<bool> present_;
    whole_nanoseconds last_{};
};

}  // namespace rheo::inline v0
