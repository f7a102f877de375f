// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/optimizer_step.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "executor/config/learning_rate.hpp"
#include "rheo/plan/keepers.hpp"

namespace rheo::inline v0 {

optimizer_step::optimizer_step(run_config const& config, resident_state& state)
    : config_{&config},
      state_{&state},
      room_{state.backend().own()},
      parameter_{state.backend().own(), state.backend().policy().master},
      first_moment_{state.backend().own(), state.backend().policy().master},
      second_moment_{state.backend().own(), state.backend().policy().master},
      stored_{state.backend().own(), state.backend().policy().storage}
{
}

/// All but what the tensor's values are.
tensor_update optimizer_step::update_of(tensor_id t, step_id step) const
{
    return {.count = elements(state_->info(t).shape),
            .master = nullptr,
            .first_moment = nullptr,
            .second_moment = nullptr,
            .gradient = nullptr,
            .rounding = stream_of(rounding_key(config_->train.seed, step, t)),
            .weight_decay = state_->info(t).decays ? config_->optimizer.weight_decay : 0.0};
}

adamw_settings optimizer_step::settings_of(step_id step, step_totals const& totals) const
{
    auto const& o = config_->optimizer;
    return {.gradient_multiplier = clip_factor(totals.gradient_norm(), o.clip_norm) / totals.targets(),
            .learning_rate = learning_rate(o, config_->train.steps, step),
            .beta1 = o.beta1,
            .beta2 = o.beta2,
            .epsilon = o.epsilon,
            .step = step.value + 1};
}

/// The new values where a message takes them.
state_array& optimizer_step::sent_values(tensor_id t, tensor_update const& one, adamw_settings const& settings)
{
    auto& backend = state_->backend();
    if (sending_ == sent_.size()) {
        sent_.emplace_back(backend.messages(), backend.policy().storage);
    }
    auto& sent = sent_[sending_++];
    sent.resize(state_->read_by_stages(t).size());
    if (backend.has_one_memory() && !backend.policy().stores_apart()) {
        compute(t, one, settings, sent);
    } else {
        backend.copy(sent.data(), compute(t, one, settings, parameter_).data(), sent.size_bytes());
    }
    return sent;
}

/// The new values of a parameter whose moments are here, beside the state. @param one with its gradient  @returns what stages read of them: the values, or a
/// copy that lasts until the next call
state_array const& optimizer_step::compute(tensor_id t, tensor_update one, adamw_settings const& settings, state_array& values)
{
    auto& backend = state_->backend();
    auto const& storage = state_->tensor(t);
    auto const count = storage.parameter.size();
    auto const copied = [&](state_array& to, state_array const& from) {
        if (to.size() < count) {
            backend.wait();  // who works in the smaller one
            to.resize(count);
        }
        backend.copy(to.data(), from.data(), from.size_bytes());
        return &to;
    };
    one.master = copied(values, storage.parameter);
    one.first_moment = copied(first_moment_, storage.first_moment);
    one.second_moment = copied(second_moment_, storage.second_moment);
    bool const apart = backend.policy().stores_apart();
    if (apart) {
        if (stored_.size() < count) {
            backend.wait();
            stored_.resize(count);
        }
        one.stored = stored_.bfloats().data();
    }
    backend.update({&one, 1}, settings);
    return apart ? stored_ : values;
}

std::size_t optimizer_step::bytes_of(tensor_id t) const
{
    return static_cast<std::size_t>(elements(state_->info(t).shape) * size_of(state_->backend().policy().storage));
}

/// Where new values arrive in the place of the gradient, which is never smaller.
std::span<std::byte> optimizer_step::bytes_in(std::span<float> place, tensor_id t) const { return std::as_writable_bytes(place).first(bytes_of(t)); }

/// Holders of a tensor come to it in one order, because all ranks number reductions alike.
void optimizer_step::gather_directly(step_id step, step_totals const& totals, mpi::messenger& messages, transport& by, std::deque<reduction>& reductions,
                                     std::function<void()> const& begun)
{
    auto const settings = settings_of(step, totals);
    bool has_begun = false;
    for (auto& r : reductions) {
        auto const& keepers = r.keepers();
        for (auto const t : keepers.size() == r.holders().size() ? std::span<tensor_id const>{} : std::span{r.unit().tensors}) {
            std::vector<transport::outgoing> out;
            std::vector<transport::incoming> in;
            auto const sender = sender_of(keepers, t);
            if (!state_->keeps(t)) {
                in.push_back({sender, bytes_in(r.place_of(t), t)});
            } else if (sender == by.self()) {
                auto one = update_of(t, step);
                one.gradient = r.piece(t, 0, one.count, room_);
                auto const& values = compute(t, one, settings, parameter_);
                for (auto const holder : r.holders()) {
                    if (!std::binary_search(keepers.begin(), keepers.end(), holder)) {
                        out.push_back({holder, std::span{values.data(), bytes_of(t)}});
                    }
                }
                state_->backend().wait();
            }
            auto const tickets = by.exchange(mpi::channel::parameters, r.holders(), out, in);
            if (!(out.empty() && in.empty()) && !std::exchange(has_begun, true)) {
                begun();
            }
            for (auto const ticket : tickets) {
                messages.wait_until([&] { return by.done(ticket); });
            }
        }
    }
}

void optimizer_step::gather(step_id step, step_totals const& totals, mpi::messenger& messages, transport* direct, std::deque<reduction>& reductions,
                            std::function<void()> const& begun)
{
    if (direct != nullptr) {
        return gather_directly(step, totals, messages, *direct, reductions, begun);
    }
    auto const settings = settings_of(step, totals);
    auto const self = messages.members().self;
    struct message {
        reduction* of;
        tensor_id tensor;
        state_array* values;
    };
    std::vector<mpi::messenger::ticket> tickets;
    std::vector<message> outgoing;
    sending_ = 0;
    for (auto& r : reductions) {
        for (auto const t : r.unit().tensors) {
            if (r.keepers().size() == r.holders().size()) {
                continue;
            }
            auto const sender = sender_of(r.keepers(), t);
            if (!state_->keeps(t)) {
                tickets.push_back(messages.receive(sender, mpi::channel::parameters, t.value, bytes_in(r.staging(t), t)));
            } else if (sender == self) {
                auto one = update_of(t, step);
                one.gradient = r.piece(t, 0, one.count, room_);
                outgoing.push_back({&r, t, &sent_values(t, one, settings)});
            }
        }
    }
    state_->backend().wait();
    for (auto const& one : outgoing) {
        for (auto const holder : one.of->holders()) {
            if (auto const& keepers = one.of->keepers(); !std::binary_search(keepers.begin(), keepers.end(), holder)) {
                tickets.push_back(messages.send(holder, mpi::channel::parameters, one.tensor.value,
                                                std::span<std::byte const>{one.values->data(), one.values->size_bytes()}));
            }
        }
    }
    if (!tickets.empty()) {
        begun();
    }
    for (auto const ticket : tickets) {
        messages.wait(ticket);
    }
    for (auto& r : reductions) {
        if (!state_->keeps(r.unit().tensors.front())) {
            r.staged();
        }
    }
}

void optimizer_step::update(step_id step, step_totals const& totals, std::deque<reduction>& reductions, std::span<safety_copy_gradient const> kept)
{
    auto& backend = state_->backend();
    std::vector<tensor_update> all;
    auto const add = [&](tensor_id t, float const* gradient) {
        auto& storage = state_->tensor(t);
        auto& one = all.emplace_back(update_of(t, step));
        one.master = &storage.parameter;
        one.first_moment = &storage.first_moment;
        one.second_moment = &storage.second_moment;
        one.stored = storage.stored.bfloats().data();
        one.gradient = gradient;
    };
    for (auto& r : reductions) {
        for (auto const t : r.unit().tensors) {
            if (state_->keeps(t)) {
                add(t, r.gradient(t));
            } else {
                auto& values = state_->read_by_stages(t);
                backend.copy(values.data(), r.gradient(t), values.size_bytes());
            }
        }
    }
    for (auto const& copy : kept) {
        add(copy.tensor, copy.values.data());
    }
    backend.update(all, settings_of(step, totals));
    backend.wait();
}

}  // namespace rheo::inline v0
