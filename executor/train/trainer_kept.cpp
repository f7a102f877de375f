// SPDX-License-Identifier: Apache-2.0
// Layers that one node alone holds, kept by second ranks: copied once after a merge, then brought up to date by the same
// update from the same gradient, so that they are as new as their sources at every commit and a loss at any moment finds them.
#include "executor/train/trainer.hpp"

#include <algorithm>
#include <deque>
#include <span>

#include "executor/device/staging_buffer.hpp"
#include "executor/state/transfer.hpp"

namespace rheo::inline v0 {

namespace {

constexpr int gradient_item(tensor_id t) { return t.value * 4; }

}  // namespace

/// A tensor is here and checked: its layers are booked when they are complete.
void trainer::book_received(tensor_id arrived)
{
    auto const has_all = [&](layer_id layer) {
        for (std::size_t t = 0; t < job_->state.tensors.size(); ++t) {
            auto const& tensor = job_->state.tensors[t];
            if (tensor.is_parameter && std::binary_search(tensor.layers.begin(), tensor.layers.end(), layer) &&
                !resident_.holds(tensor_id{static_cast<std::int32_t>(t)})) {
                return false;
            }
        }
        return true;
    };
    for (auto const layer : resident_.info(arrived).layers) {
        if (has_all(layer)) {
            note(state_, received{layer});
        }
    }
}

/// The first copies. From here on the loss of a source loses nothing.
void trainer::copy_kept_layers()
{
    if (kept_.empty()) {
        return;
    }
    auto const start = job_->clock.now();
    recovery_plan copies;
    copies.rounds = in_rounds(kept_, known_.round_budget);
    transfer(*messages_, copies, resident_, [] {}, [this](tensor_id t) { book_received(t); });
    trace(activity::copy, start);
}

/// The reduced gradients go to those that keep copies; the vote that follows says that they are there.
void trainer::pass_gradients_on()
{
    kept_gradients_.clear();
    std::vector<mpi::messenger::ticket> tickets;
    std::deque<array<float>> sent;
    for (auto const& c : kept_) {
        auto const t = c.part.tensor;
        auto const count = static_cast<std::size_t>(elements(resident_.info(t).shape));
        if (c.to == self_) {
            kept_gradients_.push_back({t, {job_->backend->messages(), count}});
            tickets.push_back(messages_->receive(c.from, mpi::channel::copy, gradient_item(t), std::span<float>{kept_gradients_.back().values}));
        } else if (c.from == self_) {
            for (auto const& r : worker_->reductions()) {
                if (std::find(r.unit().tensors.begin(), r.unit().tensors.end(), t) != r.unit().tensors.end()) {
                    std::span<float const> values;
                    if (r.in_place()) {
                        auto& copy = sent.emplace_back(job_->backend->messages(), count);
                        for (std::size_t first = 0; first < count; first += gradient_piece) {
                            auto const size = std::min<std::size_t>(gradient_piece, count - first);
                            job_->backend->copy(copy.data() + first, r.piece(t, static_cast<std::int64_t>(first), static_cast<std::int64_t>(size), room_),
                                                size * sizeof(float));
                        }
                        job_->backend->wait();
                        values = copy;
                    } else {
                        values = on_host(*job_->backend, sent, r.piece(t, 0, static_cast<std::int64_t>(count), room_), count);
                    }
                    tickets.push_back(messages_->send(c.to, mpi::channel::copy, gradient_item(t), values));
                }
            }
        }
    }
    for (auto const ticket : tickets) {
        messages_->wait(ticket);
    }
}

}  // namespace rheo::inline v0
