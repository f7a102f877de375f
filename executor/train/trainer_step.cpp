// SPDX-License-Identifier: Apache-2.0
// What the trainer performs in a step: the section, the reduction of its totals, the vote, the update.
#include "executor/train/trainer.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "executor/config/learning_rate.hpp"
#include "executor/train/parts/step_reduction.hpp"
#include "rheo/model/model_flops.hpp"
#include "rheo/units/exit_code.hpp"

namespace rheo::inline v0 {

protocol_event trainer::perform(run_section const& action)
{
    messages_->begin_section();
    if (action.work != section_work::remainder) {  // a remainder belongs to the attempt that a loss interrupted
        attempt_began_ = with_->clock.now();
    }
    if (action.work == section_work::closing) {
        if (recovery_.is_open()) {
            close_recovery({});
        }
        close();
        return section_finished{};
    }
    if (action.work == section_work::whole) {
        transport_.begin_section(*messages_);
    }
    auto const every = job_->config.train.eval_every;
    if (every > 0 && action.stamp.step.value > 0 && action.stamp.step.value % every == 0 && action.stamp.attempt.value == 0) {
        evaluate(action.stamp.step);
    }
    sweep_.begin_section(*messages_);
    if (action.work == section_work::remainder && !copies_.empty()) {  // the first section after a merge
        auto const start = with_->clock.now();
        copies_.copy_first(*messages_, resident_, [this](tensor_id t) { book_received(t); });
        trace(activity::copy, start);
    }
    prepare_programs(action.work);
    auto const contributed_before = worker_->contributions();
    train_section(action);
    copies_.pass_gradients(*messages_, resident_, worker_->reductions(), room_);
    reduce_totals(action, contributed_before);
    if (recovery_.is_open()) {
        close_recovery({});
    }
    auto const found = verdict(action);
    if (found == outcome::commit || found == outcome::stop) {
        optimizer_.gather(action.stamp.step, attempt_.totals, *messages_, transport_.in_use(), worker_->reductions(),
                          [&] { with_->inject.at(fault_phase::parameters, action.stamp.step, action.stamp.attempt); });
    }
    auto const leaving = departing();
    if (found == outcome::commit || found == outcome::skip) {
        prepare_change(step_id{action.stamp.step.value + 1}, leaving);
    }
    checkpoints_.progress(*messages_);
    if (!leaving.empty()) {
        checkpoints_.end_copies(*messages_);  // who leaves takes no part in them any more
    }
    with_->inject.at(fault_phase::decide, action.stamp.step, action.stamp.attempt);
    return section_finished{found, checkpoints_.consents(), leaving, regroup_ || changes_.next() != nullptr};
}

/// Plans the change that is due after the step, if any.
void trainer::prepare_change(step_id after, std::vector<rank_id> const& leaving)
{
    std::vector<rank_id> staying;
    std::copy_if(generation_->members.begin(), generation_->members.end(), std::back_inserter(staying),
                 [&](rank_id rank) { return std::find(leaving.begin(), leaving.end(), rank) == leaving.end(); });
    auto const start = with_->clock.now();
    changes_.prepare(*messages_, planner_, {after, state_.plan, staying, is_reporter()}, attempt_.totals.reshape_requested);
    if (changes_.next() != nullptr) {
        trace(activity::plan, start);
    }
}

/// This rank's row of the programs.
void trainer::train_section(run_section const& action)
{
    worker_->computed = [this](instruction, seconds) {
        if (recovery_.is_open()) {
            close_recovery(with_->clock.since(recovery_.merged_at()));
        }
        transport_.poll();
        checkpoints_.progress(*messages_);
        recovery_.progress();
    };
    auto const place = worker_->place();
    if (!place.found) {
        return;
    }
    loss_sum unused;
    worker_->run(
        section_.programs[at(place.pipeline)].rows[static_cast<std::size_t>(place.position)], section_.plan.work[at(place.pipeline)],
        {.generation = action.stamp.generation,
         .step = action.stamp.step,
         .attempt = action.stamp.attempt,
         .clocks = clocks_of_row(place),
         .remainder = action.work == section_work::remainder,
         .by = action.work == section_work::whole ? transport_.in_use() : nullptr},
        *messages_, [this](use_id use, microbatch_id m) { return wanted(state_, use, m); },
        [this](std::span<use_id const> uses, microbatch_id m) { note(state_, uses, m); }, unused);
    if (action.work == section_work::whole) {
        auto measured = worker_->measured_memory();
        measured.state += section_.measured_state;
        with_->record.memory({.planned = section_.planned_memory, .measured = measured});
    }
}

/// What device counts are known here: this rank's own, and those that ranks of this host showed before they were lost.
void trainer::add_energy(step_totals& totals, std::span<rank_id const> metered, joules counted) const
{
    for (std::size_t k = 0; k < metered.size(); ++k) {
        auto const count = metered[k] == self_                                       ? std::optional{counted}
                           : generation_->has(metered[k]) || with_->watch == nullptr ? std::nullopt
                                                                                     : with_->watch->shown_by(metered[k]);
        totals.meter_known[k] = count ? 1 : 0;
        totals.meter_count[k] = count ? count->count : 0.0;
    }
    for (auto const& [computation, sum] : worker_->computed_sums_of_section()) {
        totals.computing += in_whole_nanojoules(sum.energy);
    }
}

void trainer::reduce_totals(run_section const& action, std::int64_t contributed_before)
{
    auto const step = action.stamp.step;
    auto const& members = generation_->members;
    auto const metered = with_->energies != nullptr ? with_->energies->ranks() : std::vector<rank_id>{};
    attempt_result now{.totals = step_totals{
                           {.tensors = job_->state.tensors.size(), .scales = resident_.scales.size(), .members = members.size(), .metered = metered.size()}}};
    auto& totals = now.totals;
    totals.stop_requested = with_->asked.to_stop();
    totals.checkpoint_wanted = checkpoints_.wants_one();
    totals.reshape_requested = is_reporter() && changes_.is_requested();
    totals.device_clocks = sweep_.clocks();
    totals.transport_comes_up = transport_.is_coming_up();
    totals.transport_failed = transport_.has_failed();
    auto const changed_here = totals.stop_requested || totals.checkpoint_wanted || data_are_checked_after(step) ? with_->data.change() : std::nullopt;
    if (changed_here) {
        totals.changed_file = static_cast<std::size_t>(changed_here->piece);
    }
    auto const mine = static_cast<std::size_t>(generation_->position_of(self_));
    totals.slowness[mine] = worker_->slowness();
    totals.leaving[mine] = with_->asked.to_leave(step);
    add_accumulators(totals, resident_);
    add_squares(totals, resident_, worker_->reductions(), room_);
    totals.contributions = worker_->contributions() - contributed_before;
    auto const counted = with_->device != nullptr ? with_->device->energy() : joules{};
    add_energy(totals, metered, counted);
    auto const reduced_at = with_->clock.now();
    all_reduce(*messages_, totals);
    if (totals.transport_failed) {
        transport_.share_failure(*messages_);
    }
    sweep_.reduced(totals, counted, reduced_at);
    if (with_->energies != nullptr) {
        now.energy = with_->energies->update(members, totals.meter_known, totals.meter_count);
    }
    if (totals.not_finite) {
        auto const [microbatch, layer] = *totals.not_finite;
        now.not_finite = fmt::format("step {}: a loss or gradient of layer {} ({}), microbatch {}, is not finite", step.value, layer.value,
                                     job_->model.layers[at(layer)].name, microbatch.value);
    }
    if (auto const file = totals.changed_file) {
        now.data_changed =
            changed_here && changed_here->piece == *file
                ? changed_here->message
                : fmt::format("data: '{}' was changed in place while the run reads it, as the host of another rank shows", with_->data.path(*file));
    }
    attempt_ = std::move(now);
}

/// What the totals of the attempt come to.
outcome trainer::verdict(run_section const& action) const
{
    bool const first = action.stamp.step.value == 0 && action.stamp.attempt.value == 0;
    auto const& totals = attempt_.totals;
    return outcome_of({.data_changed = totals.changed_file.has_value(),
                       .not_finite = totals.not_finite.has_value(),
                       .overflow = first || totals.overflow,
                       .stop_requested = totals.stop_requested},
                      job_->config.train.skip_not_finite ? when_not_finite::skip_step : when_not_finite::end);
}

/// Members that asked to leave after the step.
std::vector<rank_id> trainer::departing() const
{
    std::vector<rank_id> ranks;
    for (std::size_t position = 0; position < generation_->members.size(); ++position) {
        if (attempt_.totals.leaving[position]) {
            ranks.push_back(generation_->members[position]);
        }
    }
    return ranks;
}

/// Data files are looked at before a checkpoint may be taken, so that none holds what changed data have made, and once an epoch.
bool trainer::data_are_checked_after(step_id step) const
{
    auto const steps = step.value + 1;
    auto const every = job_->config.checkpoint.every_steps;
    auto const tokens = job_->tokens_per_step();
    auto const epochs_at = [&](std::int64_t count) { return count * tokens / with_->data.training_tokens(); };
    return steps == job_->config.train.steps || (every > 0 && steps % every == 0) || epochs_at(steps) != epochs_at(step.value);
}

protocol_event trainer::perform(update_state const& action)
{
    auto const step = state_.now.step;
    with_->inject.at(fault_phase::commit, step, state_.now.attempt);
    error_of_lost_ = exit_code::done;  // the others have done without those that had one
    auto const start = with_->clock.now();
    bool const commits = action.found == outcome::commit || action.found == outcome::stop;
    bool const redone = action.found == outcome::redo;
    checkpoints_.agreed(action.consents);
    changes_.settled(step_id{step.value + 1}, is_reporter());
    transport_.settle(attempt_.totals.transport_comes_up, attempt_.totals.transport_failed);
    if (commits) {
        checkpoints_.before_change();
        optimizer_.update(step, attempt_.totals, worker_->reductions(), copies_.gradients());
    }
    if (commits || redone) {
        resident_.choose_scales(attempt_.totals.magnitudes, job_->items());
    }
    resident_.clear_accumulators();
    trace(activity::update, start);
    record_step(action.found);
    if (!redone) {
        checkpoints_.committed(step_id{step.value + 1}, attempt_.totals.checkpoint_wanted, generation_->id, generation_->members, state_.plan.pipelines,
                               resident_, planner_.known().optimizer.shards);
    }
    checkpoints_.report(with_->record);
    if (with_->device != nullptr) {
        for (auto const& message : with_->device->news()) {
            with_->record.alone(message);
        }
    }
    clocks_.report_precomputed(is_reporter());
    auto const place = worker_->place();
    auto const cuts = place.found ? std::span<layer_id const>{section_.plan.pipelines[at(place.pipeline)].cuts} : std::span<layer_id const>{};
    if (sweep_.settled(commits, worker_->computed_sums_of_section(), cuts, is_reporter())) {
        section_.work.reset();  // from here on the clocks are the plan's
    }
    auto const& power = job_->config.power;
    if (power.straggler && clocks_.observe_slowness(generation_->members, attempt_.totals.slowness, power.slow)) {
        section_.work.reset();
    }
    if (section_.work == section_work::remainder) {
        section_.work.reset();  // the programs were for what was left of this step
    }
    with_->inject.at(fault_phase::idle, step, state_.now.attempt);
    return updated{};
}

/// A settled attempt.
void trainer::record_step(outcome found)
{
    bool const redone = found == outcome::redo;
    bool const skipped = found == outcome::skip;
    if (with_->energies != nullptr) {
        for (auto const rank : with_->energies->settled(!redone)) {
            with_->record.note(fmt::format("what rank {} drew at last is not counted: its meter was not read", rank.value));
        }
    }
    auto const loss = mean_loss(attempt_.totals.loss);
    if (!redone) {
        so_far_.loss = loss;
        so_far_.skipped += skipped ? 1 : 0;
    }
    auto const duration = with_->clock.since(attempt_began_);
    auto const work = static_cast<double>(model_flops(job_->model, job_->shape()).count) * job_->microbatches();
    bool const at_planned_clocks = !section_.plan.clocks.empty() && !sweep_.runs();
    with_->record.step({.step = state_.now.step,
                        .of_steps = job_->config.train.steps,
                        .attempt = state_.now.attempt,
                        .loss = loss,
                        .gradient_norm = attempt_.totals.gradient_norm(),
                        .learning_rate = learning_rate(job_->config.optimizer, job_->config.train.steps, state_.now.step),
                        .tokens = job_->tokens_per_step(),
                        .duration = duration,
                        .ranks = static_cast<int>(generation_->members.size()),
                        .recoveries = recovery_.recoveries(),
                        .skipped = skipped,
                        .redone = redone,
                        .pairs_computed = attempt_.totals.contributions,
                        .energy = attempt_.energy,
                        .planned_time = at_planned_clocks ? clocks_.chosen().time : seconds{},
                        .planned_energy = at_planned_clocks ? clocks_.chosen().energy : joules{},
                        .model_rate = {duration.count > 0 ? work / duration.count : 0.0},
                        .compute = section_.compute});
}

protocol_event trainer::perform(decide const& action)
{
    auto const start = with_->clock.now();
    watchdog::wait const waits{with_->watch};
    auto const agreed = mpi::agree(generation_->recovery(), static_cast<int>(action.vote) | mpi::no_error);
    if ((agreed.bits & mpi::no_error) != mpi::no_error) {
        error_of_lost_ = (agreed.bits & mpi::no_error_of_data) == 0 ? exit_code::bad_data : exit_code::environment;
    }
    trace(activity::decide, start);
    if (!recovery_.is_open() && (!agreed.success || (agreed.bits & 1) == 0)) {
        recovery_.open(generation_->members);
    }
    recovery_.also_took(&recovery_record::decide, start);
    return decided{agreed.success, static_cast<std::uint32_t>(agreed.bits & ~mpi::no_error)};
}

}  // namespace rheo::inline v0
