// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/clock_follower.hpp"

#include <memory>
#include <utility>

#include <fmt/format.h>

#include "rheo/plan/pipeline_schedule.hpp"

namespace rheo::inline v0 {

result<chosen_clocks> clock_follower::clocks_for(plan const& whole, bool is_recovery)
{
    auto const before = frontiers_->made_at_once();
    auto const start = clock_.now();
    auto chosen = frontiers_->choose(whole, slow_ranks(stragglers_));
    if (auto const made = frontiers_->made_at_once() - before; is_recovery && made > 0) {
        record_->note(fmt::format("of {} frontiers of clocks {} had not been precomputed; that took {:.3g} ms", whole.pipelines.size(), made,
                                  in_milliseconds(clock_.since(start))));
    }
    return chosen;
}

void clock_follower::choose(plan const& whole, rank_id self, bool is_recovery, bool is_quiet)
{
    are_chosen_ = true;
    auto const chosen = clocks_for(whole, is_recovery);
    chosen_ = chosen ? *chosen : chosen_clocks{};
    carried_.clear();
    if (auto const place = position_of(whole, self); chosen && place.found) {
        auto const position = static_cast<std::size_t>(place.position);
        auto const& clocks = chosen_.clocks[at(place.pipeline)][position];
        carried_ = highest_clocks(schedule_of(whole, at(place.pipeline)).compute.rows[position], clocks, stage_count(whole.pipelines[at(place.pipeline)].cuts));
    }
    auto message = chosen ? fmt::format("clocks for a step of {:.6g} s: {:.6g} J, {:.1f} % less than at the highest ones", chosen_.time.count,
                                        chosen_.energy.count, 100.0 * (1.0 - chosen_.energy / chosen_.at_highest))
                          : "all clocks are the highest: " + chosen.error();
    for (auto const& s : slow_ranks(stragglers_)) {
        message += fmt::format("; rank {} takes {:.2f} times as long", s.rank.value, s.factor);
    }
    if (message != noted_ && !is_quiet) {
        record_->note(message);
        noted_ = std::move(message);
    }
}

std::span<megahertz const> clock_follower::carried_to(std::vector<instruction> const& row, int stages)
{
    carried_row_ = carried_clocks(carried_, row, stages);
    return carried_row_;
}

void clock_follower::precompute(contingency_plans plans)
{
    are_precomputed_ = true;
    auto shared = std::make_shared<contingency_plans>(std::move(plans));
    frontiers_->precompute([shared = std::move(shared)] { return shared->next(); });
}

void clock_follower::report_precomputed(bool is_reporter)
{
    if (!follows()) {
        return;
    }
    if (auto const done = frontiers_->take_precomputed(); done && is_reporter) {
        record_->note(
            fmt::format("clocks precomputed for {} plans after losses: {} frontiers in {:.3g} ms", done->plans, done->frontiers, in_milliseconds(done->took)));
    }
}

bool clock_follower::observe_slowness(std::span<rank_id const> members, std::span<double const> slowness, straggler_rule rule)
{
    if (!follows() || !observe(stragglers_, members, slowness, rule)) {
        return false;
    }
    are_chosen_ = false;
    return true;
}

}  // namespace rheo::inline v0
