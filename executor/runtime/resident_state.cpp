// SPDX-License-Identifier: Apache-2.0
#include "runtime/resident_state.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "rheo/model/state.hpp"

namespace rheo::inline v0 {

tensor_values values_of(tensor_storage const& storage)
{
    auto const copy = [](array<float> const& from) { return std::vector<float>(from.begin(), from.end()); };
    return {copy(storage.parameter), copy(storage.first_moment), copy(storage.second_moment)};
}

tensor_storage& resident_state::add(tensor_id t)
{
    auto const count = static_cast<std::size_t>(elements(info(t).shape));
    auto& where = on_->shared();
    auto& entry = tensors_[at(t)];
    entry = std::make_unique<tensor_storage>(tensor_storage{{where, count}, {where, count}, {where, count}, array<bfloat16>{where}});
    if (on_->policy().storage == dtype::bf16) {
        entry->stored.resize(count);
    }
    return *entry;
}

void resident_state::put(tensor_id t, tensor_values const& values)
{
    auto& storage = add(t);
    auto const fill = [](array<float>& to, std::vector<float> const& from) {
        expects(from.size() == to.size(), "the values of a tensor have its shape");
        std::copy(from.begin(), from.end(), to.begin());
    };
    fill(storage.parameter, values.parameter);
    fill(storage.first_moment, values.first_moment);
    fill(storage.second_moment, values.second_moment);
    stored(t);
}

void resident_state::put(tensor_id t, tensor_storage&& arrived)
{
    if (on_->has_one_memory()) {
        tensors_[at(t)] = std::make_unique<tensor_storage>(std::move(arrived));
        return;
    }
    auto& storage = add(t);
    on_->copy(storage.parameter.data(), arrived.parameter.data(), storage.parameter.size() * sizeof(float));
    on_->copy(storage.first_moment.data(), arrived.first_moment.data(), storage.first_moment.size() * sizeof(float));
    on_->copy(storage.second_moment.data(), arrived.second_moment.data(), storage.second_moment.size() * sizeof(float));
    stored(t);
    on_->wait();
}

void resident_state::stored(tensor_id t)
{
    if (auto& storage = tensor(t); !storage.stored.empty()) {
        on_->store(storage.parameter, storage.stored);
    }
}

gradient_accumulator& resident_state::accumulator(use_id use)
{
    auto& entry = accumulators_[at(use)];
    if (entry == nullptr) {
        auto const t = info_->uses[at(use)].tensor;
        auto& state = states_[at(use)];
        state = {.scale_log2 = scales[at(t)]};
        entry.reset(new gradient_accumulator{{on_->shared(), static_cast<std::size_t>(elements(info(t).shape))}, state});
    }
    return *entry;
}

void resident_state::clear_accumulator(use_id use)
{
    if (auto& entry = accumulators_[at(use)]; entry != nullptr) {
        on_->zero(entry->sums);
        entry->state = {.scale_log2 = scales[at(info_->uses[at(use)].tensor)]};
        entry->not_finite_at = microbatch_id{-1};
    }
}

void resident_state::clear_accumulators()
{
    for (std::size_t u = 0; u < accumulators_.size(); ++u) {
        clear_accumulator(use_id{static_cast<std::int32_t>(u)});
    }
    on_->wait();  // the sum of losses is added to by the processor
}

state_digest resident_state::digest(tensor_id t) const
{
    auto const& storage = tensor(t);
    auto const part = [&](tensor_role role, array<float> const& values) {
        static_assert(sizeof(float) == sizeof(std::uint32_t));
        state_digest sum;
        std::vector<std::uint32_t> bits(std::min<std::size_t>(values.size(), 4096));
        for (std::size_t first = 0; first < values.size(); first += bits.size()) {
            auto const count = std::min(bits.size(), values.size() - first);
            std::memcpy(bits.data(), values.data() + first, count * sizeof(float));
            sum += digest_of(info(t).name, role, static_cast<std::int64_t>(first), std::span{bits}.first(count));
        }
        return sum;
    };
    auto sum = part(tensor_role::parameter, storage.parameter);
    sum += part(tensor_role::first_moment, storage.first_moment);
    sum += part(tensor_role::second_moment, storage.second_moment);
    return sum;
}

void initialise(resident_state& state, tensor_id t, std::uint64_t seed)
{
    auto& storage = state.add(t);
    auto const& initial = state.info(t).initial;
    auto const count = static_cast<std::int64_t>(storage.parameter.size());
    if (initial.deviation == 0) {
        state.on().initialise(initialise_constant_arguments<>{.count = count, .value = initial.mean, .values = storage.parameter.data()});
    } else {
        state.on().initialise(initialise_normal_arguments<>{.seed = seed, .tensor = t, .count = count, .mean = initial.mean, .deviation = initial.deviation,
                               .values = storage.parameter.data()});
    }
    state.stored(t);
}

void initialise_layers(resident_state& state, layer_id first, layer_id last, std::uint64_t seed)
{
    for (auto const t : tensors_of(state.info(), first, last)) {
        if (state.info().tensors[at(t)].is_parameter) {
            initialise(state, t, seed);
        }
    }
    state.on().wait();
}

}  // namespace rheo::inline v0
