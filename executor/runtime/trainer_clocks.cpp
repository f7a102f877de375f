// SPDX-License-Identifier: Apache-2.0
// Clocks of the plan in force, and those that a loss would lead to; who is slow.
#include "runtime/trainer.hpp"

#include <utility>

#include <fmt/format.h>

namespace rheo::inline v0 {

/// The clocks of a whole step of plan_, for those who are slow now. Where there are none the highest are taken.
void trainer::choose_clocks()
{
    if (job_->clocks == nullptr) {
        return;
    }
    auto const slow = slow_ranks(stragglers_);
    chosen_ = job_->clocks->choose(plan_, slow);
    plan_.clocks = chosen_.clocks;
    auto sentence = chosen_ ? fmt::format("clocks for a step of {:.6g} s: {:.6g} J, {:.1f} % less than at the highest ones", chosen_.time.count, chosen_.energy.count,
                                          100.0 * (1.0 - chosen_.energy / chosen_.at_highest))
                            : "all clocks are the highest: " + chosen_.reason;
    for (auto const& s : slow) {
        sentence += fmt::format("; rank {} takes {:.2f} times as long", s.rank.value, s.factor);
    }
    if (sentence != told_of_clocks_) {
        job_->record->note(sentence);
        told_of_clocks_ = std::move(sentence);
    }
    if (!std::exchange(clocks_are_ahead_, true)) {
        make_clocks_ahead();
    }
}

/// Begins to make the clocks of all plans to which the loss of one rank would lead.
void trainer::make_clocks_ahead()
{
    if (job_->clocks == nullptr || !state_.plan.cannot.empty()) {
        return;
    }
    job_->clocks->make_ahead([in_force = state_.plan, known = known_, rules = rules_, like = whole_step(state_.plan)] {
        std::vector<plan> plans;
        for (std::size_t gone = 0; gone < in_force.salvage.after.size(); ++gone) {
            auto left = in_force.salvage.after;
            left.erase(left.begin() + static_cast<std::ptrdiff_t>(gone));
            auto const next = plan_membership(left, in_force.pipelines, {}, known, rules);
            if (next.cannot.empty() && next.salvage.lost.empty()) {
                plans.push_back(like);
                plans.back().pipelines = next.pipelines;
                plans.back().work = deal(next.shares);
                plans.back().spares = next.spares;
            }
        }
        return plans;
    });
}

/// After a settled attempt: everybody has the same numbers, so everybody takes the other clocks in the same step.
void trainer::watch_for_stragglers()
{
    if (job_->clocks != nullptr && job_->config.power.straggler && observe(stragglers_, generation_->members, slowness_)) {
        programs_are_for_.reset();
    }
}

std::span<megahertz const> trainer::clocks_of_row(plan_position place) const
{
    if (plan_.clocks.empty() || !place.found) {
        return {};
    }
    return plan_.clocks[at(place.pipeline)][static_cast<std::size_t>(place.position)];
}

}  // namespace rheo::inline v0
