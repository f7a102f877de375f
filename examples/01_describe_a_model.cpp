// SPDX-License-Identifier: Apache-2.0
// A model is a type, its value says what it costs, and the compiler refuses layers that do not fit.
#include <cstdio>

#include "rheo/model/footprint.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"

constexpr rheo::gpt_shape small{.vocabulary = 50257, .context = 1024, .width = 768, .heads = 12, .blocks = 12};

using gpt2 = rheo::model<rheo::embedding<small>, rheo::repeat<12, rheo::transformer_block<small>>, rheo::classifier<small>>;

static_assert(rheo::describe<gpt2>() == rheo::gpt_model(small));  // the type and the run-time shape are one model
static_assert(rheo::fused(rheo::transformer_block<small>::describe()).ops.size() == 8);

int main()
{
    auto const model = rheo::fused(rheo::describe<gpt2>());
    auto const state = rheo::state_of(model);
    std::int64_t parameters = 0;
    for (auto const& tensor : state.tensors) {
        parameters += tensor.is_parameter ? rheo::elements(tensor.shape) : 0;
    }
    std::printf("%zu layers, %zu tensors, %zu uses, %lld parameters\n", model.layers.size(), state.tensors.size(), state.uses.size(),
                static_cast<long long>(parameters));

    constexpr rheo::microbatch_shape microbatch{.sequences = 4, .tokens = 64};
    auto const& block = model.layers[1];
    std::printf("a block keeps %.1f MiB per microbatch and sends %.2f MiB\n", rheo::in_mebibytes(rheo::activation_bytes(block, microbatch)),
                rheo::in_mebibytes(rheo::boundary_bytes(block, microbatch)));
    std::printf("a block as it runs:");
    for (auto const& o : block.ops) {
        std::printf(" %.*s", static_cast<int>(name_of(o.kind).size()), name_of(o.kind).data());
    }
    std::printf("\n");
}
