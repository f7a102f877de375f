#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the operations of a stage take on this rank: medians over repetitions, with the same kernels and shapes that its
// worker will run.

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "rheo/schedule/cost.hpp"
#include "runtime/stage.hpp"

namespace bench {

inline rheo::seconds median(std::vector<double> times)
{
    std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
    return {times[times.size() / 2]};
}

template <class Call>
double seconds_of(Call const& call)
{
    auto const begin = std::chrono::steady_clock::now();
    call();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The times of one item, the mean over the slices of a microbatch; transfers are left at 0.
inline rheo::stage_cost operation_times(rheo::stage& layers, int slices, int repeats)
{
    std::vector<std::unique_ptr<rheo::activation>> kept;
    for (int slice = 0; slice < slices; ++slice) {
        auto& a = *kept.emplace_back(std::make_unique<rheo::activation>(layers.layout()));
        for (int before = 0; before < slice; ++before) {
            a.before.push_back(kept[static_cast<std::size_t>(before)].get());
        }
        std::fill_n(a.input.get(), layers.input_floats(), 0.01F);
        for (std::size_t row = 0; row < a.tokens.size(); ++row) {
            a.tokens[row] = a.targets[row] = static_cast<std::int32_t>(row * 7 % 256);
        }
    }
    std::vector<float> above(layers.output_floats());
    std::vector<float> below(layers.input_floats());
    auto* const from = layers.has_loss() ? nullptr : above.data();
    auto* const to = below.empty() ? nullptr : below.data();
    std::function<bool(rheo::use_id)> const all = [](rheo::use_id) { return true; };
    rheo::loss_sum loss;
    std::vector<double> forward, backward, input_gradient, weight_gradient;
    for (int repeat = 0; repeat <= repeats; ++repeat) {
        for (bool const split : {false, true}) {
            rheo::stage_item item{.seed = 1, .step = rheo::step_id{1}, .microbatch = rheo::microbatch_id{repeat}};
            double up = 0, whole = 0, input = 0, weight = 0;
            for (item.slice = 0; item.slice < slices; ++item.slice) {
                auto& a = *kept[static_cast<std::size_t>(item.slice)];
                up += seconds_of([&] { layers.forward(a, item, loss); });
            }
            for (item.slice = slices - 1; item.slice >= 0; --item.slice) {
                auto& a = *kept[static_cast<std::size_t>(item.slice)];
                std::fill(above.begin(), above.end(), 0.01F);
                if (split) {
                    input += seconds_of([&] { layers.input_gradient(a, item, layers.first_layer(), from, to); });
                } else {
                    whole += seconds_of([&] { layers.backward(a, item, layers.first_layer(), from, to, all); });
                }
            }
            for (item.slice = slices - 1; split && item.slice >= 0; --item.slice) {
                weight += seconds_of([&] { layers.weight_gradient(*kept[static_cast<std::size_t>(item.slice)], item, layers.first_layer(), all); });
            }
            if (repeat == 0) {
                continue;  // pays for memory that is touched for the first time
            }
            forward.push_back(up / slices);
            (split ? input_gradient : backward).push_back((split ? input : whole) / slices);
            if (split) {
                weight_gradient.push_back(weight / slices);
            }
        }
    }
    return {median(forward), median(backward), median(input_gradient), median(weight_gradient), {}, {}};
}

}  // namespace bench
