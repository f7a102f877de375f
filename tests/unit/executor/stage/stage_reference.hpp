#pragma once
// SPDX-License-Identifier: Apache-2.0

// A step of the stage against the reference in double, within what float allows.

#include <cmath>
#include <vector>

#include "stage_steps.hpp"
#include "support/catch.hpp"

namespace stage_steps {

/// The gradient of a tensor: the exact sum over its uses, made float once.
inline std::vector<float> gradient(collection const& info, step_result const& step, std::size_t t)
{
    std::vector<std::int64_t> sums(static_cast<std::size_t>(elements(info.tensors[t].shape)));
    for (auto const use : info.tensors[t].uses) {
        for (std::size_t i = 0; i < sums.size(); ++i) {
            sums[i] += step.uses[at(use)].sums[i];
        }
    }
    std::vector<float> result;
    for (auto const s : sums) {
        result.push_back(value_of(s, first_scale));
    }
    return result;
}

/// Per tensor, |g - g_reference| in Euclidean norm: what float may do (reference::float_error), half a unit of the
/// exact sum per contribution and element, and the rounding of the sum to float.
inline void check_against_reference(gpt_shape shape, model_description const& model, int slices = 1)
{
    auto const step = random_step(shape, 3);
    auto const info = state_of(model);
    reference::gpt const exact{shape, batch, seed};
    REQUIRE(exact.info() == info);
    auto const expected = exact.sums(step);
    auto const allowed = reference::float_error(exact, step);
    auto const actual = run_step(model, step, {.cuts = {0, static_cast<int>(model.layers.size())}, .slices = slices});
    double const unit = std::ldexp(1.0, -first_scale);
    for (std::size_t t = 0; t < info.tensors.size(); ++t) {
        if (!info.tensors[t].is_parameter) {
            continue;
        }
        auto const g = gradient(info, actual, t);
        double const contributions = static_cast<double>(step.size() * static_cast<std::size_t>(slices) * info.tensors[t].uses.size());
        double const size = reference::distance(expected.gradients[t], reference::values(g.size()));
        double const bound = allowed.gradients[t] + 0.5 * unit * contributions * std::sqrt(static_cast<double>(g.size())) + 0x1p-24 * size;
        double const distance = reference::distance(g, expected.gradients[t]);
        INFO(info.tensors[t].name << ": distance " << distance << ", bound " << bound << ", size " << size);
        CHECK(distance <= bound);
        CHECK((size == 0 || bound <= 1e-4 * size));  // else the bound would say nothing
    }
    double const rows_counted = static_cast<double>(expected.targets);
    CHECK(actual.loss.targets == expected.targets);
    CHECK(std::fabs(mean_loss(actual.loss) * rows_counted - expected.loss) <= allowed.loss + 0.5 * rows_counted / loss_units_per_nat);
    CHECK_FALSE(actual.loss.not_finite);
}

}  // namespace stage_steps
