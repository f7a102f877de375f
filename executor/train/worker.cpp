// SPDX-License-Identifier: Apache-2.0
// The worker's place and its loop: what a rank has, and one instruction after the other. What each does is in worker_instructions.cpp.
#include "executor/train/worker.hpp"

#include <algorithm>
#include <utility>

#include "executor/train/parts/member_exchange.hpp"
#include "executor/transport/mpi_transport.hpp"
#include "rheo/pipeline/shares.hpp"

namespace rheo::inline v0 {

worker::worker(job const& about, rank_services const& services, plan const& where, rank_id self, resident_state& state)
    : job_{&about}, with_{&services}, place_{position_of(where, self)}, state_{&state}, self_{self}
{
    if (!place_.found) {
        return;
    }
    auto const& pipeline = where.pipelines[at(place_.pipeline)];
    auto const chain = stages_per_copy_ = stage_count(pipeline.cuts);
    auto const recompute_levels = recompute_levels_at(where, place_);
    auto const groups = groups_of(pipeline);
    group_ = groups[static_cast<std::size_t>(place_.position)];
    auto const share = group_at(pipeline, place_.position, about.grid(), place_.member);
    auto const is_mine = [&](int number) { return pipeline.stages[static_cast<std::size_t>(number)] == group_; };
    auto const boundary_with = [&](int other, int number, stage const& layers, std::size_t matrix) {
        return is_mine(other) ? stage_boundary{}
                              : boundary_between(pipeline, stage_id{number}, stage_id{other}, layers.own_rows(), layers.rows(), about.grid(), matrix);
    };
    for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) {
        if (!is_mine(s)) {
            continue;
        }
        auto const layers = layers_of(pipeline, stage_id{s});
        place_of_stage here{services.backend.make_stage(
            std::span{about.model.layers}.subspan(at(layers.begin), static_cast<std::size_t>(size(layers))), layers.begin, about.shape(), about.microbatches(),
            state, recompute_levels.empty() ? recompute_levels : recompute_levels.subspan(at(layers.begin), static_cast<std::size_t>(size(layers))), share)};
        if (s % chain > 0) {
            here.before = neighbours_in(pipeline, stage_id{s - 1}, here.layers->own_rows(), here.layers->rows(), about.grid());
            here.before_is_mine = is_mine(s - 1);
            here.boundary_before = boundary_with(s - 1, s, *here.layers, here.layers->input_bytes());
        }
        if (s % chain + 1 < chain) {
            here.after = neighbours_in(pipeline, stage_id{s + 1}, here.layers->own_rows(), here.layers->rows(), about.grid());
            here.after_is_mine = is_mine(s + 1);
            here.boundary_after = boundary_with(s + 1, s, *here.layers, here.layers->output_bytes());
        }
        here.layers->count_in(meter_);
        here.layers->recompute_into(recompute_buffers_);
        stages_.emplace(s, std::move(here));
    }
    by_unit_.resize(about.units.size());
    for (auto& part : reduction_parts(where, about.units, about.state, about.grid(), self)) {
        auto const& kept = parts_.emplace_back(std::move(part));
        by_unit_[kept.unit].push_back(&reductions_.emplace_back(reduction_id{kept.number}, kept.sums, kept.holders, state, kept.keepers));
    }
}

std::vector<stage*> worker::stages() const
{
    std::vector<stage*> here;
    for (auto const& [number, place] : stages_) {
        here.push_back(place.layers.get());
    }
    return here;
}

std::vector<nccl::connection> worker::connections() const
{
    using enum mpi::channel;
    std::vector<nccl::connection> all;
    for (auto const& [number, here] : stages_) {
        for (auto const& [rank, rows] : here.before_is_mine ? std::vector<stage_neighbour>{} : here.before) {
            all.push_back(nccl::link(rank, self_, activation));
            all.push_back(nccl::link(self_, rank, gradient));
        }
        for (auto const& [rank, rows] : here.after_is_mine ? std::vector<stage_neighbour>{} : here.after) {
            all.push_back(nccl::link(self_, rank, activation));
            all.push_back(nccl::link(rank, self_, gradient));
        }
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    auto const sums = groups_of(parts_, job_->layers());
    all.insert(all.end(), sums.begin(), sums.end());
    if (group_.size() > 1) {
        all.push_back(nccl::members_of_stage(group_));
    }
    return all;
}

memory_parts worker::measured_memory() const
{
    memory_parts parts{.activations = meter_.peak(), .recompute_buffer = recompute_buffers_.allocated()};
    for (auto const& r : reductions_) {
        bool const of_parameters = state_->info(r.unit().tensors.front()).is_parameter;
        parts.state.reduced += of_parameters ? r.buffer_bytes() : bytes{};
    }
    return parts;
}

int worker::message_of(int stage, int item) const { return stage * static_cast<int>(items_in_messages(job_->config.train)) + item; }

worker::inflight_item& worker::item_of(item_key key, section const& in)
{
    auto const [place, is_new] = inflight_.try_emplace(key, with_->backend);
    if (!is_new) {
        return place->second;
    }
    auto& spare = free_list_[key.first];
    if (spare.empty() && !in.by.permits_allocation()) {  // one is done but for its sends
        in.messages.wait_until([&] {
            retire(in, false);
            return !spare.empty();
        });
    }
    if (!spare.empty()) {
        place->second = std::move(spare.back());
        spare.pop_back();
    }
    return place->second;
}

/// Before the first message: what may not be taken between messages.
void worker::take_buffers(std::vector<instruction> const& row, section const& in)
{
    if (std::exchange(are_direct_, in.by.is_direct()) != in.by.is_direct()) {
        free_list_.clear();
    }
    if (in.by.sums()) {
        for (auto& r : reductions_) {
            r.prepare_sums();
        }
    }
    if (in.by.permits_allocation()) {
        return;
    }
    for (auto const& [number, count] : most_in_flight(row)) {
        auto& here = stage_of(number);
        auto& spare = free_list_[number];
        while (std::ssize(spare) < count + 1) {  // one more may be done but for its sends
            spare.emplace_back(with_->backend);
        }
        bool const whole = std::any_of(here.items.begin(), here.items.end(), [](todo const& left) { return left.backward; });
        for (auto& f : spare) {
            if (f.kept == nullptr) {
                f.kept = std::make_unique<activation>(here.layers->layout());
            }
            if (whole) {
                f.gradient_in.resize(here.layers->has_loss() ? 0 : here.layers->output_bytes(), are_direct_);
                f.gradient_out.resize(here.layers->input_bytes(), are_direct_);
            } else {
                here.layers->reserve(*f.kept);
            }
        }
        for (auto& f : spare) {
            if (!whole) {
                here.layers->release(*f.kept);
            }
        }
    }
}

/// Stage -> items that the row has begun, and not ended, at once.
std::map<int, std::ptrdiff_t> worker::most_in_flight(std::vector<instruction> const& row) const
{
    std::map<int, std::ptrdiff_t> most;
    std::map<item_key, int> left;
    std::map<int, std::ptrdiff_t> now;
    auto const ends = [&](item_key key) {
        if (--left.at(key) == 0) {
            --now[key.first];
        }
    };
    for (auto const& i : row) {
        if (is_reduction(i.kind) || !is_event(i.kind)) {
            continue;
        }
        item_key const key{i.stage, i.item};
        if (left.try_emplace(key, stages_.at(i.stage).items[static_cast<std::size_t>(i.item)].instructions).second) {
            most[i.stage] = std::max(most[i.stage], ++now[i.stage]);
        }
        for_each_item_of(i, ends);
    }
    return most;
}

void worker::wait(bool& pending, inflight_item::tickets& tickets, section const& in)
{
    if (std::exchange(pending, false)) {
        for (auto const ticket : std::exchange(tickets, {})) {
            in.messages.wait_until([&] { return in.by.done(ticket); });
        }
    }
}

/// One instruction less names the item; after the last one it leaves.
void worker::finish(item_key key)
{
    if (--todo_of(key).instructions == 0) {
        auto const place = inflight_.find(key);
        draining_.emplace_back(key.first, std::move(place->second));
        inflight_.erase(place);
    }
}

/// What a flight had is the next one's; an item that had no backward gives its memory back here.
void worker::recycle(int number, inflight_item f)
{
    if (f.kept != nullptr) {
        stage_of(number).layers->release(*f.kept);
    }
    f.receiving_input = f.receiving_gradient = f.sending_output = f.sending_gradient = false;
    free_list_[number].push_back(std::move(f));
}

/// Items that an instruction needs, for each time that it does.
template <class Visit>
void worker::for_each_item_of(instruction i, Visit const& visit) const
{
    if (i.kind == instruction_kind::forward && stages_.at(i.stage).before_is_mine) {
        visit(item_key{i.stage - 1, i.item});
    }
    for (int earlier = ends_slices(i) ? slice_of(i.item) : 0; earlier > 0; --earlier) {  // which it attends to
        visit(item_key{i.stage, i.item - earlier});
    }
    visit(item_key{i.stage, i.item});
}

void worker::retire(section const& in, bool wait_for_sends)
{
    for (std::size_t i = 0; i < draining_.size();) {
        auto& [number, f] = draining_[i];
        auto const finished = [&](bool& sending, inflight_item::tickets& tickets) {
            while (sending && !tickets.empty() && in.by.done(tickets.back())) {
                tickets.pop_back();
            }
            if (wait_for_sends || tickets.empty()) {
                wait(sending, tickets, in);
            }
            return !sending;
        };
        bool const output = finished(f.sending_output, f.output_sent);
        if (finished(f.sending_gradient, f.gradient_sent) && output) {
            recycle(number, std::move(f));
            draining_.erase(draining_.begin() + static_cast<std::ptrdiff_t>(i));
        } else {
            ++i;
        }
    }
}

void worker::show_energy()
{
    if (with_->device != nullptr && with_->watch != nullptr) {
        with_->watch->shows(with_->device->energy());
    }
}

/// Of a message, of the one that is the input of a computation (but for its size), or the sums of a reduction.
stage_boundary worker::exchanged_by(instruction i) const
{
    stage_boundary exchanged;
    if (is_reduction(i.kind)) {
        for (auto const* r : by_unit_[at(reduction_of(i))]) {
            exchanged.size += r->sum_bytes();
        }
    } else if (auto const to = other_end_of(activity_of(i.kind)); to != 0) {
        auto const& here = stages_.at(i.stage);
        exchanged = to < 0 ? here.boundary_before : here.boundary_after;
        exchanged.size = is_compute(i.kind) ? bytes{} : exchanged.size;
    }
    return exchanged;
}

/// What a row has for each item.
void worker::begin_row(std::span<instruction const> row, std::span<microbatch_work const> work)
{
    auto const last = std::max_element(work.begin(), work.end(), [](auto const& a, auto const& b) { return a.microbatch < b.microbatch; });
    auto const microbatches = last == work.end() ? 0 : at(last->microbatch) + 1;
    deepest_.assign(microbatches, layer_id{-1});
    for (auto const& w : work) {
        deepest_[at(w.microbatch)] = w.deepest;
    }
    for (auto& [number, place] : stages_) {
        place.items.assign(microbatches * static_cast<std::size_t>(slices()), {});
    }
    for (auto const& i : row) {
        if (is_reduction(i.kind) || !is_event(i.kind)) {
            continue;
        }
        auto const m = at(microbatch_of(i.item));
        expects(m < deepest_.size() && deepest_[m].value >= 0, "a program runs microbatches of its plan");
        auto& left = todo_of({i.stage, i.item});
        left.backward = left.backward || i.kind == instruction_kind::backward || i.kind == instruction_kind::input_gradient;
        for_each_item_of(i, [this](item_key key) { ++todo_of(key).instructions; });
    }
}

void worker::run(std::vector<instruction> const& row, std::span<microbatch_work const> work, section_context const& context, mpi::messenger& messages,
                 std::function<bool(use_id, microbatch_id)> const& wanted, std::function<void(std::span<use_id const>, microbatch_id)> const& contributed,
                 loss_sum& evaluation)
{
    begin_row(row, work);
    meter_.reset_peak();
    recompute_buffers_.reserve(with_->backend.own(),
                               std::any_of(row.begin(), row.end(), [](instruction i) { return i.kind == instruction_kind::overlap; }) ? 2 : 1);
    mpi_transport by_mpi{messages, with_->backend.has_one_memory() || with_->mpi_reaches_device, job_->config.run.rendezvous};
    auto& by = context.by != nullptr ? *context.by : by_mpi;
    member_exchange between_members{group_, messages, by_mpi, by, [&](exchange_kind kind) {
                                        constexpr fault_phase phases[] = {fault_phase::gather, fault_phase::sum, fault_phase::sum_gradient};
                                        with_->inject.at(phases[static_cast<std::size_t>(kind)], context.step, context.attempt);
                                    }};
    section const in{context, messages, by, wanted, contributed, evaluation, group_.size() > 1 ? &between_members : nullptr};
    take_buffers(row, in);
    try {
        run_row(row, in);
    } catch (...) {
        in.by.abandon();
        throw;
    }
}

void worker::run_row(std::vector<instruction> const& row, section const& in)
{
    auto const& context = in.context;
    auto& messages = in.messages;
    bool awaiting = false;
    auto const device_computes = [&] {
        messages.throw_if_failed();
        advance_reductions(in);
        retire(in, false);
    };
    clocks_ = {with_->device, context.clocks, with_->inject.slowness(context.step), stages_per_copy_};
    for (std::size_t k = 0; k < row.size(); ++k) {
        auto const i = row[k];
        bool const at_once = i.kind == instruction_kind::overlap && job_->config.run.threads > 1 && with_->device == nullptr &&
                             with_->backend.has_one_memory() && group_.size() == 1;
        if (!is_event(i.kind) && !at_once) {
            continue;  // one thread computes the two that an overlap joins one after the other, and so do a device of one queue and one of one clock
        }
        if (i.kind == instruction_kind::await_reduction && !std::exchange(awaiting, true)) {
            with_->inject.at(fault_phase::reduce, context.step, context.attempt);
        }
        if (is_compute(i.kind)) {
            messages.look_for_losses();  // others may long wait for this rank to leave
        } else {
            messages.throw_if_failed();
        }
        began_ = with_->clock.now();
        auto const done = std::span{row}.subspan(k + (at_once ? 1 : 0), at_once ? 2 : 1);
        if (at_once) {
            overlapped(done[0], done[1], in);
            k += done.size();
        } else {
            execute(i, in);
        }
        with_->progress();
        for (auto const& each : done) {
            auto const drew = clocks_.ended(each, with_->clock.now() - began_, device_computes);
            auto const exchanged = exchanged_by(each);
            with_->record.event({.rank = self_,
                                 .activity = activity_of(each.kind),
                                 .pipeline = place_.pipeline,
                                 .stage = rheo::stage_of(each),
                                 .item = each.item,
                                 .generation = context.generation,
                                 .step = context.step,
                                 .attempt = context.attempt,
                                 .peer = exchanged.peer,
                                 .start = began_,
                                 .end = with_->clock.now(),
                                 .clock = drew.clock,
                                 .energy = drew.energy,
                                 .size = exchanged.size,
                                 .held = is_work(each.kind) || is_local(each.kind) ? held_activations() : unknown_bytes});
        }
        show_energy();
        advance_reductions(in);
        for (auto const& each : done) {
            if (!is_reduction(each.kind)) {
                for_each_item_of(each, [this](item_key key) { finish(key); });
            }
        }
        retire(in, false);
    }
    retire(in, true);
}

}  // namespace rheo::inline v0
