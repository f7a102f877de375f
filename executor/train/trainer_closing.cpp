// SPDX-License-Identifier: Apache-2.0
// What the trainer does beside the steps: evaluation, and the end of the job with checkpoint, digest and sample.
#include "executor/train/trainer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/state/collectives.hpp"
#include "executor/train/local_start.hpp"
#include "executor/train/parts/sample.hpp"
#include "rheo/plan/cells.hpp"
#include "rheo/plan/evaluation_plan.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

/// The step of the newest checkpoint and what is known of the steps before it; what cannot be read is reported.
void look_for_checkpoint(std::string const& folder, records& record, std::vector<std::int64_t>& words)
{
    try {
        auto const found = find_earlier_state(folder);
        for (auto const& message : found.skipped) {
            record.alone(message);
        }
        if (found.newest) {
            words = steps_of_records(folder, found.newest->step()).words();
            words.insert(words.begin(), found.newest->step().value);
        }
    } catch (exit_error const& error) {
        record.alone(error.what());
    }
}

/// The one text that a rank has, on every rank: the reporter needs it.
std::string broadcast_from_holder(mpi::messenger& messages, std::string const& mine)
{
    std::string text;
    for (auto const& part : gather_texts(messages, mine)) {
        text += part;
    }
    return text;
}

}  // namespace

void trainer::evaluate(step_id step)
{
    auto const start = with_->clock.now();
    auto const where = evaluation_plan(planner_.whole_step(state_.plan), job_->config.train.eval_microbatches);
    auto const programs = programs_of(where, {}, 0);
    loss_sum mine;
    if (auto const place = worker_->place(); place.found) {
        choose_clocks();
        auto const& row = programs[at(place.pipeline)].rows[static_cast<std::size_t>(place.position)];
        worker_->computed = [](instruction, seconds) {};
        worker_->run(
            row, where.work[at(place.pipeline)],
            {.generation = state_.now.generation,
             .step = step,
             .attempt = state_.now.attempt,
             .training = false,
             .clocks = carried_clocks_of(place, row),
             .by = transport_.in_use()},
            *messages_, [](use_id, microbatch_id) { return false; }, [](std::span<use_id const>, microbatch_id) {}, mine);
    }
    evaluation_.reduce(*messages_, mine, step, so_far_);
    trace(activity::evaluate, start);
    messages_->begin_section();
}

/// The ranks with all committed roles of each tensor.
tensor_holders trainer::keepers() const { return keepers_of(job_->state, state_.plan.pipelines, job_->grid(), planner_.known().optimizer.shards); }

state_digest trainer::digest_of_state()
{
    state_digest mine;
    auto const holders = keepers();
    for (tensor_id t{0}; at(t) < holders.size(); ++t) {
        if (!holders[at(t)].empty() && holders[at(t)].front() == self_) {  // of the holders of the tensor, the one that counts it
            mine += resident_.digest(t);
            with_->progress();
            mine += state_.now.step.value > 0 ? digest_of_scales(job_->state.tensors[at(t)].name, resident_.scales_of(t)) : state_digest{};
        }
    }
    std::vector<std::int64_t> const words{std::bit_cast<std::int64_t>(mine.high), std::bit_cast<std::int64_t>(mine.low)};
    state_digest sum;
    for (auto const& part : all_gather(*messages_, words)) {
        sum += {std::bit_cast<std::uint64_t>(part[0]), std::bit_cast<std::uint64_t>(part[1])};
    }
    return sum;
}

void trainer::end_finished()
{
    auto& end = end_.record;
    evaluate(state_.now.step);
    auto const loss = evaluation_.loss();
    end.validation_loss = loss;
    end.digest = digest_of_state();
    end.digest_known = true;
    auto const place = worker_->place();
    end_worker();  // a device that it fills has room for what generates the sample
    end.sample = sample(place);
    end.message = fmt::format("all {} steps are committed", state_.now.step.value);
    if (bool const none = so_far_.skipped > 0 && so_far_.skipped == state_.now.step.value; none || !std::isfinite(loss)) {
        end.exit_code = number_of(exit_code::not_finite);
        end.message += none ? ", but every one was skipped, because a loss or gradient was not finite: nothing was learned"
                            : ", but the validation loss of the last state is not finite: nothing finite was learned";
    }
    if (job_->config.checkpoint.at_end && !save(keepers())) {
        end.message += ", but the last state could not be saved";
        end.exit_code = end.exit_code == 0 ? number_of(exit_code::environment) : end.exit_code;
    }
    step_scalars pairs{{}, {earlier_contributions_}};
    all_reduce(*messages_, pairs);
    end.pairs_by_survivors = pairs.sums.front();
}

/// What no survivor holds: "layer 3 (block) in shards 2 and 3". Who loses a parameter loses what its keepers have, which is not named besides.
std::vector<std::string> trainer::lost_state() const
{
    auto const& lost = state_.plan.salvage.lost;
    auto const& known = planner_.known();
    auto const grid = grid_of(known);
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < lost.size();) {
        auto const layer = layer_of_cell(lost[i], known.cells_per_layer);
        std::vector<int> parameters;
        std::vector<int> moments;
        for (; i < lost.size() && layer_of_cell(lost[i], known.cells_per_layer) == layer; ++i) {
            auto const cell = lost[i].value % known.cells_per_layer;
            (cell < grid ? parameters : moments).push_back(cell % grid);
        }
        auto const& shards = parameters.empty() ? moments : parameters;
        auto const* const kept = with_->backend.policy().stores_apart() ? "the master parameters and moments of " : "the moments of ";
        parts.push_back(fmt::format("{}layer {} ({})", parameters.empty() ? kept : "", layer.value, job_->model.layers[at(layer)].name));
        if (static_cast<int>(shards.size()) < grid) {
            parts.back() += fmt::format(" in shard{} {}", shards.size() == 1 ? "" : "s", fmt::join(shards, " and "));
        }
    }
    return parts;
}

void trainer::end_with_lost_state()
{
    auto& end = end_.record;
    end.message = "state lost: no survivor holds a copy of";
    end.message += fmt::format(" {}", fmt::join(lost_state(), ", "));
    if (error_of_lost_ != exit_code::done) {  // that is what has to change before the job can resume
        end.exit_code = number_of(error_of_lost_);
        end.message += "; ranks ended in errors of their own, see above";
    }
    // The lowest rank looks for a checkpoint; what it finds goes to all, so that all do the same.
    std::vector<std::int64_t> words(1 + steps_so_far::word_count, -1);
    if (!job_->config.checkpoint.local.empty()) {
        for (auto const& note : take_up_local(*messages_, job_->config, job_->run)) {
            with_->record.note(note);
        }
    }
    if (is_reporter()) {
        look_for_checkpoint(job_->config.run.folder, with_->record, words);
    }
    broadcast(*messages_, words);
    if (words.front() >= 0) {
        end_.resume_from = step_id{words.front()};
        end_.so_far = steps_so_far::of(words, 1);
        with_->record.note(end.message + fmt::format("; resuming from the checkpoint of step {}", words.front()));
    }
}

void trainer::end_without_plan()
{
    auto& end = end_.record;
    auto const holdings = gather_holdings(*messages_, state_.holds);
    auto then = fmt::format("the state after {} steps is saved, and the same command resumes with more ranks", state_.now.step.value);
    if (!save(keepers_of(planner_.known().state, holdings))) {
        then = fmt::format("the state after {} steps could not be saved", state_.now.step.value);
        end.exit_code = number_of(exit_code::environment);
    }
    end.message = fmt::format("no plan: {}; {}", state_.plan.error, then);
}

void trainer::end_with_energy()
{
    auto const* const drawn = with_->energies;
    if (drawn == nullptr || drawn->tokens() == 0) {
        return;
    }
    auto& end = end_.record;
    end.energy = drawn->total();
    end.energy_missing = drawn->missing();
    end.energy_per_token = drawn->total() / static_cast<double>(drawn->tokens());
    end.energy_per_step = end.energy_per_token * static_cast<double>(job_->tokens_per_step());
}

void trainer::close()
{
    auto const reason = *state_.reason;
    checkpoints_.end_copies(*messages_);
    if (reason == leave_reason::finished || reason == leave_reason::stopped) {
        sweep_.close(*messages_, is_reporter());
    }
    end_ = {};
    auto& end = end_.record;
    end.exit_code = number_of(exit_code_of(reason));
    end.steps = state_.now.step;
    end.loss = so_far_.loss;
    end.unigram_entropy = with_->data.unigram_entropy();
    end_with_energy();
    switch (reason) {
    case leave_reason::finished: end_finished(); break;
    case leave_reason::stopped:
        end.message = fmt::format("stopped after {} steps: the same command resumes", state_.now.step.value);
        if (!save(keepers())) {
            end.message = fmt::format("stopped after {} steps, but this state could not be saved", state_.now.step.value);
            end.exit_code = number_of(exit_code::environment);
        }
        break;
    case leave_reason::not_finite: end.message = attempt_.not_finite; break;
    case leave_reason::bad_data: end.message = attempt_.data_changed; break;
    case leave_reason::state_lost: end_with_lost_state(); break;
    case leave_reason::no_plan: end_without_plan(); break;
    case leave_reason::drained:
    case leave_reason::fenced: break;
    }
    end.steps_skipped = so_far_.skipped;
    end.evaluations_not_finite = so_far_.evaluations_not_finite;
}

bool trainer::save(tensor_holders const& holders)
{
    auto const largest = [&](std::int64_t mine) {
        step_scalars all{{static_cast<double>(mine)}, {}};
        all_reduce(*messages_, all);
        return static_cast<std::int64_t>(all.maxima.front());
    };
    bool const there = checkpoints_.save_now(state_.now.step, generation_->id, holders, resident_, largest);
    checkpoints_.report(with_->record);
    return there;
}

/// On every rank. The ranks of the first pipeline generate it.
std::string trainer::sample(plan_position const& place)
{
    auto const tokens = job_->config.run.sample_tokens;
    bool const takes_part = tokens > 0 && with_->data.is_text() && place.found && place.pipeline.value == 0;
    return broadcast_from_holder(*messages_, takes_part ? sampled_text(*job_, state_.plan.pipelines.front(), tokens, resident_, *messages_) : std::string{});
}

}  // namespace rheo::inline v0
