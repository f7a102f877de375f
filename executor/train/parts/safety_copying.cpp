// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/safety_copying.hpp"

#include <algorithm>
#include <span>

#include "executor/device/staging_buffer.hpp"
#include "executor/state/tensor_copies.hpp"
#include "executor/train/parts/step_reduction.hpp"

namespace rheo::inline v0 {

namespace {

/// Copies of tensors have item 0.
constexpr int gradient_item(tensor_id t) { return t.value + 1; }

/// A whole gradient where messages reach it. @param copies own what had to be copied
std::span<float const> gradient_for_messages(reduction const& from, tensor_id t, std::size_t count, compute_backend& backend, array<float>& room,
                                             std::deque<array<float>>& copies)
{
    if (!from.in_place()) {
        return on_host(backend, copies, from.piece(t, 0, static_cast<std::int64_t>(count), room), count);
    }
    auto& copy = copies.emplace_back(backend.messages(), count);
    for (std::size_t first = 0; first < count; first += gradient_piece) {
        auto const size = std::min<std::size_t>(gradient_piece, count - first);
        backend.copy(copy.data() + first, from.piece(t, static_cast<std::int64_t>(first), static_cast<std::int64_t>(size), room), size * sizeof(float));
    }
    backend.wait();
    return copy;
}

}  // namespace

void safety_copying::choose(membership_plan const& plan, replanning const& known)
{
    kept_ = kept_tensors(plan, known);
    copies_ = kept_.empty() ? reshard_plan{} : plan_first_copies(plan, known);
}

void safety_copying::copy_first(mpi::messenger& messages, resident_state& resident, std::function<void(tensor_id)> const& arrived) const
{
    copy_tensors(messages, copies_, resident.info(), resident, [] {}, arrived);
}

void safety_copying::pass_gradients(mpi::messenger& messages, resident_state& resident, std::deque<reduction> const& reductions, array<float>& room)
{
    auto& backend = resident.backend();
    gradients_.clear();
    std::vector<mpi::messenger::ticket> tickets;
    std::deque<array<float>> sent;
    for (auto const& k : kept_) {
        auto const t = k.tensor;
        auto const count = static_cast<std::size_t>(elements(resident.info(t).shape));
        if (k.to == self_) {
            gradients_.push_back({t, {backend.messages(), count}});
            tickets.push_back(messages.receive(k.from, mpi::channel::copy, gradient_item(t), std::span<float>{gradients_.back().values}));
        } else if (k.from == self_) {
            for (auto const& r : reductions) {
                if (auto const& tensors = r.unit().tensors; std::find(tensors.begin(), tensors.end(), t) != tensors.end()) {
                    tickets.push_back(messages.send(k.to, mpi::channel::copy, gradient_item(t), gradient_for_messages(r, t, count, backend, room, sent)));
                }
            }
        }
    }
    for (auto const ticket : tickets) {
        messages.wait(ticket);
    }
}

}  // namespace rheo::inline v0
