// SPDX-License-Identifier: Apache-2.0
#include "executor/inference/model_part.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "rheo/partition/optimal.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

layer_span layers_of(model_description const& model, int number, int count)
{
    std::vector<std::int64_t> sizes;  // the last one's are added to those of the one before it
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
        std::int64_t size = 0;
        for (auto const& p : model.layers[l].parameters) {
            size += elements(p.shape);
        }
        if (l + 1 < model.layers.size()) {
            sizes.push_back(size);
        } else {
            sizes.back() += size;
        }
    }
    if (count > std::ssize(sizes)) {
        throw exit_error{exit_code::usage, fmt::format("{} ranks are started, but the model has {} layers to share between them", count, sizes.size())};
    }
    return layers_of(optimal_cuts(array_view<std::int64_t const>{sizes}, count), stage_id{number});
}

}  // namespace rheo::inline v0
