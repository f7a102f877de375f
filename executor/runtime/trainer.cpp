// SPDX-License-Identifier: Apache-2.0
#include "runtime/trainer.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>
#include <stdexcept>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include "kernels/adamw/adamw.hpp"
#include "kernels/exact/exact.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/schedule/deadlock.hpp"
#include "runtime/collectives.hpp"
#include "runtime/fence.hpp"

namespace rheo::inline v0 {

namespace {

/// The scale of the first attempt, which is always redone with the scales that its own maxima ask for.
constexpr int first_scale_log2 = 24;

std::vector<layer_id> all_layers(int count)
{
    std::vector<layer_id> layers;
    for (layer_id l{0}; l.value < count; ++l) {
        layers.push_back(l);
    }
    return layers;
}

/// Linear warm-up, then half a cosine.
double learning_rate(optimizer_config const& o, std::int64_t steps, step_id step)
{
    if (step.value < o.warmup_steps) {
        return o.learning_rate * static_cast<double>(step.value + 1) / static_cast<double>(o.warmup_steps);
    }
    auto const t = static_cast<double>(step.value - o.warmup_steps) / static_cast<double>(std::max<std::int64_t>(1, steps - o.warmup_steps));
    return o.final_learning_rate + 0.5 * (o.learning_rate - o.final_learning_rate) * (1 + std::cos(std::numbers::pi * t));
}

/// Where something is not finite, packed so that the largest value is the first microbatch in the model's order.
constexpr double no_place = 0;
double pack_place(microbatch_id m, layer_id layer) { return 1e12 - (m.value * 1e5 + layer.value); }
std::pair<microbatch_id, layer_id> unpack_place(double place)
{
    auto const code = static_cast<std::int64_t>(1e12 - place);
    return {microbatch_id{static_cast<std::int32_t>(code / 100000)}, layer_id{static_cast<std::int32_t>(code % 100000)}};
}

}  // namespace

trainer::trainer(job const& about, std::unique_ptr<mpi::generation> begins, launch_id launch, plan first, replanning known,
                 std::optional<checkpoint> from)
    : job_{&about}, me_{begins->me}, first_{std::move(first)}, known_{std::move(known)}, generation_{std::move(begins)}, resident_{about.state},
      from_{std::move(from)}, checkpoints_{about, me_, from_ ? std::optional{from_->step()} : std::nullopt}
{
    resident_.scales.assign(about.state.tensors.size(), first_scale_log2);
    if (from_) {
        resident_.scales = from_->scales(about.state, first_scale_log2);
    }
    auto began = start_protocol<recovery_plan>({.launch = launch, .ended = generation_id{generation_->id.value - 1},
                                                .last = step_id{about.config.train.steps}, .members = generation_->members,
                                                .holds = {me_, from_ ? from_->step() : step_id{0}, all_layers(about.layers()), {}}});
    state_ = std::move(began.state);
    action_ = std::move(began.action);
    job_->record->speaker(speaks());
}

training_end trainer::run()
{
    auto const planner = [this](std::vector<rank_holdings> const& told) { return plan_for(told); };
    for (;;) {
        if (auto const* end = std::get_if<leave>(&action_)) {
            if (end->reason == leave_reason::fenced) {
                kill(getpid(), SIGKILL);  // others have gone on without this rank: nothing of it may reach them
            }
            return {end->reason, end_, goes_on_from_};
        }
        protocol_event event;
        try {
            event = std::visit(
                [this](auto const& action) -> protocol_event {
                    if constexpr (std::is_same_v<std::decay_t<decltype(action)>, leave>) {
                        return updated{};
                    } else {
                        return perform(action);
                    }
                },
                action_);
        } catch (mpi::peer_lost const&) {
            if (!recovery_) {
                recovery_.emplace();
                recovery_->detect = since(progress_);
                before_ = generation_->members;
                trace(activity::detect, progress_);
            }
            if (worker_) {
                worker_->reset();
            }
            staged_.clear();
            event = rheo::peer_lost{};
        }
        progress_ = job_->clock.now();
        job_->progress();
        auto next = advance(std::move(state_), event, planner);
        state_ = std::move(next.state);
        action_ = std::move(next.action);
    }
}

void trainer::trace(activity what, seconds start)
{
    job_->record->event({.rank = me_, .what = what, .generation = state_.now.generation, .step = state_.now.step,
                         .attempt = state_.now.attempt, .start = start, .end = job_->clock.now()});
}

// ---- planning ----------------------------------------------------------------------------------------------

recovery_plan trainer::plan_for(std::vector<rank_holdings> const& told)
{
    auto const start = job_->clock.now();
    std::size_t places = first_.spares.size();
    for (auto const& pipeline : first_.pipelines) {
        places += pipeline.stages.size();
    }
    recovery_plan result;
    if (told.size() == places) {  // nobody has been lost yet
        recomposition chosen;
        chosen.pipelines = first_.pipelines;
        chosen.spares = first_.spares;
        for (auto const& work : first_.work) {
            chosen.shares.push_back(static_cast<int>(work.size()));
        }
        result = replan(told, known_, std::move(chosen));
    } else {
        result = replan(told, known_);
    }
    trace(activity::plan, start);
    if (recovery_) {
        recovery_->plan = since(start);
    }
    return result;
}

plan trainer::plan_in_force(section_work work) const
{
    auto const& p = state_.plan;
    return {first_.schedule, p.pipelines, work == section_work::remainder ? p.salvage.work : deal(p.shares), p.spares};
}

std::vector<program> const& trainer::programs_for(section_work work)
{
    if (programs_are_for_ != work) {
        plan_ = plan_in_force(work);
        programs_ = programs_of(plan_, job_->units, job_->layers());
        if (auto const proof = deadlock_free<rendezvous>(std::span<program const>{programs_}); !proof) {
            throw std::logic_error{"the plan cannot be run: " + proof.sentence()};
        }
        programs_are_for_ = work;
    }
    return programs_;
}

// ---- a step ------------------------------------------------------------------------------------------------

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
    auto const& programs = programs_for(action.work);
    auto const place = worker_->place();
    contributed_before_ = worker_->contributions();
    worker_->computed = [this] {
        if (recovery_) {
            close_recovery_record(since(merged_at_));
        }
        progress_ = job_->clock.now();
    };
    if (place.found) {
        loss_sum unused;
        worker_->run(
            programs[at(place.pipeline)].rows[at(place.stage)], plan_.work[at(place.pipeline)],
            {action.stamp.generation, action.stamp.step, action.stamp.attempt, true}, *messages_,
            [this](use_id use, microbatch_id m) { return wanted(state_, use, m); },
            [this](use_id use, microbatch_id m) { note(state_, contributed{use, m}); }, unused);
    }
    auto const found = reduce_scalars(action);
    if (recovery_) {
        close_recovery_record({});
    }
    job_->inject.at(fault_phase::decide, action.stamp.step, action.stamp.attempt);
    return section_finished{found, checkpoints_.consents()};
}

outcome trainer::reduce_scalars(run_section const& action)
{
    auto const tensors = job_->state.tensors.size();
    step_scalars scalars{std::vector<double>(2 * tensors + 4, 0.0), std::vector<std::int64_t>(3, 0)};
    auto const squares = scalars.maxima.begin();
    auto const maxima = squares + static_cast<std::ptrdiff_t>(tensors);
    double& overflow = scalars.maxima[2 * tensors];
    double& place = scalars.maxima[2 * tensors + 1];
    double& stop = scalars.maxima[2 * tensors + 2];
    double& save = scalars.maxima[2 * tensors + 3];
    stop = job_->asked_to_stop && job_->asked_to_stop() ? 1 : 0;
    save = checkpoints_.wants_one() ? 1 : 0;
    for (std::size_t u = 0; u < job_->state.uses.size(); ++u) {
        use_id const use{static_cast<std::int32_t>(u)};
        if (!resident_.has_accumulator(use)) {
            continue;
        }
        auto const& info = job_->state.uses[u];
        auto const& accumulator = resident_.accumulator(use);
        auto& largest = maxima[info.tensor.value];
        largest = std::max(largest, static_cast<double>(accumulator.state.max_abs));
        overflow = std::max(overflow, accumulator.state.overflow ? 1.0 : 0.0);
        if (accumulator.state.not_finite) {
            place = std::max(place, pack_place(accumulator.not_finite_at, info.layer));
        }
        if (!job_->state.tensors[at(info.tensor)].is_parameter) {
            scalars.sums[0] = accumulator.sums[0];
            scalars.sums[1] = accumulator.sums[1];
        }
    }
    for (auto const& r : worker_->reductions()) {
        for (auto const t : r.unit().tensors) {
            auto const sum = host::sum_of_squares(*job_->pool, {.count = elements(resident_.info(t).shape), .gradient = r.gradient(t)});
            squares[t.value] = std::isfinite(sum) ? sum : 0.0;
        }
    }
    scalars.sums[2] = worker_->contributions() - contributed_before_;
    all_reduce(*messages_, scalars);
    pairs_of_section_ = scalars.sums[2];
    squares_.assign(squares, maxima);
    maxima_.assign(maxima, maxima + static_cast<std::ptrdiff_t>(tensors));
    loss_ = {.fixed = scalars.sums[0], .targets = scalars.sums[1]};
    wants_checkpoint_ = save != 0;
    not_finite_.clear();
    if (place != no_place) {
        auto const [microbatch, layer] = unpack_place(place);
        not_finite_ = fmt::format("step {}: a loss or gradient of layer {} ({}), microbatch {}, is not finite", action.stamp.step.value,
                                  layer.value, job_->model.layers[at(layer)].name, microbatch.value);
    }
    bool const first = action.stamp.step.value == 0 && action.stamp.attempt.value == 0;
    return outcome_of({.not_finite = place != no_place, .overflow = first || overflow != 0, .stop_requested = stop != 0},
                      job_->config.train.skip_not_finite ? when_not_finite::skip_step : when_not_finite::end);
}

void trainer::choose_scales()
{
    for (std::size_t t = 0; t < resident_.scales.size(); ++t) {
        tensor_id const id{static_cast<std::int32_t>(t)};
        resident_.scales[t] = next_scale(maxima_[t], resident_.contributions(id, job_->microbatches()), resident_.scales[t]);
    }
}

void trainer::update_parameters(step_id step)
{
    double sum = 0;
    for (auto const s : squares_) {
        sum += s;
    }
    auto const targets = static_cast<double>(std::max<std::int64_t>(1, loss_.targets));
    gradient_norm_ = std::sqrt(sum) / targets;
    auto const& o = job_->config.optimizer;
    for (auto const& r : worker_->reductions()) {
        for (auto const t : r.unit().tensors) {
            auto& storage = resident_.tensor(t);
            host::adamw(*job_->pool, {.count = static_cast<std::int64_t>(storage.parameter.size()), .master = storage.parameter.data(),
                                      .first_moment = storage.first_moment.data(), .second_moment = storage.second_moment.data(),
                                      .gradient = r.gradient(t),
                                      .gradient_multiplier = clip_factor(gradient_norm_, o.clip_norm) / targets,
                                      .learning_rate = learning_rate(o, job_->config.train.steps, step), .beta1 = o.beta1,
                                      .beta2 = o.beta2, .epsilon = o.epsilon,
                                      .weight_decay = resident_.info(t).decays ? o.weight_decay : 0.0, .step = step.value + 1});
        }
    }
}

protocol_event trainer::perform(update_state const& action)
{
    auto const step = state_.now.step;
    job_->inject.at(fault_phase::commit, step, state_.now.attempt);
    auto const start = job_->clock.now();
    bool const commits = action.found == outcome::commit || action.found == outcome::stop;
    checkpoints_.agreed(action.consents);
    if (commits) {
        update_parameters(step);
    }
    if (commits || action.found == outcome::redo) {
        choose_scales();
    }
    resident_.clear_accumulators(*job_->pool);
    trace(activity::update, start);
    bool const redone = action.found == outcome::redo;
    if (!redone) {
        last_loss_ = mean_loss(loss_);
    }
    job_->record->step({.step = step, .of_steps = job_->config.train.steps, .attempt = state_.now.attempt, .loss = mean_loss(loss_),
                        .gradient_norm = gradient_norm_,
                        .learning_rate = learning_rate(job_->config.optimizer, job_->config.train.steps, step),
                        .tokens = job_->microbatches() * rows(job_->shape()), .duration = since(section_began_),
                        .ranks = static_cast<int>(generation_->members.size()), .recoveries = recoveries_,
                        .skipped = action.found == outcome::skip, .redone = redone, .pairs_computed = pairs_of_section_});
    if (!redone) {
        checkpoints_.committed(step_id{step.value + 1}, wants_checkpoint_, generation_->id, state_.plan.pipelines, resident_);
    }
    for (auto const& sentence : checkpoints_.news()) {
        job_->record->note(sentence);
    }
    programs_are_for_ = programs_are_for_ == section_work::whole ? programs_are_for_ : std::nullopt;
    job_->inject.at(fault_phase::idle, step, state_.now.attempt);
    return updated{};
}

protocol_event trainer::perform(decide const& action)
{
    auto const start = job_->clock.now();
    watchdog::wait const waits{job_->watch};
    auto const agreed = mpi::agree(generation_->recovery, static_cast<int>(action.vote));
    trace(activity::decide, start);
    if (recovery_) {
        recovery_->decide += since(start);
    } else if (!agreed.success || (agreed.bits & 1) == 0) {
        recovery_.emplace();
        recovery_->decide = since(start);
        before_ = generation_->members;
    }
    return decided{agreed.success, static_cast<std::uint32_t>(agreed.bits)};
}

// ---- a recovery --------------------------------------------------------------------------------------------

protocol_event trainer::perform(revoke_generation const&)
{
    auto const start = job_->clock.now();
    generation_->revoke();  // whoever threw peer_lost has done so already; this is for one who only looked
    trace(activity::revoke, start);
    recovery_->revoke += since(start);
    return revoked{};
}

protocol_event trainer::perform(shrink const&)
{
    job_->inject.at(fault_phase::shrink, state_.now.step, state_.now.attempt);
    auto const start = job_->clock.now();
    watchdog::wait const waits{job_->watch};
    messages_.reset();
    generation_->revoke();  // a vote that was not settled ends the generation for those who are still in it, too
    generation_ = std::make_unique<mpi::generation>(mpi::next_generation(*generation_));
    job_->record->speaker(speaks());
    checkpoints_.generation_ended(speaks());
    trace(activity::shrink, start);
    auto& r = *recovery_;
    r.shrink += since(start);
    r.generation = generation_->id;
    r.step = state_.now.step;
    r.attempt = state_.now.attempt;
    r.ranks = static_cast<int>(generation_->members.size());
    r.lost.clear();
    std::set_difference(before_.begin(), before_.end(), generation_->members.begin(), generation_->members.end(), std::back_inserter(r.lost));
    return shrunk{generation_->members};
}

protocol_event trainer::perform(link_generation const& action)
{
    auto const start = job_->clock.now();
    bool const ours = link_generation_file(job_->config.run.folder, action, me_);
    trace(activity::link, start);
    if (recovery_) {
        recovery_->link += since(start);
    }
    return ours ? protocol_event{linked{}} : protocol_event{fenced{}};
}

protocol_event trainer::perform(tell const& action)
{
    auto const start = job_->clock.now();
    messages_ = std::make_unique<mpi::messenger>(*generation_, job_->signs_of_life());
    messages_->look();
    auto all = tell_holdings(*messages_, action.holds);
    trace(activity::tell, start);
    if (recovery_) {
        recovery_->tell = since(start);
    }
    return told{std::move(all)};
}

protocol_event trainer::perform(copy_state const&)
{
    auto const start = job_->clock.now();
    auto const& next = *state_.next;
    auto const has_all = [&](layer_id layer) {
        for (std::size_t t = 0; t < job_->state.tensors.size(); ++t) {
            auto const& tensor = job_->state.tensors[t];
            if (tensor.is_parameter && std::binary_search(tensor.layers.begin(), tensor.layers.end(), layer)
                && !resident_.holds(tensor_id{static_cast<std::int32_t>(t)})) {
                return false;
            }
        }
        return true;
    };
    staged_ = transfer(
        *messages_, next, resident_, [&] { job_->inject.at(fault_phase::copy, state_.now.step, state_.now.attempt); },
        [&](tensor_id t) {
            for (auto const layer : resident_.info(t).layers) {
                if (has_all(layer)) {
                    note(state_, received{layer});
                }
            }
        });
    trace(activity::copy, start);
    if (recovery_) {
        recovery_->copy = since(start);
    }
    return copied{};
}

protocol_event trainer::perform(merge_staging const&)
{
    auto const start = job_->clock.now();
    auto const& next = *state_.next;
    auto const mine = std::find_if(next.salvage.after.begin(), next.salvage.after.end(), [&](auto const& holds) { return holds.rank == me_; });
    auto const has_layer = [&](layer_id layer) { return std::binary_search(mine->layers.begin(), mine->layers.end(), layer); };
    for (std::size_t t = 0; t < job_->state.tensors.size(); ++t) {
        tensor_id const id{static_cast<std::int32_t>(t)};
        auto const& tensor = job_->state.tensors[t];
        bool const needed = tensor.is_parameter && std::any_of(tensor.layers.begin(), tensor.layers.end(), has_layer);
        if (!needed) {
            resident_.drop(id);
        } else if (!resident_.holds(id) && from_) {
            expects(state_.now.step == from_->step(), "only the first state of a job can be read from its checkpoint");
            resident_.put(id, std::make_unique<tensor_storage>(from_->read(tensor.name)));
        } else if (!resident_.holds(id)) {
            expects(state_.now.step.value == 0, "only the first state of a job can be made from the seed");
            initialise(resident_, id, job_->config.train.seed, *job_->pool);
        }
    }
    for (std::size_t u = 0; u < job_->state.uses.size(); ++u) {
        use_id const use{static_cast<std::int32_t>(u)};
        if (has_layer(job_->state.uses[u].layer)) {
            resident_.accumulator(use);
        } else {
            resident_.drop_accumulator(use);
        }
    }
    for (auto const& arrived : staged_) {
        auto& target = resident_.accumulator(arrived.use);
        host::exact_add(*job_->pool, {.count = static_cast<std::int64_t>(target.sums.size()), .source = arrived.sums.sums.data(),
                                      .target = target.sums.data()});
        target.state = joined(target.state, arrived.sums.state);
        if (target.not_finite_at.value < 0) {
            target.not_finite_at = arrived.sums.not_finite_at;
        }
    }
    staged_.clear();
    pairs_computed_ += worker_ ? worker_->contributions() : 0;
    plan const where{first_.schedule, next.pipelines, {}, next.spares};
    worker_ = std::make_unique<worker>(*job_, where, me_, resident_);
    programs_are_for_.reset();
    trace(activity::merge, start);
    merged_at_ = job_->clock.now();
    if (recovery_) {
        recovery_->merge = since(start);
        auto& r = *recovery_;
        r.pipelines = static_cast<int>(next.pipelines.size());
        r.copied_bytes = next.moved.count;
        r.moved_bytes = 0;  // a record begun before an earlier merge that came to nothing has its numbers
        for (auto const& move : next.salvage.moves) {
            r.moved_bytes += 8 * elements(resident_.info(job_->state.uses[at(move.use)].tensor).shape);
        }
        r.pairs_missing = r.pairs_total = 0;
        if (state_.now.step.value < job_->config.train.steps) {  // else there is nothing left to compute
            for (auto const& use : next.salvage.missing) {
                r.pairs_missing += use.done.size();
            }
            r.pairs_total = static_cast<std::int64_t>(job_->state.uses.size()) * job_->microbatches();
        }
        r.pairs_salvaged = r.pairs_total - r.pairs_missing;
        ++recoveries_;
    }
    return merged{};
}

void trainer::close_recovery_record(seconds first_instruction)
{
    recovery_->first_instruction = first_instruction;
    if (first_instruction.count > 0) {
        trace(activity::first_instruction, merged_at_);
    }
    job_->record->recovery(*recovery_);
    recovery_.reset();
}

}  // namespace rheo::inline v0
