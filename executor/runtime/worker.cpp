// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker.hpp"

#include <algorithm>
#include <utility>

namespace rheo::inline v0 {

namespace {

void note_not_finite(gradient_accumulator& sums, microbatch_id m)
{
    if (sums.state.not_finite && sums.not_finite_at.value < 0) {
        sums.not_finite_at = m;
    }
}

}  // namespace

worker::worker(job const& about, plan const& where, rank_id me, resident_state& state)
    : job_{&about}, place_{position_of(where, me)}, state_{&state}, me_{me}
{
    if (!place_.found) {
        return;
    }
    auto const& pipeline = where.pipelines[at(place_.pipeline)];
    for (auto const& ranks : pipeline.stages) {
        ranks_.push_back(ranks.front());
    }
    auto const layers = layers_of(pipeline.cuts, place_.stage);
    stage_ = std::make_unique<stage>(std::span{about.model.layers}.subspan(at(layers.begin), static_cast<std::size_t>(size(layers))),
                                     layers.begin, about.shape(), about.microbatches(), state, *about.pool);
    by_unit_.resize(about.units.size());
    for (std::size_t u = 0; u < about.units.size(); ++u) {
        auto const& unit = about.units[u];
        std::vector<rank_id> holders;
        for (auto const& p : where.pipelines) {
            for (std::size_t s = 0; s < p.stages.size(); ++s) {
                auto const span = layers_of(p.cuts, stage_id{static_cast<int>(s)});
                if (std::any_of(unit.layers.begin(), unit.layers.end(), [&](layer_id l) { return contains(span, l); })) {
                    holders.push_back(p.stages[s].front());
                }
            }
        }
        std::sort(holders.begin(), holders.end());
        if (!unit.tensors.empty() && std::binary_search(holders.begin(), holders.end(), me)) {
            reductions_.emplace_back(reduction_id{static_cast<std::int32_t>(u)}, unit, holders, state, *about.pool);
            by_unit_[u] = &reductions_.back();
        }
    }
}

rank_id worker::neighbour(int offset) const { return ranks_[static_cast<std::size_t>(place_.stage.value + offset)]; }

int worker::item_of(int stage, microbatch_id m) const { return stage * microbatches_in_messages(job_->config.train) + m.value; }

worker::flight& worker::flight_of(microbatch_id m)
{
    auto const [place, is_new] = flights_.try_emplace(m.value);
    if (is_new && !spare_.empty()) {
        place->second = std::move(spare_.back());
        spare_.pop_back();
    }
    auto& f = place->second;
    if (f.kept == nullptr) {
        f.kept = std::make_unique<activation>(stage_->layout());
    }
    return f;
}

void worker::retire(mpi::messenger& messages, bool wait)
{
    for (std::size_t i = 0; i < leaving_.size();) {
        auto& f = leaving_[i];
        auto const finished = [&](bool& sending, mpi::messenger::ticket ticket) {
            if (sending && wait) {
                messages.wait(ticket);
                sending = false;
            }
            if (sending && messages.done(ticket)) {
                sending = false;
            }
            return !sending;
        };
        bool const output = finished(f.sending_output, f.output_sent);
        if (finished(f.sending_gradient, f.gradient_sent) && output) {
            f.has_input = f.has_gradient = false;
            spare_.push_back(std::move(f));
            leaving_.erase(leaving_.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            ++i;
        }
    }
}

void worker::reset()
{
    for (auto& [m, f] : flights_) {
        leaving_.push_back(std::move(f));
    }
    flights_.clear();
    for (auto& f : leaving_) {
        f.has_input = f.has_gradient = f.sending_output = f.sending_gradient = false;
        spare_.push_back(std::move(f));
    }
    leaving_.clear();
    for (auto& r : reductions_) {
        r.reset();
    }
}

void worker::run(std::vector<instruction> const& row, std::span<microbatch_work const> work, section_context const& context, mpi::messenger& messages,
                 std::function<bool(use_id, microbatch_id)> const& wanted,
                 std::function<void(use_id, microbatch_id)> const& contributed, loss_sum& evaluation)
{
    todo_.clear();
    for (auto const& w : work) {
        todo_[w.microbatch.value] = {0, w.deepest};
    }
    for (auto const& i : row) {
        if (!is_reduction(i.kind)) {
            auto const found = todo_.find(i.item);
            expects(found != todo_.end(), "a program runs microbatches of its plan");
            ++found->second.instructions;
        }
    }
    bool awaiting = false;
    for (auto const& i : row) {
        if (i.kind == instruction_kind::await_reduction && !std::exchange(awaiting, true)) {
            job_->inject.at(fault_phase::reduce, context.step, context.attempt);
        }
        messages.look();
        began_ = job_->clock.now();
        execute(i, context, messages, wanted, contributed, evaluation);
        job_->progress();
        job_->record->event({.rank = me_, .what = activity_of(i.kind), .pipeline = place_.pipeline, .stage = place_.stage, .item = i.item,
                             .generation = context.generation, .step = context.step, .attempt = context.attempt, .start = began_,
                             .end = job_->clock.now()});
        for (auto& r : reductions_) {  // sums go on beside the computations
            if (r.posted()) {
                r.advance(messages);
            }
        }
        if (!is_reduction(i.kind) && --todo_[i.item].instructions == 0) {
            auto const place = flights_.find(i.item);
            leaving_.push_back(std::move(place->second));
            flights_.erase(place);
        }
        retire(messages, false);
    }
    retire(messages, true);
}

void worker::execute(instruction i, section_context const& context, mpi::messenger& messages,
                     std::function<bool(use_id, microbatch_id)> const& wanted,
                     std::function<void(use_id, microbatch_id)> const& contributed, loss_sum& evaluation)
{
    using enum instruction_kind;
    if (is_reduction(i.kind)) {
        auto& r = *by_unit_[at(reduction_of(i))];
        if (i.kind == post_reduction) {
            r.reset();
            r.post(messages);
        } else {
            messages.wait_until([&] { return r.advance(messages); });
        }
        return;
    }
    auto const m = microbatch_of(i);
    auto& f = flight_of(m);
    auto& a = *f.kept;
    stage_item const item{job_->config.train.seed, context.step, m, context.training};
    auto const wait = [&](bool& pending, mpi::messenger::ticket ticket) {
        if (std::exchange(pending, false)) {
            messages.wait(ticket);
        }
    };
    switch (i.kind) {
    case receive_activation:
        f.input = messages.receive(neighbour(-1), mpi::channel::activation, item_of(i.stage, m),
                                   std::span<float>{stage_->input(a), stage_->input_floats()});
        f.has_input = true;
        break;
    case forward: {
        wait(f.has_input, f.input);
        began_ = job_->clock.now();
        if (stage_->input_floats() == 0 || stage_->has_loss()) {
            if (context.training) {
                job_->data->training_microbatch(item.seed, context.step, m, a.tokens, a.targets);
            } else {
                job_->data->validation_microbatch(m, a.tokens, a.targets);
            }
        }
        loss_sum loss;
        stage_->forward(a, item, loss);
        if (stage_->has_loss() && !context.training) {
            evaluation = evaluation + loss;
        } else if (stage_->has_loss() && wanted(stage_->loss_use(), m)) {
            auto& sums = state_->accumulator(stage_->loss_use());
            sums.sums[0] += loss.fixed;
            sums.sums[1] += loss.targets;
            sums.state.not_finite |= loss.not_finite;
            note_not_finite(sums, m);
            contributed(stage_->loss_use(), m);
            ++contributions_;
        }
        computed();
        job_->inject.at(fault_phase::forward, context.step, context.attempt);
        break;
    }
    case send_activation:
        f.output_sent = messages.send(neighbour(+1), mpi::channel::activation, item_of(i.stage + 1, m),
                                      std::span<float const>{stage_->output(a), stage_->output_floats()});
        f.sending_output = true;
        break;
    case receive_gradient:
        f.gradient_in.resize(stage_->output_floats());
        f.gradient = messages.receive(neighbour(+1), mpi::channel::gradient, item_of(i.stage, m), std::span{f.gradient_in});
        f.has_gradient = true;
        break;
    case backward: {
        wait(f.has_gradient, f.gradient);
        wait(f.sending_output, f.output_sent);  // the backward may write over what was sent
        began_ = job_->clock.now();
        f.gradient_out.resize(stage_->input_floats());
        auto const lowest = std::max(stage_->first_layer(), todo_[m.value].deepest);
        stage_->backward(a, item, lowest, stage_->has_loss() ? nullptr : f.gradient_in.data(),
                         f.gradient_out.empty() ? nullptr : f.gradient_out.data(), [&](use_id use) { return wanted(use, m); });
        for (auto const use : stage_->uses()) {
            if (stage_->above(use, lowest) && wanted(use, m)) {
                note_not_finite(state_->accumulator(use), m);
                contributed(use, m);
                ++contributions_;
            }
        }
        computed();
        job_->inject.at(fault_phase::backward, context.step, context.attempt);
        break;
    }
    case send_gradient:
        f.gradient_sent = messages.send(neighbour(-1), mpi::channel::gradient, item_of(i.stage - 1, m), std::span<float const>{f.gradient_out});
        f.sending_gradient = true;
        break;
    default: throw precondition_error{"this executor runs programs whose backward is not split"};
    }
}

}  // namespace rheo::inline v0
