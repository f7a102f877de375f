#pragma once
// SPDX-License-Identifier: Apache-2.0

// The order in which the ranks of a step begin their reductions, so that a consumer that has one message or collective of a rank under way at a time
// does not hang. Where ranks meet in reductions of several sets of holders, each in the order of its own schedule, A waits for B in one reduction while
// B waits for A in another, or for a message that A sends later.
//
// A logical time orders all ranks alike: forwards and halves of backwards take one unit, whole backwards two, messages nothing. A reduction stands in
// the program of each of its holders where its last holder has posted it by that time. Each rank then begins its messages and reductions in an order in
// which what comes first by logical time never waits for what comes later, so the first that has not ended can always go on. The order follows from the
// programs alone: a plan and a run of it have the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/transport.hpp"
#include "rheo/simulate/chakra/step_programs.hpp"
#include "rheo/trace/chakra/trace_set.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A reduction of a unit over two ranks or more.
struct ordered_reduction {
    reduction_id unit;
    std::uint64_t group = 0;  ///< name of the group of its holders; 0: all ranks of the job
    seconds posted;           ///< logical time of the last holder's post

    friend constexpr bool operator==(ordered_reduction const&, ordered_reduction const&) = default;
};

/// Where a rank stands in a step.
struct executing_row {
    std::size_t pipeline;
    std::size_t position;

    friend constexpr bool operator==(executing_row const&, executing_row const&) = default;
};

struct execution_order {
    std::vector<ordered_reduction> reductions;                            ///< in the order in which every holder begins them
    std::vector<chakra_group> groups;                                     ///< names ascend from 1; that of all ranks is not among them
    std::vector<std::vector<std::vector<std::uint32_t>>> row_reductions;  ///< pipeline -> position -> places in `reductions`
    std::vector<std::vector<std::vector<seconds>>> times;                 ///< of distinct pipelines: position -> logical end of each instruction
    std::vector<std::uint32_t> times_of;                                  ///< pipeline -> place in `times`
    std::vector<std::int32_t> first_item;                                 ///< pipeline -> the lowest item
    std::uint64_t vote = 0;                                               ///< the group of all that take part; 0: all ranks of the job

    array_view<seconds const> times_at(executing_row row) const { return times[times_of[row.pipeline]][row.position]; }
};

namespace detail {

/// The program with items counted from the lowest one: tables of items are as small as the pipeline's work.
template <class OnlyWhenCalled = void>
program from_first_item(program p, std::int32_t& first)
{
    first = INT32_MAX;
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            first = is_reduction(i.kind) ? first : std::min(first, i.item);
        }
    }
    first = first == INT32_MAX ? 0 : first / p.slices * p.slices;
    for (auto& row : p.rows) {
        for (auto& i : row) {
            i.item -= is_reduction(i.kind) ? 0 : first;
        }
    }
    return p;
}

template <class OnlyWhenCalled = void>
std::vector<std::vector<seconds>> logical_times(program const& p)
{
    stage_costs const costs(p.placement.size(), stage_cost{{1.0}, {2.0}, {1.0}, {1.0}, {}, {}});
    auto const line = make_timeline<nonblocking>(array_view{&p, 1}, {{costs}, {}});
    expects(line.sound.ok, "a program that hangs has no execution trace");
    std::vector<std::vector<seconds>> times;
    for (auto const& row : line.rows) {
        auto& of_row = times.emplace_back();
        for (auto const& i : row.instructions) {
            of_row.push_back(i.end);
        }
    }
    return times;
}

/// Makes an execution_order.
template <class OnlyWhenCalled = void>
class execution_orderer {
public:
    explicit execution_orderer(step_programs const& step) : step_{&step} {}

    /// @param ranks of the job
    execution_order order(std::int32_t ranks)
    {
        time_pipelines();
        note_posts();
        name_groups(ranks);
        return std::move(order_);
    }

private:
    struct posted_unit {
        seconds last;
        std::vector<executing_row> holders;
    };

    void time_pipelines()
    {
        std::vector<program> distinct;
        for (auto const& p : step_->programs) {
            std::int32_t first = 0;
            auto shifted = from_first_item(p, first);
            order_.first_item.push_back(first);
            auto const known = std::find(distinct.rbegin(), distinct.rend(), shifted);  // pipelines of one kind follow one another
            auto const place = known == distinct.rend() ? distinct.size() : static_cast<std::size_t>(distinct.rend() - known) - 1;
            order_.times_of.push_back(static_cast<std::uint32_t>(place));
            if (place == distinct.size()) {
                order_.times.push_back(logical_times(shifted));
                distinct.push_back(std::move(shifted));
            }
        }
    }

    void note_posts()
    {
        for (std::size_t p = 0; p < step_->programs.size(); ++p) {
            auto const& rows = step_->programs[p].rows;
            order_.row_reductions.emplace_back(rows.size());
            for (std::size_t r = 0; r < rows.size(); ++r) {
                auto const times = order_.times_at({p, r});
                for (std::size_t k = 0; k < rows[r].size(); ++k) {
                    if (rows[r][k].kind == instruction_kind::post_reduction) {
                        auto const unit = static_cast<std::size_t>(rows[r][k].item);
                        posts_.resize(std::max(posts_.size(), unit + 1));
                        posts_[unit].last = posts_[unit].holders.empty() ? times[k] : std::max(posts_[unit].last, times[k]);
                        posts_[unit].holders.push_back({p, r});
                    }
                }
            }
        }
    }

    void name_groups(std::int32_t ranks)
    {
        auto const all = ranks_of(*step_);
        bool const is_whole = static_cast<std::int32_t>(all.size()) == ranks;
        std::map<std::vector<std::int32_t>, std::uint64_t> names;
        auto const name_of_group = [&](std::vector<std::int32_t> members) -> std::uint64_t {
            std::sort(members.begin(), members.end());
            if (static_cast<std::int32_t>(members.size()) == ranks) {
                return 0;
            }
            auto const [known, is_new] = names.try_emplace(members, names.size() + 1);
            if (is_new) {
                order_.groups.push_back({known->second, std::move(members)});
            }
            return known->second;
        };
        for (std::size_t u = 0; u < posts_.size(); ++u) {
            if (posts_[u].holders.size() > 1) {
                std::vector<std::int32_t> members;
                for (auto const [pipeline, position] : posts_[u].holders) {
                    members.push_back(step_->ranks[pipeline][position].value);
                }
                order_.reductions.push_back({reduction_id{static_cast<std::int32_t>(u)}, name_of_group(std::move(members)), posts_[u].last});
            }
        }
        std::stable_sort(order_.reductions.begin(), order_.reductions.end(), [](auto const& a, auto const& b) { return a.posted < b.posted; });
        for (std::uint32_t n = 0; n < order_.reductions.size(); ++n) {
            for (auto const [pipeline, position] : posts_[at(order_.reductions[n].unit)].holders) {
                order_.row_reductions[pipeline][position].push_back(n);
            }
        }
        if (!is_whole && all.size() > 1) {
            std::vector<std::int32_t> members;
            for (auto const rank : all) {
                members.push_back(rank.value);
            }
            order_.vote = name_of_group(std::move(members));
        }
    }

    step_programs const* step_;
    std::vector<posted_unit> posts_;  // by unit
    execution_order order_;
};

}  // namespace detail

/// The order of a step on a job of so many ranks, of which some may be lost. Cost: linear in the instructions of distinct pipelines, log in the
/// reductions. @pre the programs do not hang
template <class OnlyWhenCalled = void>
execution_order order_execution(step_programs const& step, std::int32_t ranks)
{
    return detail::execution_orderer<>{step}.order(ranks);
}

}  // namespace rheo::inline v0
