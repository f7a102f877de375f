// SPDX-License-Identifier: Apache-2.0
#include "runtime/resident_state.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/exact/exact.hpp"
#include "kernels/initialise/initialise.hpp"
#include "kernels/tiles.hpp"
#include "rheo/model/state.hpp"

namespace rheo::inline v0 {

tensor_storage& resident_state::add(tensor_id t)
{
    auto const count = static_cast<std::size_t>(elements(info(t).shape));
    auto storage = std::make_unique<tensor_storage>();
    storage->parameter.resize(count);
    storage->first_moment.resize(count);
    storage->second_moment.resize(count);
    put(t, std::move(storage));
    return tensor(t);
}

gradient_accumulator& resident_state::accumulator(use_id use)
{
    auto& entry = accumulators_[at(use)];
    if (entry == nullptr) {
        auto const t = info_->uses[at(use)].tensor;
        entry = std::make_unique<gradient_accumulator>();
        entry->sums.resize(static_cast<std::size_t>(elements(info(t).shape)));
        entry->state.scale_log2 = scales[at(t)];
    }
    return *entry;
}

void resident_state::clear_accumulator(use_id use, tile_pool& pool)
{
    if (auto& entry = accumulators_[at(use)]; entry != nullptr) {
        host::exact_zero(pool, static_cast<std::int64_t>(entry->sums.size()), entry->sums.data());
        entry->state = {.scale_log2 = scales[at(info_->uses[at(use)].tensor)]};
        entry->not_finite_at = microbatch_id{-1};
    }
}

void resident_state::clear_accumulators(tile_pool& pool)
{
    for (std::size_t u = 0; u < accumulators_.size(); ++u) {
        clear_accumulator(use_id{static_cast<std::int32_t>(u)}, pool);
    }
}

state_digest resident_state::digest(tensor_id t) const
{
    auto const& storage = tensor(t);
    auto const part = [&](tensor_role role, std::vector<float> const& values) {
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

void initialise(resident_state& state, tensor_id t, std::uint64_t seed, tile_pool& pool)
{
    auto& storage = state.add(t);
    auto const& initial = state.info(t).initial;
    auto const count = static_cast<std::int64_t>(storage.parameter.size());
    if (initial.deviation == 0) {
        host::initialise_constant(pool, {.count = count, .value = initial.mean, .values = storage.parameter.data()});
    } else {
        host::initialise_normal(pool, {.seed = seed, .tensor = t, .count = count, .mean = initial.mean,
                                       .deviation = initial.deviation, .values = storage.parameter.data()});
    }
}

void initialise_layers(resident_state& state, layer_id first, layer_id last, std::uint64_t seed, tile_pool& pool)
{
    for (auto const t : tensors_of(state.info(), first, last)) {
        if (state.info().tensors[at(t)].is_parameter) {
            initialise(state, t, seed, pool);
        }
    }
}

}  // namespace rheo::inline v0
