#pragma once
// SPDX-License-Identifier: Apache-2.0

// For stage_on_pass.hpp: how a walk over layers is put into the queue of a device. Its kernels find what changes from item to item in memory, and the
// rest of their arguments hangs on the slot: so the walk can be recorded for it.

#include <algorithm>

#include "executor/stage/stage_on.hpp"

namespace rheo::inline v0 {

/// Tokens, targets and random numbers of an item.
template <class Kernels>
void stage_on<Kernels>::begin_item(activation const& a, stage_item const& item, bool with_order)
    requires Kernels::reads_items
{
    bool const embeds = layers_.front().in_width == 0;
    std::vector<random_stream> streams;
    for (auto const& [layer, op] : dropping_) {
        if (item.training) {
            streams.push_back(stream_of({item.seed, item.step, item.microbatch, layer_id{first_.value + static_cast<int>(layer)}, op}));
        }
    }
    kernels_.begin_item({.tokens = embeds ? std::span<std::int32_t const>{a.tokens} : std::span<std::int32_t const>{},
                         .targets = has_loss() ? std::span<std::int32_t const>{a.targets} : std::span<std::int32_t const>{},
                         .order = embeds && with_order ? &a.order : nullptr,
                         .streams = streams});
}

/// All that the arguments of a walk's kernels hang on, besides the item's values and what the stage was made with; empty for what does not come again
/// and again (what a loss has left of a step, backwards that end early or leave out a use), and where members exchange in between.
template <class Kernels>
std::vector<std::uintptr_t> stage_on<Kernels>::slot_of(pass_kind which, activation& a, stage_item const& item, gradient_ends const& ends)
    requires Kernels::reads_items
{
    if (!kernels_.records() || !group_.is_alone() || item.remainder || depth_of(ends.lowest) > 0 ||
        (ends.adds != nullptr && !std::all_of(uses_.begin(), uses_.end(), *ends.adds))) {
        return {};
    }
    std::vector<std::uintptr_t> slot{static_cast<std::uintptr_t>(which), static_cast<std::uintptr_t>(item.training), static_cast<std::uintptr_t>(item.slice)};
    auto const lies = [&slot](void const* place) { slot.push_back(reinterpret_cast<std::uintptr_t>(place)); };
    lies(a.memory.data());
    lies(a.input.data());
    lies(a.gradients.data());
    lies(ends.above);
    lies(ends.below);
    for (auto const* before : a.before) {
        lies(before->memory.data());
    }
    for (auto const use : uses_) {
        auto const& tensor = state_->tensor(state_->info().uses[at(use)].tensor);
        lies(tensor.parameter.data());
        lies(tensor.stored.data());
        if (ends.adds != nullptr) {
            auto const& sums = state_->accumulator(use);
            lies(sums.sums.data());
            lies(sums.sums_in_32.data());
            lies(sums.rows.data());
        }
    }
    return slot;
}

template <class Kernels>
template <class Work>
void stage_on<Kernels>::perform(pass_kind which, activation& a, stage_item const& item, gradient_ends const& ends, Work const& work)
{
    if constexpr (Kernels::reads_items) {
        begin_item(a, item, ends.adds != nullptr);
        kernels_.perform(slot_of(which, a, item, ends), work);
    } else {
        work();
    }
}

}  // namespace rheo::inline v0
