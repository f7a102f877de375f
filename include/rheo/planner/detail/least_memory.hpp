#pragma once
// SPDX-License-Identifier: Apache-2.0

// The least memory of a rank with which a pipeline can be cut, for the error that says that the limit is too small.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "rheo/model/model.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/planner/job_templates.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0::detail {

/// In hundredths of a MiB, rounded up, at most 0.1 % above the least; none: there are no such pipelines with any memory. Cost: that of the templates a dozen
/// times. @param sizes of pipelines, of which one is enough  @param pipelines that hold each layer  @pre none of them keeps within request.memory_limit
template <class OnlyWhenCalled = void>
std::optional<std::int64_t> least_memory(model_description const& model, planning_request const& request, size_range sizes, int pipelines)
{
    constexpr std::int64_t mebibyte = 1 << 20;
    auto const layers = planned_layers(model, request, 1, pipelines);
    std::optional<std::int64_t> enough;
    for (auto const& made : templates_for(layers, request, sizes)) {
        auto const needed = (made.fullest.count * 100 + mebibyte - 1) / mebibyte;
        enough = made.split ? std::min(enough.value_or(needed), needed) : enough;
    }
    auto const keeps_within = [&](std::int64_t hundredths) {
        auto const made = templates_for(layers, request, sizes, 1, bytes{hundredths * mebibyte / 100});
        return std::any_of(made.begin(), made.end(), [](makespan_template const& one) { return static_cast<bool>(one.split); });
    };
    for (int tries = 0; enough && tries < 10 && !keeps_within(*enough); ++tries) {  // orders of some families hold more of fewer microbatches
        *enough *= 2;
    }
    auto too_little = std::min(request.memory_limit->count * 100 / mebibyte, enough.value_or(0));
    while (enough && *enough - too_little > std::max<std::int64_t>(1, *enough / 1024)) {
        auto const middle = too_little + (*enough - too_little) / 2;
        (keeps_within(middle) ? *enough : too_little) = middle;
    }
    return enough;
}

}  // namespace rheo::inline v0::detail
