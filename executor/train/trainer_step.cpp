// SPDX-License-Identifier: Apache-2.0
// What the trainer performs in a step: the section, the reduction of its scalars, the vote, the update.
#include "executor/train/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "executor/config/learning_rate.hpp"
#include "executor/state/collectives.hpp"
#include "kernels/adamw/adamw.hpp"

namespace rheo::inline v0 {

namespace {

/// Where something is not finite, packed so that the largest value is the first microbatch in the model's order.
constexpr double no_place = 0;
double pack_place(microbatch_id m, layer_id layer) { return 1e12 - (m.value * 1e5 + layer.value); }
std::pair<microbatch_id, layer_id> unpack_place(double place)
{
    auto const code = static_cast<std::int64_t>(1e12 - place);
    return {microbatch_id{static_cast<std::int32_t>(code / 100000)}, layer_id{static_cast<std::int32_t>(code % 100000)}};
}

}  // namespace

protocol_event trainer::perform(run_section const& action)
{
    messages_->begin_section();
    section_began_ = job_->clock.now();
    if (action.work == section_work::closing) {
        if (recovery_) {
            close_recovery_record({});
        }
        close();
        return section_finished{};
    }
    auto const every = job_->config.train.eval_every;
    if (every > 0 && action.stamp.step.value > 0 && action.stamp.step.value % every == 0 && action.stamp.attempt.value == 0) {
        evaluate(action.stamp.step);
    }
    if (sweeps() && sweep_clocks_.empty()) {
        sweep_clocks_ = job_->device->clocks();
    }
    if (sweep_.ended() && !sweep_written_) {
        gather_sweep();
    }
    if (action.work == section_work::remainder) {  // the first section after a merge
        copy_kept_layers();
    }
    auto const& programs = programs_for(action.work);
    auto const place = worker_->place();
    contributed_before_ = worker_->contributions();
    worker_->computed = [this](instruction, seconds) {
        if (recovery_) {
            close_recovery_record(since(merged_at_));
        }
        progress_ = job_->clock.now();
    };
    if (place.found) {
        loss_sum unused;
        worker_->run(
            programs[at(place.pipeline)].rows[static_cast<std::size_t>(place.position)], plan_.work[at(place.pipeline)],
            {action.stamp.generation, action.stamp.step, action.stamp.attempt, true, clocks_of_row(place), action.work == section_work::remainder}, *messages_,
            [this](use_id use, microbatch_id m) { return wanted(state_, use, m); },
            [this](std::span<use_id const> uses, microbatch_id m) { note(state_, uses, m); }, unused);
    }
    if (place.found && action.work == section_work::whole) {
        job_->record->activations(worker_->peak_of_activations(), planned_activations_);
    }
    pass_gradients_on();
    auto const found = reduce_scalars(action);
    if (recovery_) {
        close_recovery_record({});
    }
    job_->inject.at(fault_phase::decide, action.stamp.step, action.stamp.attempt);
    return section_finished{found, checkpoints_.consents(), departing_, regroup_};
}

outcome trainer::reduce_scalars(run_section const& action)
{
    auto const tensors = job_->state.tensors.size();
    auto const scales = resident_.scales.size();
    auto const& members = generation_->members;
    auto* const energies = job_->energies;
    auto const metered = energies != nullptr ? energies->ranks() : std::vector<rank_id>{};
    step_scalars scalars{std::vector<double>(tensors + scales + 6 + 2 * members.size() + 2 * metered.size(), 0.0), std::vector<std::int64_t>(5, 0)};
    auto const squares = scalars.maxima.begin();
    auto const maxima = squares + static_cast<std::ptrdiff_t>(tensors);
    double& overflow = scalars.maxima[tensors + scales];
    double& place = scalars.maxima[tensors + scales + 1];
    double& stop = scalars.maxima[tensors + scales + 2];
    double& save = scalars.maxima[tensors + scales + 3];
    stop = job_->asked_to_stop && job_->asked_to_stop() ? 1 : 0;
    save = checkpoints_.wants_one() ? 1 : 0;
    auto const requests = std::span{scalars.maxima}.subspan(tensors + scales + 6, members.size());  // of each member, to leave
    auto const slowness = std::span{scalars.maxima}.subspan(tensors + scales + 6 + members.size(), members.size());  // of each member
    auto const seen = std::span{scalars.maxima}.subspan(tensors + scales + 6 + 2 * members.size(), metered.size());  // whose count is known
    auto const counts = std::span{scalars.maxima}.subspan(tensors + scales + 6 + 2 * members.size() + metered.size());
    double& fewest_clocks = scalars.maxima[tensors + scales + 4];  // negative
    fewest_clocks = -static_cast<double>(sweep_clocks_.size());
    double& changed = scalars.maxima[tensors + scales + 5];  // 1 + the number of a data file that was changed in place
    auto const changed_here = stop != 0 || save != 0 || data_are_checked_after(action.stamp.step) ? job_->data->change() : std::nullopt;
    changed = changed_here ? 1.0 + static_cast<double>(changed_here->piece) : 0.0;
    auto const mine = static_cast<std::size_t>(generation_->position_of(self_));
    slowness[mine] = worker_->slowness();
    requests[mine] = job_->asked_to_leave && job_->asked_to_leave(action.stamp.step) ? 1 : 0;
    for (std::size_t u = 0; u < job_->state.uses.size(); ++u) {
        use_id const use{static_cast<std::int32_t>(u)};
        if (!resident_.has_accumulator(use)) {
            continue;
        }
        auto const& info = job_->state.uses[u];
        auto const& accumulator = resident_.accumulator(use);
        auto const first = maxima + static_cast<std::ptrdiff_t>(resident_.first_scale(info.tensor));
        auto const rows = resident_.rows_of(use);
        for (std::size_t r = 0; r < rows.size(); ++r) {
            auto const size = rows[r].max_abs;
            first[static_cast<std::ptrdiff_t>(r)] = std::max(first[static_cast<std::ptrdiff_t>(r)], std::isfinite(size) ? static_cast<double>(size) : 0.0);
        }
        if (accumulator.rows.empty()) {
            *first = std::max(*first, static_cast<double>(accumulator.state.max_abs));
        }
        overflow = std::max(overflow, accumulator.state.overflow ? 1.0 : 0.0);
        if (accumulator.state.not_finite) {
            place = std::max(place, pack_place(accumulator.not_finite_at, info.layer));
        }
        if (!job_->state.tensors[at(info.tensor)].is_parameter) {
            scalars.sums[0] = accumulator.sums[0];
            scalars.sums[1] = accumulator.sums[1];
            scalars.sums[4] = accumulator.state.not_finite ? 1 : 0;
        }
    }
    std::vector<tensor_id> added;
    std::vector<tensor_id> together;
    std::vector<gradient_norm_arguments> gradients;
    for (auto const& r : worker_->reductions()) {
        for (auto const t : r.unit().tensors) {
            auto const count = elements(resident_.info(t).shape);
            if (resident_.sums_in_rows(resident_.info(t))) {  // the same pieces in the same order, wherever the gradient lies
                for (std::int64_t first = 0; first < count; first += gradient_piece) {
                    auto const size = std::min(gradient_piece, count - first);
                    gradient_norm_arguments const piece{.count = size, .gradient = r.piece(t, first, size, room_)};
                    job_->backend->add_sums_of_squares({&piece, 1});
                    added.push_back(t);
                }
            } else {
                together.push_back(t);
                gradients.push_back({.count = count, .gradient = r.piece(t, 0, count, room_)});
            }
        }
    }
    job_->backend->add_sums_of_squares(gradients);
    added.insert(added.end(), together.begin(), together.end());
    auto const sums = job_->backend->sums_of_squares();
    for (std::size_t i = 0; i < sums.size(); ++i) {
        squares[added[i].value] += sums[i];
    }
    std::replace_if(squares, maxima, [](double sum) { return !std::isfinite(sum); }, 0.0);
    scalars.sums[2] = worker_->contributions() - contributed_before_;
    auto const energy = job_->device != nullptr ? job_->device->energy() : joules{};
    for (std::size_t k = 0; k < metered.size(); ++k) {
        auto const count = metered[k] == self_                                      ? std::optional{energy}
                           : generation_->has(metered[k]) || job_->watch == nullptr ? std::nullopt
                                                                                    : job_->watch->shown_by(metered[k]);
        seen[k] = count ? 1 : 0;
        counts[k] = count ? count->count : 0.0;
    }
    for (auto const& [what, sum] : worker_->computed_sums_of_section()) {
        scalars.sums[3] += in_whole_nanojoules(sum.energy).count;
    }
    auto const reduced_at = job_->clock.now();
    all_reduce(*messages_, scalars);
    pairs_of_section_ = scalars.sums[2];
    drawn_ = energy - energy_before_;
    energy_before_ = energy;
    computing_ = in_joules(nanojoules{scalars.sums[3]});
    since_reduced_ = reduced_at - std::exchange(reduced_at_, reduced_at);
    sweep_count_ = static_cast<std::size_t>(std::max(1.0, -fewest_clocks));
    energy_ = energies != nullptr ? energies->update(members, seen, counts) : joules{};
    slowness_.assign(slowness.begin(), slowness.end());
    departing_.clear();
    for (std::size_t position = 0; position < members.size(); ++position) {
        if (requests[position] != 0) {
            departing_.push_back(members[position]);
        }
    }
    squares_.assign(squares, maxima);
    maxima_.assign(maxima, maxima + static_cast<std::ptrdiff_t>(scales));
    loss_ = {.fixed = scalars.sums[0], .targets = scalars.sums[1], .not_finite = scalars.sums[4] != 0};
    double sum = 0;  // in the order of the tensors
    for (auto const s : squares_) {
        sum += s;
    }
    gradient_norm_ = place == no_place ? std::sqrt(sum) / targets_of_step() : std::numeric_limits<double>::quiet_NaN();
    wants_checkpoint_ = save != 0;
    not_finite_.clear();
    if (place != no_place) {
        auto const [microbatch, layer] = unpack_place(place);
        not_finite_ = fmt::format("step {}: a loss or gradient of layer {} ({}), microbatch {}, is not finite", action.stamp.step.value, layer.value,
                                  job_->model.layers[at(layer)].name, microbatch.value);
    }
    if (changed != 0) {
        auto const piece = static_cast<std::size_t>(changed) - 1;
        data_changed_ = changed_here && changed_here->piece == piece
                            ? changed_here->message
                            : fmt::format("data: '{}' was changed in place while the run reads it, as the host of another rank shows", job_->data->path(piece));
    }
    bool const first = action.stamp.step.value == 0 && action.stamp.attempt.value == 0;
    return outcome_of({.data_changed = changed != 0, .not_finite = place != no_place, .overflow = first || overflow != 0, .stop_requested = stop != 0},
                      job_->config.train.skip_not_finite ? when_not_finite::skip_step : when_not_finite::end);
}

/// Data files are looked at before a checkpoint may be taken, so that none holds what changed data have made, and once an epoch.
bool trainer::data_are_checked_after(step_id step) const
{
    auto const steps = step.value + 1;
    auto const every = job_->config.checkpoint.every_steps;
    auto const tokens = std::int64_t{job_->microbatches()} * microbatch_rows(job_->shape());
    auto const epochs_at = [&](std::int64_t count) { return count * tokens / job_->data->training_tokens(); };
    return steps == job_->config.train.steps || (every > 0 && steps % every == 0) || epochs_at(steps) != epochs_at(step.value);
}

void trainer::update_parameters(step_id step)
{
    auto const targets = targets_of_step();
    auto const& o = job_->config.optimizer;
    std::vector<adamw_arguments<bf16>> all;
    auto const update = [&](tensor_id t, float const* gradient) {
        auto& storage = resident_.tensor(t);
        all.push_back({.count = static_cast<std::int64_t>(storage.parameter.size()),
                       .master = storage.parameter.data(),
                       .first_moment = storage.first_moment.data(),
                       .second_moment = storage.second_moment.data(),
                       .gradient = gradient,
                       .parameter = storage.stored.data(),
                       .gradient_multiplier = clip_factor(gradient_norm_, o.clip_norm) / targets,
                       .learning_rate = learning_rate(o, job_->config.train.steps, step),
                       .beta1 = o.beta1,
                       .beta2 = o.beta2,
                       .epsilon = o.epsilon,
                       .weight_decay = resident_.info(t).decays ? o.weight_decay : 0.0,
                       .step = step.value + 1});
    };
    for (auto& r : worker_->reductions()) {
        for (auto const t : r.unit().tensors) {
            update(t, r.gradient(t));
        }
    }
    for (auto const& kept : kept_gradients_) {
        update(kept.tensor, kept.values.data());
    }
    job_->backend->update(all);
    job_->backend->wait();
}

protocol_event trainer::perform(update_state const& action)
{
    auto const step = state_.now.step;
    job_->inject.at(fault_phase::commit, step, state_.now.attempt);
    error_of_lost_ = 0;  // the others have done without those that had one
    auto const start = job_->clock.now();
    bool const commits = action.found == outcome::commit || action.found == outcome::stop;
    checkpoints_.agreed(action.consents);
    if (commits) {
        update_parameters(step);
    }
    if (commits || action.found == outcome::redo) {
        resident_.choose_scales(maxima_, job_->items());
    }
    resident_.clear_accumulators();
    trace(activity::update, start);
    bool const redone = action.found == outcome::redo;
    auto const tokens = job_->microbatches() * microbatch_rows(job_->shape());
    if (job_->energies != nullptr) {
        for (auto const rank : job_->energies->settled(!redone)) {
            job_->record->note(fmt::format("what rank {} drew at last is not counted: its meter was not read", rank.value));
        }
    }
    if (!redone) {
        so_far_.loss = mean_loss(loss_);
        so_far_.skipped += action.found == outcome::skip ? 1 : 0;
    }
    job_->record->step({.step = step,
                        .of_steps = job_->config.train.steps,
                        .attempt = state_.now.attempt,
                        .loss = mean_loss(loss_),
                        .gradient_norm = gradient_norm_,
                        .learning_rate = learning_rate(job_->config.optimizer, job_->config.train.steps, step),
                        .tokens = tokens,
                        .duration = since(section_began_),
                        .ranks = static_cast<int>(generation_->members.size()),
                        .recoveries = recoveries_,
                        .skipped = action.found == outcome::skip,
                        .redone = redone,
                        .pairs_computed = pairs_of_section_,
                        .energy = energy_,
                        .planned_time = plan_.clocks.empty() || sweeps() ? seconds{} : chosen_.time,
                        .planned_energy = plan_.clocks.empty() || sweeps() ? joules{} : chosen_.energy});
    if (!redone) {
        checkpoints_.committed(step_id{step.value + 1}, wants_checkpoint_, generation_->id, state_.plan.pipelines, resident_);
    }
    checkpoints_.report(*job_->record);
    if (job_->device != nullptr) {
        for (auto const& message : job_->device->news()) {
            job_->record->alone(message);
        }
    }
    report_precomputed_clocks();
    note_sweep(commits);
    watch_for_stragglers();
    if (programs_are_for_ == section_work::remainder) {
        programs_are_for_.reset();  // they were for what was left of this step
    }
    job_->inject.at(fault_phase::idle, step, state_.now.attempt);
    return updated{};
}

protocol_event trainer::perform(decide const& action)
{
    auto const start = job_->clock.now();
    watchdog::wait const waits{job_->watch};
    auto const agreed = mpi::agree(generation_->recovery(), static_cast<int>(action.vote) | mpi::no_error);
    if ((agreed.bits & mpi::no_error) != mpi::no_error) {
        error_of_lost_ = (agreed.bits & mpi::no_error_of_data) == 0 ? 4 : 5;
    }
    trace(activity::decide, start);
    if (recovery_) {
        recovery_->decide += since(start);
    } else if (!agreed.success || (agreed.bits & 1) == 0) {
        recovery_.emplace();
        recovery_->decide = since(start);
        before_ = generation_->members;
    }
    return decided{agreed.success, static_cast<std::uint32_t>(agreed.bits & ~mpi::no_error)};
}

}  // namespace rheo::inline v0
