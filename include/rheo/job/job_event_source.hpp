#pragma once
// SPDX-License-Identifier: Apache-2.0

// Events of a job one after the other: from a list, and losses of nodes at random. Random times are a function of seed, node and how often the node was
// lost, so that the same seed gives the same events whatever the job does meanwhile.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "rheo/job/job_event.hpp"
#include "rheo/tensor/random.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Nodes that are lost independently of each other, with exponential times between losses.
struct random_losses {
    seconds mtbf;                     ///< of a node, while it is in the job
    std::optional<seconds> repair{};  ///< after which a node returns; none: never
    std::uint64_t seed = 0;
    int ranks = 0;
    int node_size = 1;
};

class job_event_source {
public:
    /// @param listed in the order of time
    template <class OnlyWhenCalled = void>
    explicit job_event_source(std::vector<job_event> listed = {}, std::optional<random_losses> random = {}) : listed_{std::move(listed)}, random_{random}
    {
        for (std::int32_t node = 0; random_ && node * random_->node_size < random_->ranks; ++node) {
            push_loss(node, {}, 0);
        }
    }

    /// The next event, if any. Of events at the same time, listed ones come first.
    std::optional<job_event> next() const
    {
        bool const has_listed = at_ < listed_.size();
        if (coming_.empty() || (has_listed && listed_[at_].at <= coming_.top().at)) {
            return has_listed ? std::optional{listed_[at_]} : std::nullopt;
        }
        auto const& c = coming_.top();
        auto const first = c.node * random_->node_size;
        auto const last = std::min(first + random_->node_size, random_->ranks) - 1;
        return job_event{c.at, c.returns ? job_event_kind::rejoin : job_event_kind::lose, rank_id{first}, rank_id{last}};
    }

    /// Removes that event. @pre there is one
    template <class OnlyWhenCalled = void>
    void pop()
    {
        if (coming_.empty() || (at_ < listed_.size() && listed_[at_].at <= coming_.top().at)) {
            ++at_;
            return;
        }
        auto const c = coming_.top();
        coming_.pop();
        if (c.returns) {
            push_loss(c.node, c.at, c.loss + 1);
        } else if (random_->repair && c.at + whole_time(*random_->repair) <= latest_job_time) {
            coming_.push({c.at + whole_time(*random_->repair), c.node, c.loss, true});
        }
    }

private:
    struct coming {
        whole_nanoseconds at;
        std::int32_t node;
        std::uint32_t loss;  ///< how many the node had before
        bool returns;

        friend bool operator<(coming const& a, coming const& b) { return a.at != b.at ? b.at < a.at : b.node < a.node; }  // the first one on top
    };

    static whole_nanoseconds whole_time(seconds time)
    {
        auto const ns = std::floor(time.count * 1e9);
        return ns < static_cast<double>(latest_job_time.count) ? whole_nanoseconds{static_cast<std::int64_t>(ns)} : latest_job_time;
    }

    template <class OnlyWhenCalled = void>
    void push_loss(std::int32_t node, whole_nanoseconds from, std::uint32_t loss)
    {
        auto const words = philox({static_cast<std::uint32_t>(node), loss, 0x6c6f7373U, 0},
                                  {static_cast<std::uint32_t>(random_->seed), static_cast<std::uint32_t>(random_->seed >> 32)});
        auto const bits = (std::uint64_t{words[0]} << 21) ^ (std::uint64_t{words[1]} >> 11);  // 53 of them
        auto const uniform = (static_cast<double>(bits & ((std::uint64_t{1} << 53) - 1)) + 0.5) * (1.0 / 9007199254740992.0);
        auto const after = whole_time(random_->mtbf * -std::log(uniform));
        if (after.count < latest_job_time.count - from.count) {
            coming_.push({from + after, node, loss, false});
        }
    }

    std::vector<job_event> listed_;
    std::size_t at_ = 0;
    std::optional<random_losses> random_;
    std::priority_queue<coming> coming_;
};

}  // namespace rheo::inline v0
