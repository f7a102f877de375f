#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the operations of a stage take on this rank: means over items, with the same kernels and shapes that its worker will run, as many
// items in flight as a step has, so that no operation finds more in the caches than there. Means, as a step is a sum: what disturbs the
// machine now and then is a part of both.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "rheo/schedule/cost.hpp"
#include "runtime/stage.hpp"

namespace bench {

template <class Call>
double seconds_of(Call const& call)
{
    auto const begin = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Which backwards a stage has in its program.
struct backwards {
    bool whole = false;
    bool split = false;
};

/// The times of one item, the mean over the slices of microbatches; transfers and what is not wanted are left at 0. @param in_flight microbatches
inline rheo::stage_cost operation_times(rheo::stage& layers, int slices, int in_flight, backwards wanted)
{
    std::vector<std::unique_ptr<rheo::activation>> kept;
    for (int i = 0; i < in_flight * slices; ++i) {
        auto& a = *kept.emplace_back(std::make_unique<rheo::activation>(layers.layout()));
        for (int before = i - i % slices; before < i; ++before) {
            a.before.push_back(kept[static_cast<std::size_t>(before)].get());
        }
        std::fill_n(reinterpret_cast<float*>(a.input.data()), layers.input_bytes() / sizeof(float), 0.01F);
        for (std::size_t row = 0; row < a.tokens.size(); ++row) {
            a.tokens[row] = a.targets[row] = static_cast<std::int32_t>(row * 7 % 256);
        }
    }
    std::vector<float> above(layers.output_bytes() / sizeof(float));
    std::vector<float> below(layers.input_bytes() / sizeof(float));
    auto* const from = layers.has_loss() ? nullptr : above.data();
    auto* const to = below.empty() ? nullptr : below.data();
    std::function<bool(rheo::use_id)> const all = [](rheo::use_id) { return true; };
    rheo::loss_sum loss;
    rheo::stage_item item{.seed = 1, .step = rheo::step_id{1}, .microbatch = rheo::microbatch_id{0}};
    /// The mean of an operation of all items, microbatches in their order, the slices of each in theirs or the other way round.
    auto const mean = [&](bool backwards, auto const& operation) {
        double sum = 0;
        for (int m = 0; m < in_flight; ++m) {
            for (int k = 0; k < slices; ++k) {
                item.microbatch = rheo::microbatch_id{m};
                item.slice = backwards ? slices - 1 - k : k;
                auto& a = *kept[static_cast<std::size_t>(m * slices + item.slice)];
                std::fill(above.begin(), above.end(), 0.01F);
                sum += seconds_of([&] { operation(a); });
            }
        }
        return rheo::seconds{sum / (in_flight * slices)};
    };
    std::vector<double> forwards;
    auto const forward = [&] { forwards.push_back(mean(false, [&](auto& a) { layers.forward(a, item, loss); }).count); };
    rheo::stage_cost cost{};
    if (wanted.whole) {
        forward();
        cost.backward = mean(true, [&](auto& a) { layers.backward(a, item, layers.first_layer(), from, to, all); });
    }
    if (wanted.split) {
        forward();
        cost.input_gradient = mean(true, [&](auto& a) { layers.input_gradient(a, item, layers.first_layer(), from, to); });
        cost.weight_gradient = mean(true, [&](auto& a) { layers.weight_gradient(a, item, layers.first_layer(), all); });
    }
    cost.forward = {std::accumulate(forwards.begin(), forwards.end(), 0.0) / static_cast<double>(std::max(forwards.size(), std::size_t{1}))};
    return cost;
}

}  // namespace bench
