// SPDX-License-Identifier: Apache-2.0
// Clocks of the plan in force, and those that a loss would lead to; who is slow.
#include "runtime/trainer.hpp"

#include <utility>

#include <fmt/format.h>

#include "rheo/frequency/profile_csv.hpp"
#include "runtime/collectives.hpp"
#include "runtime/planning.hpp"
#include "runtime/record_files.hpp"

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
    if (sentence != told_of_clocks_ && !sweeps()) {
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

std::span<megahertz const> trainer::clocks_of_row(plan_position place)
{
    if (sweeps() && place.found) {
        auto const computations = programs_[at(place.pipeline)].rows[static_cast<std::size_t>(place.position)].size();  // at most
        sweep_row_.assign(computations, sweep_clocks_[sweep_.place()]);
        return sweep_row_;
    }
    if (plan_.clocks.empty() || !place.found) {
        return {};
    }
    return plan_.clocks[at(place.pipeline)][static_cast<std::size_t>(place.position)];
}

/// After a settled attempt.
void trainer::note_sweep(bool committed)
{
    if (gathered_) {
        write_sweep();
    }
    if (!sweeps() || !committed) {
        return;
    }
    if (auto const place = worker_->place(); place.found && sweep_.measures()) {
        auto const& sums = worker_->computed_sums_of_section();
        std::vector<seconds> modelled;  // none is zero: an embedding computes little, but moves bytes
        for (auto const& layer : modelled_layers(job_->model, job_->config)) {
            modelled.push_back(layer.forward + layer.backward);
        }
        swept_.take(sweep_clocks_[sweep_.place()], sums, plan_.pipelines[at(place.pipeline)].cuts, modelled);
        computed_sum all;
        for (auto const& [what, sum] : sums) {
            all.time += sum.time;
            all.energy += sum.energy;
        }
        swept_.waited(since_reduced_ - all.time, drawn_ - all.energy);
    }
    sweep_.committed(computing_, sweep_count_);
    if (sweep_.ended()) {
        programs_are_for_.reset();  // from here on the clocks are the plan's
    }
}

/// In a section, so that the loss of a rank is one like any other.
void trainer::gather_sweep()
{
    sweep_rows all;
    for (auto const& words : all_gather(*messages_, swept_.words())) {
        all.add(words);
    }
    gathered_ = std::move(all);
}

void trainer::write_sweep()
{
    auto const& file = job_->config.power.sweep;
    sweep_written_ = true;
    if (speaks()) {
        auto const measured = gathered_->rows();
        try {
            write_whole(file, to_csv(measured));
            job_->record->note(fmt::format("{}: {} rows of a profile by layer; a device that waits draws {:.2f} W (power.blocking_w)", file, measured.rows.size(),
                                           gathered_->blocking().count));
        } catch (records_error const& error) {
            job_->record->note(fmt::format("the profile is lost: {}", error.what()));
        }
    }
    gathered_.reset();
}

}  // namespace rheo::inline v0
