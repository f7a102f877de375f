// SPDX-License-Identifier: Apache-2.0
#include "executor/state/measured_state.hpp"

#include <algorithm>

namespace rheo::inline v0 {

namespace {

template <class T>
bytes size_of_array(array<T> const& values)
{
    return {static_cast<std::int64_t>(values.size() * sizeof(T))};
}
bytes size_of_array(state_array const& values) { return {static_cast<std::int64_t>(values.size_bytes())}; }

}  // namespace

parameter_bytes measured_state(resident_state& state, std::span<layer_id const> layers)
{
    auto const here = [&](layer_id layer) { return std::binary_search(layers.begin(), layers.end(), layer); };
    parameter_bytes sum{};
    for (tensor_id t{0}; at(t) < state.info().tensors.size(); ++t) {
        auto const& info = state.info(t);
        if (!info.is_parameter || std::none_of(info.layers.begin(), info.layers.end(), here)) {
            continue;
        }
        if (state.holds(t)) {
            auto const& storage = state.tensor(t);
            sum.master += size_of_array(storage.parameter);
            sum.moments += size_of_array(storage.first_moment) + size_of_array(storage.second_moment);
            sum.stored += size_of_array(storage.stored);
        }
        for (auto const use : info.uses) {
            if (state.has_accumulator(use) && here(state.info().uses[at(use)].layer)) {
                auto const& sums = state.accumulator(use);
                sum.accumulators += size_of_array(sums.sums) + size_of_array(sums.sums_in_32) + size_of_array(sums.rows);
            }
        }
    }
    return sum;
}

}  // namespace rheo::inline v0
