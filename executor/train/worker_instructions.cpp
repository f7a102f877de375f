// SPDX-License-Identifier: Apache-2.0
// What the worker does for each kind of instruction.
#include "executor/train/worker.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "executor/os/background_thread.hpp"

namespace rheo::inline v0 {

namespace {

void note_not_finite(gradient_accumulator& sums, microbatch_id m)
{
    if (sums.state.not_finite && sums.not_finite_at.value < 0) {
        sums.not_finite_at = m;
    }
}

}  // namespace

void worker::reduce(instruction i, section const& in)
{
    for (auto* r : by_unit_[at(reduction_of(i))]) {
        if (i.kind == instruction_kind::post_reduction) {
            r->reset();
            r->post(in.by);
        } else {
            in.messages.wait_until([&] {
                advance_reductions(in);  // this one, and those that are waited for next
                return r->advance(in.by);
            });
        }
    }
}

/// Beside computations and waits.
void worker::advance_reductions(section const& in)
{
    for (auto& r : reductions_) {
        if (r.posted()) {
            r.advance(in.by);
        }
    }
}

/// The input of a forward, and the tokens.
void worker::begin_forward(instruction i, inflight_item& f, section const& in)
{
    auto& here = stage_of(i.stage);
    auto& layers = *here.layers;
    auto const m = microbatch_of(i.item);
    auto const slice = slice_of(i.item);
    wait(f.receiving_input, f.input_received, in);
    began_ = with_->clock.now();
    if (f.kept == nullptr) {
        f.kept = std::make_unique<activation>(layers.layout());
    }
    auto& a = *f.kept;
    a.before.clear();
    for (int earlier = slice; earlier > 0; --earlier) {
        a.before.push_back(inflight_.at({i.stage, i.item - earlier}).kept.get());
    }
    if (here.before_is_mine) {
        with_->backend.copy(layers.input(a), stage_of(i.stage - 1).layers->output(*inflight_.at({i.stage - 1, i.item}).kept), layers.input_bytes());
    } else if (!here.before.empty() && !in.by.is_direct()) {
        with_->backend.copy(layers.input(a), f.input.data(), f.input.size());
    }
    if (layers.input_bytes() == 0 || layers.has_loss()) {
        if (in.context.training) {
            with_->data.training_microbatch(job_->config.train.seed, in.context.step, m, a.tokens, a.targets, slice);
        } else {
            with_->data.validation_microbatch(m, a.tokens, a.targets, slice);
        }
    }
}

/// What a forward leaves besides its output.
void worker::end_forward(instruction i, std::span<loss_sum const> losses, section const& in)
{
    auto& layers = *stage_of(i.stage).layers;
    microbatch_id const contribution{i.item};
    added_.clear();
    for (std::size_t j = 0; j < layers.loss_uses().size(); ++j) {
        auto const use = layers.loss_uses()[j];
        auto const& loss = losses[j];
        if (!in.context.training) {
            in.evaluation = in.evaluation + loss;
        } else if (in.wanted(use, contribution)) {
            auto& sums = state_->accumulator(use);
            sums.sums[0] += loss.fixed;
            sums.sums[1] += loss.targets;
            sums.state.not_finite |= loss.not_finite;
            note_not_finite(sums, microbatch_of(i.item));
            added_.push_back(use);
        }
    }
    book(added_, contribution, in);
    computed(i, began_);
    with_->inject.at(fault_phase::forward, in.context.step, in.context.attempt);
}

/// What has been added to is in the books.
void worker::book(std::span<use_id const> uses, microbatch_id item, section const& in)
{
    if (!uses.empty()) {
        in.contributed(uses, item);
        contributions_ += std::ssize(uses);
    }
}

void worker::count_contributions(stage& layers, microbatch_id item, layer_id lowest, section const& in)
{
    added_.clear();
    for (auto const use : layers.uses()) {
        if (layers.above(use, lowest) && in.wanted(use, item) && !std::binary_search(booked_.begin(), booked_.end(), use)) {
            note_not_finite(state_->accumulator(use), microbatch_of(item.value));
            added_.push_back(use);
        }
    }
    book(added_, item, in);
}

/// Computes what adds to accumulators. In a group it may break off at an exchange; by then what was added is booked.
template <class Compute>
void worker::compute_and_book(stage_item item, section const& in, Compute const& compute)
{
    booked_.clear();
    std::function<void(std::span<use_id const>)> const added = [&](std::span<use_id const> uses) {
        book(uses, microbatch_id{item.microbatch.value * slices() + item.slice}, in);
        booked_.insert(booked_.end(), uses.begin(), uses.end());
    };
    item.added = &added;
    struct noting {  // in its destructor, because a lost peer ends the computation by an exception
        worker& self;
        microbatch_id microbatch;
        ~noting()
        {
            for (auto const use : self.booked_) {
                note_not_finite(self.state_->accumulator(use), microbatch);
            }
        }
    } const notes{*this, item.microbatch};
    compute(item);
    with_->backend.wait();
    std::sort(booked_.begin(), booked_.end());
}

void worker::begin_backward(instruction i, inflight_item& f, section const& in)
{
    wait(f.receiving_gradient, f.gradient_received, in);
    wait(f.sending_output, f.output_sent, in);  // the backward may write over what was sent
    began_ = with_->clock.now();
    if (auto const& here = stage_of(i.stage); !here.layers->has_loss() && !here.after_is_mine) {
        f.gradient_in.copy_from_messages();
    }
    f.gradient_out.resize(stage_of(i.stage).layers->input_bytes(), in.by.is_direct());
}

/// Whole, or the input gradient alone. @param pool whose threads compute; null: the stage's own
void worker::compute_backward(instruction i, inflight_item& f, section const& in, tile_pool* pool)
{
    auto& layers = *stage_of(i.stage).layers;
    auto item = item_for(i.item, in);
    item.pool = pool;
    auto const lowest = lowest_of(layers, microbatch_of(i.item));
    auto* const from = layers.has_loss() ? nullptr : f.gradient_in.device();
    auto* const to = f.gradient_out.empty() ? nullptr : f.gradient_out.device();
    if (i.kind == instruction_kind::backward) {
        compute_and_book(item, in, [&](stage_item const& booking) {
            layers.backward(*f.kept, booking, lowest, from, to, [&](use_id use) { return in.wanted(use, microbatch_id{i.item}); });
        });
    } else {
        layers.input_gradient(*f.kept, item, lowest, from, to);
        with_->backend.wait();
    }
}

/// Books what a backward has added, and hands its gradient over where the stage before is here.
void worker::end_backward(instruction i, inflight_item& f, section const& in)
{
    auto& here = stage_of(i.stage);
    bool const whole = i.kind == instruction_kind::backward;
    if (whole) {
        count_contributions(*here.layers, microbatch_id{i.item}, lowest_of(*here.layers, microbatch_of(i.item)), in);
    }
    if (here.before_is_mine && todo_of({i.stage - 1, i.item}).backward) {
        std::swap(inflight_.at({i.stage - 1, i.item}).gradient_in, f.gradient_out);
    }
    computed(i, began_);
    with_->inject.at(whole ? fault_phase::backward : fault_phase::input_gradient, in.context.step, in.context.attempt);
}

void worker::weight_gradient(instruction i, inflight_item& f, section const& in)
{
    auto& layers = *stage_of(i.stage).layers;
    microbatch_id const contribution{i.item};
    auto const lowest = lowest_of(layers, microbatch_of(i.item));
    compute_and_book(item_for(i.item, in), in, [&](stage_item const& booking) {
        layers.weight_gradient(*f.kept, booking, lowest, [&](use_id use) { return in.wanted(use, contribution); });
    });
    count_contributions(layers, contribution, lowest, in);
    computed(i, began_);
    with_->inject.at(fault_phase::weight_gradient, in.context.step, in.context.attempt);
}

/// A forward and a backward at once, each with its part of the threads; what both leave comes afterwards, one after the other.
void worker::overlapped(instruction up, instruction down, section const& in)
{
    auto const threads = job_->config.run.threads;
    if (halves_[0] == nullptr) {
        halves_[0] = std::make_unique<tile_pool>(threads / 2);
        halves_[1] = std::make_unique<tile_pool>(threads - threads / 2);
    }
    auto& forward_item = item_of({up.stage, up.item}, in);
    auto& backward_item = item_of({down.stage, down.item}, in);
    begin_forward(up, forward_item, in);
    begin_backward(down, backward_item, in);
    auto& layers = *stage_of(up.stage).layers;
    layers.reserve(*forward_item.kept);  // before the backward gives its own back, as the plan counts them
    auto const caught = [](auto const& compute) -> std::exception_ptr {
        try {
            compute();
        } catch (...) {
            return std::current_exception();
        }
        return nullptr;
    };
    std::vector<loss_sum> losses(layers.loss_uses().size());
    std::exception_ptr below;
    auto other = background_thread([&] { below = caught([&] { compute_backward(down, backward_item, in, halves_[1].get()); }); });
    auto const above = caught([&] {
        auto item = item_for(up.item, in);
        item.pool = halves_[0].get();
        layers.forward(*forward_item.kept, item, losses);
    });
    other.join();
    for (auto const& error : {above, below}) {
        if (error != nullptr) {
            std::rethrow_exception(error);
        }
    }
    end_forward(up, losses, in);
    end_backward(down, backward_item, in);
}

/// Where a message leaves the input.
std::span<std::byte> worker::input_for_messages(place_of_stage const& here, inflight_item& f)
{
    auto const size = here.layers->input_bytes();
    if (!are_direct_) {
        f.input.resize(size);
        return {f.input.data(), size};
    }
    if (f.kept == nullptr) {
        f.kept = std::make_unique<activation>(here.layers->layout());
    }
    return {static_cast<std::byte*>(here.layers->input(*f.kept)), size};
}

/// Where a message finds the output.
std::span<std::byte const> worker::output_for_messages(place_of_stage const& here, inflight_item& f)
{
    auto const* const output = here.layers->output(*f.kept);
    auto const size = here.layers->output_bytes();
    if (are_direct_) {
        return {static_cast<std::byte const*>(output), size};
    }
    f.output.resize(size);
    with_->backend.copy(f.output.data(), output, size);
    with_->backend.wait();
    return {f.output.data(), size};
}

/// Starts sends between stages: to each member the rows that it has.
void worker::send(std::vector<stage_neighbour> const& to, mpi::channel kind, int number, int item, std::span<std::byte const> matrix,
                  inflight_item::tickets& tickets, transport& by)
{
    for (auto const& [rank, rows] : to) {
        tickets.push_back(by.send(rank, kind, message_of(number, item), rows_in(matrix, rows, rheo::rows(job_->shape()))));
    }
}

void worker::receive(std::vector<stage_neighbour> const& from, mpi::channel kind, int number, int item, std::span<std::byte> matrix,
                     inflight_item::tickets& tickets, transport& by)
{
    for (auto const& [rank, rows] : from) {
        tickets.push_back(by.receive(rank, kind, message_of(number, item), rows_in(matrix, rows, rheo::rows(job_->shape()))));
    }
}

void worker::execute(instruction i, section const& in)
{
    using enum instruction_kind;
    if (is_reduction(i.kind)) {
        reduce(i, in);
        return;
    }
    auto& f = item_of({i.stage, i.item}, in);
    auto& here = stage_of(i.stage);
    auto const meet = [&](bool& pending, inflight_item::tickets& tickets) {
        if (job_->config.run.rendezvous) {
            wait(pending, tickets, in);
        }
    };
    switch (i.kind) {
    case receive_activation:
        receive(here.before, mpi::channel::activation, i.stage, i.item, input_for_messages(here, f), f.input_received, in.by);
        f.receiving_input = true;
        meet(f.receiving_input, f.input_received);
        break;
    case forward: {
        begin_forward(i, f, in);
        std::vector<loss_sum> losses(here.layers->loss_uses().size());
        try {
            here.layers->forward(*f.kept, item_for(i.item, in), losses);
            with_->backend.wait();
        } catch (...) {
            with_->backend.forget_losses();
            throw;
        }
        end_forward(i, losses, in);
        break;
    }
    case send_activation:
        send(here.after, mpi::channel::activation, i.stage + 1, i.item, output_for_messages(here, f), f.output_sent, in.by);
        f.sending_output = true;
        meet(f.sending_output, f.output_sent);
        break;
    case receive_gradient:
        f.gradient_in.resize(here.layers->output_bytes(), in.by.is_direct());
        receive(here.after, mpi::channel::gradient, i.stage, i.item, f.gradient_in.for_messages(), f.gradient_received, in.by);
        f.receiving_gradient = true;
        meet(f.receiving_gradient, f.gradient_received);
        break;
    case backward:
    case input_gradient:
        begin_backward(i, f, in);
        compute_backward(i, f, in, nullptr);
        end_backward(i, f, in);
        break;
    case weight_gradient: this->weight_gradient(i, f, in); break;
    case evict:
        wait(f.sending_output, f.output_sent, in);
        here.layers->evict(*f.kept);
        break;
    case recompute:
        here.layers->recompute(*f.kept, item_for(i.item, in));
        with_->backend.wait();
        computed(i, began_);
        with_->inject.at(fault_phase::recompute, in.context.step, in.context.attempt);
        break;
    case send_gradient:
        f.gradient_out.copy_to_messages();
        send(here.before, mpi::channel::gradient, i.stage - 1, i.item, f.gradient_out.for_messages(), f.gradient_sent, in.by);
        f.sending_gradient = true;
        meet(f.sending_gradient, f.gradient_sent);
        break;
    default: throw precondition_error{"a rank has no way to perform this instruction"};
    }
}

}  // namespace rheo::inline v0
