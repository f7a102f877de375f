#pragma once
// SPDX-License-Identifier: Apache-2.0

// A checkpoint of any model that a config describes, at its first values.

#include <vector>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/checkpoint_writer.hpp"
#include "executor/config/toml.hpp"
#include "executor/host/backend.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/model/state.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace written_model {

using namespace rheo;

/// `step-4` in the folder, of the whole model on a grid of one. Every value is drawn, norms and biases among them, so that none can be mistaken for another.
inline checkpoint write(temporary_folder const& run, run_config config)
{
    auto const model = whole_model_of(config);
    auto const info = state_of(model);
    static host_backend backend{1};
    resident_state state{info, backend};
    std::vector<std::vector<rank_id>> holders(info.tensors.size(), {rank_id{0}});
    initialise_layers(state, layer_id{0}, layer_id{static_cast<int>(model.layers.size())}, 3);
    std::uint64_t word = 5;
    for (tensor_id t{0}; at(t) < info.tensors.size(); ++t) {
        if (info.tensors[at(t)].is_parameter) {
            for (auto& value : state.tensor(t).parameter.floats()) {
                word = mix_bits(word + 1);
                value += static_cast<float>(word >> 40) * 0x1p-28F;
            }
        }
    }
    config.train.microbatch.tokens = std::min(config.train.microbatch.tokens, config.model.context);
    checkpoint_writer writer{run.path};
    writer.begin(take_part(state, deal_writing(info, holders), rank_id{0}, step_id{4}, generation_id{1}));
    REQUIRE(writer.wait() == writer_state::ready);
    writer.publish({step_id{4}, generation_id{1}, {rank_id{0}}, tensors_for_manifest(state), {{"seed", "1"}}, to_toml(config), "d", 1});
    REQUIRE(writer.wait() == writer_state::published);
    return checkpoint{run.path / "step-4"};
}

inline checkpoint write(temporary_folder const& run, gpt_shape shape)
{
    run_config config;
    config.model = shape;
    return write(run, config);
}

}  // namespace written_model
