#pragma once
// SPDX-License-Identifier: Apache-2.0

// The layers of a model that one process of several has, in a pipeline, and how it exchanges rows and tokens with the others. As it stands: all layers.

#include <cstddef>
#include <functional>
#include <span>

#include "executor/text/bpe_model.hpp"
#include "rheo/model/model.hpp"
#include "rheo/partition/cuts.hpp"

namespace rheo::inline v0 {

struct model_part {
    int number = 0;
    int count = 1;                                           ///< of parts
    std::function<void(std::span<std::byte>)> receive{};     ///< rows from the part before; the first has none
    std::function<void(std::span<std::byte const>)> send{};  ///< rows to the part behind; the last has none
    std::function<void(std::span<token_id>)> share{};        ///< tokens of the last part, to all

    bool is_last() const { return number + 1 == count; }
};

/// The layers of a part, without the model's last one, which the last part has besides: cut so that the largest part has the fewest parameters.
/// @throws exit_error (usage) when there are more parts than layers
layer_span layers_of(model_description const& model, int number, int count);

}  // namespace rheo::inline v0
