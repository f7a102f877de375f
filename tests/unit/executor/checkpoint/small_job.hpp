#pragma once
// SPDX-License-Identifier: Apache-2.0

// A job small enough to be checkpointed a thousand times: a GPT's state with values that depend on the step, several ranks that hold
// it, and the steps of writing as the trainer takes them, here by writers in one process.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/checkpoint_writer.hpp"
#include "executor/host/backend.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"

namespace small_job {

using namespace rheo;

inline constexpr gpt_shape shape{.vocabulary = 19, .context = 6, .width = 8, .heads = 2, .blocks = 2};

inline collection const& info()
{
    static collection const state = state_of(gpt_model(shape));
    return state;
}

/// The state after `step` steps of run number `run`: any values do, as long as no two are alike.
inline std::unique_ptr<resident_state> state_after(step_id step, std::uint64_t run = 1)
{
    static host_backend backend{1};
    auto state = std::make_unique<resident_state>(info(), backend);
    for (tensor_id t{0}; at(t) < info().tensors.size(); ++t) {
        state->scales[at(t)] = static_cast<int>(step.value % 7) + t.value;
        if (!info().tensors[at(t)].is_parameter) {
            continue;
        }
        auto& tensor = state->add(t);
        std::uint64_t word = mix_bits(static_cast<std::uint64_t>(step.value) * 1000 + static_cast<std::uint64_t>(t.value) + run * 77777);
        for (auto* values : {&tensor.parameter, &tensor.first_moment, &tensor.second_moment}) {
            for (auto& value : values->floats()) {
                word = mix_bits(word + 1);
                value = static_cast<float>(word >> 40) / 1024.0F - 4096.0F;
            }
        }
    }
    return state;
}

inline state_digest digest(resident_state const& state)
{
    state_digest sum;
    for (tensor_id t{0}; at(t) < info().tensors.size(); ++t) {
        if (state.holds(t)) {
            sum += state.digest(t);
            sum += digest_of_scales(info().tensors[at(t)].name, state.scales_of(t));
        }
    }
    return sum;
}

/// Everybody holds everything.
inline std::vector<rank_id> dealt(int ranks)
{
    std::vector<rank_id> all;
    for (rank_id r{0}; r.value < ranks; ++r) {
        all.push_back(r);
    }
    return deal_writing(info(), std::vector<std::vector<rank_id>>(info().tensors.size(), all));
}

inline checkpoint_publication publication(resident_state const& state, step_id step, generation_id generation, int ranks, int keep_last = 0)
{
    checkpoint_publication what{step, generation, {}, tensors_for_manifest(state), {{"seed", "1"}, {"BLAS", "any"}}, "schema = 1\n", "data", keep_last};
    for (rank_id r{0}; r.value < ranks; ++r) {
        what.parts.push_back(r);
    }
    return what;
}

struct written {
    writer_state state;
    std::string message;
};

/// Writes and publishes a checkpoint with as many writers as ranks. @param at for the first one, which publishes
inline written write(std::filesystem::path const& run, step_id step, int ranks, int keep_last = 0, std::uint64_t number = 1,
                     std::function<void(checkpoint_point)> at = {}, generation_id generation = generation_id{1})
{
    auto const state = state_after(step, number);
    auto const writers = dealt(ranks);
    std::vector<std::unique_ptr<checkpoint_writer>> all;
    for (rank_id r{0}; r.value < ranks; ++r) {
        all.push_back(std::make_unique<checkpoint_writer>(run, r.value == 0 ? at : nullptr));
        all.back()->begin(take_part(*state, writers, r, step, generation));
    }
    for (auto& writer : all) {
        if (writer->wait() != writer_state::ready) {
            return {writer->state(), writer->message()};
        }
    }
    for (std::size_t r = 1; r < all.size(); ++r) {
        all[r]->hand_over();
    }
    all.front()->publish(publication(*state, step, generation, ranks, keep_last));
    auto const end = all.front()->wait();
    return {end, all.front()->message()};
}

/// The checkpoint has all bits of that state.
inline bool same(checkpoint const& from, resident_state const& state)
{
    resident_state read{info(), state.backend()};
    std::fill(read.scales.begin(), read.scales.end(), 1000);
    from.read_scales(read, 1);
    if (from.manifest().digest() != digest(state) || !from.load_error(info()).empty() || read.scales != state.scales) {
        return false;
    }
    for (tensor_id t{0}; at(t) < info().tensors.size(); ++t) {
        if (!state.holds(t)) {
            continue;
        }
        auto const values = from.read(info().tensors[at(t)].name);
        auto const held = values_of(state.backend(), state.tensor(t));
        if (values.parameter != held.parameter || values.first_moment != held.first_moment || values.second_moment != held.second_moment) {
            return false;
        }
    }
    return true;
}

}  // namespace small_job
