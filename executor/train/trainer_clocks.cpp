// SPDX-License-Identifier: Apache-2.0
// Clocks of the plan in force, and those that a loss would lead to; who is slow.
#include "executor/train/trainer.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "executor/plan/contingency_plans.hpp"
#include "executor/plan/job_templates.hpp"
#include "executor/records/record_files.hpp"
#include "executor/state/collectives.hpp"
#include "rheo/energy/profile/profile_csv.hpp"
#include "rheo/plan/pipeline_schedule.hpp"

namespace rheo::inline v0 {

/// The clocks of a plan for those who are slow now. After a loss it says when they were not there yet.
chosen_clocks trainer::clocks_for(plan const& whole)
{
    auto const before = job_->clocks->made_at_once();
    auto const begun = job_->clock.now();
    auto chosen = job_->clocks->choose(whole, slow_ranks(stragglers_));
    if (auto const made = job_->clocks->made_at_once() - before; recovery_ && made > 0 && is_reporter()) {
        job_->record->note(fmt::format("of {} frontiers of clocks {} had not been precomputed; that took {:.3g} ms", whole.pipelines.size(), made,
                                       in_milliseconds(since(begun))));
    }
    return chosen;
}

/// The clocks of a whole step of the plan in force, for those who are slow now. Where there are none the highest are taken.
void trainer::choose_clocks()
{
    if (job_->clocks == nullptr || std::exchange(clocks_are_chosen_, true)) {
        return;
    }
    auto const slow = slow_ranks(stragglers_);
    auto const whole = whole_step(state_.plan);
    chosen_ = clocks_for(whole);
    carried_.clear();
    if (auto const place = position_of(whole, self_); chosen_ && place.found) {
        auto const position = static_cast<std::size_t>(place.position);
        auto const& clocks = chosen_.clocks[at(place.pipeline)][position];
        carried_ = highest_clocks(schedule_of(whole, at(place.pipeline)).compute.rows[position], clocks, stage_count(whole.pipelines[at(place.pipeline)].cuts));
    }
    auto message = chosen_ ? fmt::format("clocks for a step of {:.6g} s: {:.6g} J, {:.1f} % less than at the highest ones", chosen_.time.count,
                                         chosen_.energy.count, 100.0 * (1.0 - chosen_.energy / chosen_.at_highest))
                           : "all clocks are the highest: " + chosen_.error;
    for (auto const& s : slow) {
        message += fmt::format("; rank {} takes {:.2f} times as long", s.rank.value, s.factor);
    }
    if (message != reported_clocks_ && !sweeps()) {
        job_->record->note(message);
        reported_clocks_ = std::move(message);
    }
}

/// Begins to make the clocks of all plans to which losses may lead.
void trainer::precompute_clocks()
{
    if (job_->clocks == nullptr || !state_.plan.error.empty()) {
        return;
    }
    auto plans = std::make_shared<contingency_plans>(whole_step(state_.plan), state_.plan, known_, rules_);
    job_->clocks->precompute([plans = std::move(plans)] { return plans->next(); });
}

/// What that cost, when it is done.
void trainer::report_precomputed_clocks()
{
    if (job_->clocks == nullptr) {
        return;
    }
    if (auto const done = job_->clocks->take_precomputed(); done && is_reporter()) {
        job_->record->note(
            fmt::format("clocks precomputed for {} plans after losses: {} frontiers in {:.3g} ms", done->plans, done->frontiers, in_milliseconds(done->took)));
    }
}

/// After a settled attempt: everybody has the same numbers, so everybody takes the other clocks in the same step.
void trainer::watch_for_stragglers()
{
    if (job_->clocks != nullptr && job_->config.power.straggler && observe(stragglers_, generation_->members, slowness_, job_->config.power.slow)) {
        programs_are_for_.reset();
        clocks_are_chosen_ = false;
    }
}

/// Of a row of the programs at hand.
std::span<megahertz const> trainer::clocks_of_row(plan_position place)
{
    if (sweeps() && place.found) {
        auto const computations = programs_[at(place.pipeline)].rows[static_cast<std::size_t>(place.position)].size();  // at most
        sweep_row_.assign(computations, sweep_clocks_[sweep_.place()]);
        return sweep_row_;
    }
    if (!place.found) {
        return {};
    }
    if (plan_.clocks.empty()) {  // what is left of a step
        return carried_to(place, programs_[at(place.pipeline)].rows[static_cast<std::size_t>(place.position)]);
    }
    return plan_.clocks[at(place.pipeline)][static_cast<std::size_t>(place.position)];
}

/// For a row that is not a whole step's, on the same stages; none: the highest.
std::span<megahertz const> trainer::carried_to(plan_position place, std::vector<instruction> const& row)
{
    carried_row_ =
        sweeps() || !place.found ? std::vector<megahertz>{} : carried_clocks(carried_, row, stage_count(state_.plan.pipelines[at(place.pipeline)].cuts));
    return carried_row_;
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
    bool const throttled = job_->device->throttled();  // also asked in steps that settle, so that the next answer is about the next step
    if (auto const place = worker_->place(); place.found && sweep_.measures()) {
        auto const& sums = worker_->computed_sums_of_section();
        std::vector<seconds> modelled;  // none is zero: an embedding computes little, but moves bytes
        for (auto const& layer : planned_layers(job_->model, job_->config)) {
            modelled.push_back(layer.forward + layer.backward);
        }
        swept_.take(sweep_clocks_[sweep_.place()], sums, plan_.pipelines[at(place.pipeline)].cuts, modelled, throttled);
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
    if (is_reporter()) {
        auto const measured = gathered_->rows();
        try {
            write_whole(file, to_csv(measured));
            job_->record->note(
                fmt::format("{}: {} rows of a profile by layer; a device that waits draws {:.2f} W", file, measured.rows.size(), measured.blocking.count));
            if (auto const marked = std::count_if(measured.rows.begin(), measured.rows.end(), [](profile_row const& row) { return row.throttled; });
                marked > 0) {
                job_->record->note(
                    fmt::format("{} of them are marked as throttled: the device did not hold that clock, and no plan will have it there", marked));
            }
        } catch (records_error const& error) {
            job_->record->note(fmt::format("the profile is lost: {}", error.what()));
        }
    }
    gathered_.reset();
}

}  // namespace rheo::inline v0
