// SPDX-License-Identifier: Apache-2.0
// What the trainer does beside the steps: evaluation, and the end of the job with checkpoint, digest and sample.
#include "executor/train/trainer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <filesystem>

#include <fmt/format.h>

#include "executor/state/collectives.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/tensor/random.hpp"

namespace rheo::inline v0 {

void trainer::evaluate(step_id step)
{
    auto const start = job_->clock.now();
    auto where = plan_in_force(section_work::whole);
    auto const count = job_->config.train.eval_microbatches;
    for (std::size_t p = 0; p < where.work.size(); ++p) {
        where.work[p].clear();
    }
    for (int m = 0; m < count; ++m) {
        where.work[static_cast<std::size_t>(m) % where.work.size()].push_back({microbatch_id{m}, no_backward});
    }
    auto const programs = programs_of(where, {}, 0);
    loss_sum mine;
    auto const place = worker_->place();
    if (place.found) {
        choose_clocks();
        auto const& row = programs[at(place.pipeline)].rows[static_cast<std::size_t>(place.position)];
        worker_->computed = [](instruction, seconds) {};
        worker_->run(
            row, where.work[at(place.pipeline)], {state_.now.generation, step, state_.now.attempt, false, carried_to(place, row)}, *messages_,
            [](use_id, microbatch_id) { return false; }, [](std::span<use_id const>, microbatch_id) {}, mine);
    }
    step_scalars scalars{{}, {mine.fixed, mine.targets, mine.not_finite ? 1 : 0}};
    all_reduce(*messages_, scalars);
    validation_loss_ = mean_loss({.fixed = scalars.sums[0], .targets = scalars.sums[1], .not_finite = scalars.sums[2] != 0});
    trace(activity::evaluate, start);
    if (std::exchange(evaluated_, step) != step) {
        so_far_.evaluations_not_finite += std::isfinite(validation_loss_) ? 0 : 1;
        job_->record->evaluation({step, validation_loss_});
    }
    messages_->begin_section();
}

state_digest trainer::digest_of_state()
{
    state_digest mine;
    for (std::size_t t = 0; t < job_->state.tensors.size(); ++t) {
        tensor_id const id{static_cast<std::int32_t>(t)};
        auto const& tensor = job_->state.tensors[t];
        std::vector<rank_id> holders;
        for (auto const& pipeline : state_.plan.pipelines) {
            auto const here = holders_of(pipeline, tensor.layers);
            holders.insert(holders.end(), here.begin(), here.end());
        }
        auto const counts = std::min_element(holders.begin(), holders.end());  // of the holders of the tensor, the one that counts it
        if (tensor.is_parameter && counts != holders.end() && *counts == self_) {
            mine += resident_.digest(id);
            job_->progress();
            mine += state_.now.step.value > 0 ? digest_of_scales(tensor.name, resident_.scales_of(id)) : state_digest{};
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
    evaluate(state_.now.step);
    end_.validation_loss = validation_loss_;
    end_.digest = digest_of_state();
    end_.digest_known = true;
    end_.sample = broadcast_from_holder(sample());
    end_.message = fmt::format("all {} steps are committed", state_.now.step.value);
    if (bool const none = so_far_.skipped > 0 && so_far_.skipped == state_.now.step.value; none || !std::isfinite(validation_loss_)) {
        end_.exit_code = exit_code(leave_reason::not_finite);
        end_.message += none ? ", but every one was skipped, because a loss or gradient was not finite: nothing was learned"
                             : ", but the validation loss of the last state is not finite: nothing finite was learned";
    }
    if (job_->config.checkpoint.at_end && !save(holders_of(job_->state, state_.plan.pipelines))) {
        end_.message += ", but the last state could not be saved";
        end_.exit_code = end_.exit_code == 0 ? 5 : end_.exit_code;
    }
    step_scalars pairs{{}, {pairs_by_me_ + worker_->contributions()}};
    all_reduce(*messages_, pairs);
    end_.pairs_by_survivors = pairs.sums.front();
}

void trainer::close()
{
    auto const reason = *state_.reason;
    if (job_->device != nullptr && !job_->config.power.sweep.empty() && !sweep_written_ &&
        (reason == leave_reason::finished || reason == leave_reason::stopped)) {
        gather_sweep();  // as far as it came
        write_sweep();
    }
    end_ = {};
    end_.exit_code = exit_code(reason);
    end_.steps = state_.now.step;
    end_.loss = so_far_.loss;
    end_.unigram_entropy = job_->data->unigram_entropy();
    if (auto const* drawn = job_->energies; drawn != nullptr && drawn->tokens() > 0) {
        end_.energy = drawn->total();
        end_.energy_missing = drawn->missing();
        end_.energy_per_token = drawn->total() / static_cast<double>(drawn->tokens());
        end_.energy_per_step = end_.energy_per_token * static_cast<double>(job_->microbatches() * microbatch_rows(job_->shape()));
    }
    switch (reason) {
    case leave_reason::finished: end_finished(); break;
    case leave_reason::stopped:
        end_.message = fmt::format("stopped after {} steps: the same command resumes", state_.now.step.value);
        if (!save(holders_of(job_->state, state_.plan.pipelines))) {
            end_.message = fmt::format("stopped after {} steps, but this state could not be saved", state_.now.step.value);
            end_.exit_code = 5;
        }
        break;
    case leave_reason::not_finite: end_.message = not_finite_; break;
    case leave_reason::bad_data: end_.message = data_changed_; break;
    case leave_reason::state_lost: {
        end_.message = "state lost: no survivor holds a copy of";
        for (auto const layer : state_.plan.salvage.lost) {
            end_.message +=
                fmt::format("{} layer {} ({})", layer == state_.plan.salvage.lost.front() ? "" : ",", layer.value, job_->model.layers[at(layer)].name);
        }
        if (error_of_lost_ != 0) {  // that is what has to change before the job can go on
            end_.exit_code = error_of_lost_;
            end_.message += "; ranks ended in errors of their own, see above";
        }
        // The lowest rank looks for a checkpoint; what it finds goes to all, so that all do the same.
        std::vector<std::int64_t> words(1 + steps_so_far::word_count, -1);
        if (is_reporter()) {
            look_for_checkpoint(words);
        }
        broadcast(*messages_, words);
        resume_from_.reset();
        if (words.front() >= 0) {
            resume_from_ = step_id{words.front()};
            resume_totals_ = steps_so_far::of(words, 1);
            job_->record->note(end_.message + fmt::format("; resuming from the checkpoint of step {}", words.front()));
        }
        break;
    }
    case leave_reason::no_plan: {
        auto const holdings = gather_holdings(*messages_, state_.holds);
        auto then = fmt::format("the state after {} steps is saved, and the same command resumes with more ranks", state_.now.step.value);
        if (!save(holders_of(job_->state, holdings))) {
            then = fmt::format("the state after {} steps could not be saved", state_.now.step.value);
            end_.exit_code = 5;
        }
        end_.message = fmt::format("no plan: {}; {}", state_.plan.error, then);
        break;
    }
    case leave_reason::drained:
    case leave_reason::fenced: break;
    }
    end_.steps_skipped = so_far_.skipped;
    end_.evaluations_not_finite = so_far_.evaluations_not_finite;
}

/// The step of the newest checkpoint and what is known of the steps before it; what cannot be read is reported.
void trainer::look_for_checkpoint(std::vector<std::int64_t>& words)
{
    try {
        auto const found = find_earlier_state(job_->config.run.folder);
        for (auto const& message : found.skipped) {
            job_->record->alone(message);
        }
        if (found.newest) {
            words = steps_of_records(job_->config.run.folder, found.newest->step()).words();
            words.insert(words.begin(), found.newest->step().value);
        }
    } catch (checkpoint_error const& error) {
        job_->record->alone(error.what());
    }
}

bool trainer::save(tensor_holders const& holders)
{
    auto const nobody_misses = [&](bool mine) {
        step_scalars missing{{}, {mine ? 0 : 1}};
        all_reduce(*messages_, missing);
        return missing.sums.front() == 0;
    };
    auto const publish = [&](step_id step, bool ready) {
        checkpoints_.publish_now(ready);  // whoever publishes has done so when all meet again
        bool const there = nobody_misses(true) && nobody_misses(std::filesystem::exists(checkpoint_folder(job_->config.run.folder, step)));
        checkpoints_.settled(there);
        return there;
    };
    if (auto const earlier = checkpoints_.in_publication()) {
        publish(*earlier, true);
    }
    bool there = false;
    for (int tries = 0; tries < 2 && !there; ++tries) {
        there = publish(state_.now.step, nobody_misses(checkpoints_.write_now(state_.now.step, generation_->id, holders, resident_)));
    }
    checkpoints_.report(*job_->record);
    return there;
}

/// The token that follows a row of the logits: at temperature 0.7, drawn by the counter-based generator, the same text for the same state.
std::int64_t trainer::drawn_token(stage const& layers, activation const& kept, std::int64_t row, int number) const
{
    auto const logits = layers.logits(kept, row);
    auto const top = *std::max_element(logits.begin(), logits.end());
    std::vector<double> weights;
    double total = 0;
    for (auto const logit : logits) {
        weights.push_back(std::exp((logit - top) / 0.7));
        total += weights.back();
    }
    auto const stream = stream_of({.seed = job_->config.train.seed, .step = step_id{-2}});
    double left = total * random_word(stream, static_cast<std::uint64_t>(number)) * 0x1p-32;
    std::int64_t next = 0;
    while (next + 1 < std::ssize(logits) && left >= weights[static_cast<std::size_t>(next)]) {
        left -= weights[static_cast<std::size_t>(next++)];
    }
    return next;
}

std::string trainer::sample()
{
    auto const wanted_tokens = job_->config.run.sample_tokens;
    auto const& pipeline = state_.plan.pipelines.front();
    auto const place = worker_->place();
    if (wanted_tokens == 0 || !job_->data->is_text() || !place.found || place.pipeline.value != 0) {
        return {};
    }
    // One sequence through the first pipeline, forward only; the last stage draws and tells the first. Where the model is there twice, the first copy.
    microbatch_shape const shape{1, job_->shape().tokens};
    auto const stages = stage_count(pipeline.cuts);
    struct at_work {
        std::unique_ptr<stage> layers;
        std::unique_ptr<activation> kept;
    };
    std::vector<at_work> mine(static_cast<std::size_t>(stages));
    for (int s = 0; s < stages; ++s) {
        if (auto const span = layers_of(pipeline, stage_id{s}); rank_of(pipeline, stage_id{s}) == self_) {
            auto& here = mine[static_cast<std::size_t>(s)];
            here.layers = job_->backend->make_stage(std::span{job_->model.layers}.subspan(at(span.begin), static_cast<std::size_t>(size(span))), span.begin,
                                                    shape, 1, resident_);
            here.kept = std::make_unique<activation>(here.layers->layout());
        }
    }
    auto const first = rank_of(pipeline, stage_id{0});
    auto const last = rank_of(pipeline, stage_id{stages - 1});
    array<std::byte> arrived{job_->backend->messages()};
    std::string text{"#include"};  // whole on the first stage, which reads it, and on the last, which writes it
    for (int i = 0; i < wanted_tokens; ++i) {
        auto const window = std::min<std::size_t>(text.size(), static_cast<std::size_t>(shape.tokens));
        std::int64_t next = 0;
        for (int s = 0; s < stages; ++s) {
            auto& [layers, kept] = mine[static_cast<std::size_t>(s)];
            if (layers == nullptr) {
                continue;
            }
            auto const beside = [&](int other) { return rank_of(pipeline, stage_id{other}); };
            if (s == 0) {
                std::fill(kept->tokens.begin(), kept->tokens.end(), 0);
                for (std::size_t k = 0; k < window; ++k) {
                    kept->tokens[k] = static_cast<unsigned char>(text[text.size() - window + k]);
                }
            } else if (beside(s - 1) != self_) {
                arrived.resize(layers->input_bytes());
                messages_->wait(messages_->receive(beside(s - 1), mpi::channel::activation, s, std::span<std::byte>{arrived}));
                job_->backend->copy(layers->input(*kept), arrived.data(), arrived.size());
            } else {
                auto const& before = mine[static_cast<std::size_t>(s - 1)];
                job_->backend->copy(layers->input(*kept), before.layers->output(*before.kept), layers->input_bytes());
            }
            std::fill(kept->targets.begin(), kept->targets.end(), 0);
            loss_sum unused;
            layers->forward(*kept, {.seed = 0, .step = {}, .microbatch = {}, .training = false}, unused);
            job_->backend->wait();
            if (s + 1 == stages) {
                next = drawn_token(*layers, *kept, static_cast<std::int64_t>(window) - 1, i);
            } else if (beside(s + 1) != self_) {
                std::deque<array<std::byte>> copies;
                auto const sent = on_host(*job_->backend, copies, static_cast<std::byte const*>(layers->output(*kept)), layers->output_bytes());
                messages_->wait(messages_->send(beside(s + 1), mpi::channel::activation, s + 1, sent));
            }
        }
        if (self_ == last && self_ != first) {
            messages_->wait(messages_->send(first, mpi::channel::control, 0, std::span<std::int64_t const>{&next, 1}));
        } else if (self_ == first && self_ != last) {
            messages_->wait(messages_->receive(last, mpi::channel::control, 0, std::span{&next, 1}));
        }
        text += static_cast<char>(next);
    }
    return self_ == last ? text : std::string{};
}

/// The one text that a rank has, on every rank: whoever speaks needs it.
std::string trainer::broadcast_from_holder(std::string const& mine)
{
    auto const all = all_gather(*messages_, std::vector<std::int64_t>(mine.begin(), mine.end()));
    std::string text;
    for (auto const& words : all) {
        for (auto const word : words) {
            text += static_cast<char>(word);
        }
    }
    return text;
}

}  // namespace rheo::inline v0
