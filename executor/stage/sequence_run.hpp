#pragma once
// SPDX-License-Identifier: Apache-2.0

// Rows of an item that are neighbouring tokens of one sequence whose earlier tokens were computed by other forwards. An item of such runs has rows of
// several sequences at different positions, and each row has the bits that it has alone.

#include <cstdint>
#include <span>
#include <vector>

#include "rheo/model/layer.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// The keys and values of a sequence's tokens in each attention of some layers, in the memory of the processor: what later tokens attend to. A forward adds
/// those of its own rows. Tokens may be computed again from any position on, then those behind it are others.
class key_value_cache {
public:
    /// @param first the number in the model of the first of these layers
    explicit key_value_cache(std::span<layer_description const> layers, layer_id first = {});

    /// Those of the tokens at positions 0 .. tokens-1 in an attention, [tokens, 2 * kv_width]: of a token the keys of all heads, then the values. Valid until
    /// the next call; what was there stays. Memory grows by half at least. @pre the layer has this attention
    float* of(layer_id layer, op_id op, std::int64_t tokens);

    std::int64_t bytes() const;           ///< that it has taken
    std::int64_t bytes_of_token() const;  ///< that each token takes

private:
    struct attention {
        layer_id layer;
        op_id op;
        std::int64_t width;  ///< of keys and values together
        std::vector<float> rows{};
    };
    std::vector<attention> attentions_;
};

struct sequence_run {
    std::int64_t rows;                 ///< of the item, behind those of the runs before it
    std::int64_t first = 0;            ///< the position of the first of them: so many tokens of the sequence lie before it
    key_value_cache* cache = nullptr;  ///< of those, and then of these; null where no layer attends
};

/// The rows of all runs.
constexpr std::int64_t rows_of(std::span<sequence_run const> runs)
{
    std::int64_t sum = 0;
    for (auto const& run : runs) {
        sum += run.rows;
    }
    return sum;
}

}  // namespace rheo::inline v0
