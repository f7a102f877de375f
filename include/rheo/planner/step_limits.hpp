#pragma once
// SPDX-License-Identifier: Apache-2.0

// What keeps a step from being shorter: the memory limit, the links, or waiting in the pipeline. Each is taken away alone, and the step is priced again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "rheo/model/model.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/group_prices.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/planner/recompute_policy.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

enum class step_limit : std::uint8_t { computation, memory, links, waiting };

constexpr std::string_view name_of(step_limit limit)
{
    constexpr std::string_view names[] = {"computation", "memory", "links", "waiting"};
    return names[static_cast<std::size_t>(limit)];
}

/// Modelled times of a step.
struct step_limits {
    seconds step{};                                 ///< of the plan
    std::optional<seconds> without_memory_limit{};  ///< of the plan that would be chosen; none if there is no limit
    seconds without_link_time{};                    ///< of the same plan if messages and exchanges took no time
    seconds without_waiting{};                      ///< if computation and exchanges were spread evenly over the ranks and the step

    friend bool operator==(step_limits const&, step_limits const&) = default;
};

/// The limit without which the step would be shortest; computation if none shortens it by 1 %.
constexpr step_limit binding_limit(step_limits const& limits)
{
    auto binding = step_limit::computation;
    auto shortest = limits.step * 0.99;
    for (auto const& [limit, time] : {std::pair{step_limit::memory, limits.without_memory_limit.value_or(limits.step)},
                                      {step_limit::links, limits.without_link_time},
                                      {step_limit::waiting, limits.without_waiting}}) {
        if (time < shortest) {
            shortest = time;
            binding = limit;
        }
    }
    return binding;
}

namespace detail {

/// The request on a machine whose links take no time.
template <class OnlyWhenCalled = void>
planning_request without_link_time(planning_request request)
{
    constexpr modelled_link free{{0.0}, {1e30}};
    request.machine.in_node = free;
    request.machine.between_nodes = free;
    for (auto& layer : request.profile) {
        std::fill(layer.all_reduce.begin(), layer.all_reduce.end(), seconds{});
    }
    return request;
}

}  // namespace detail

/// What bounds the step of a plan that make_plan returned for this request and so many ranks. Cost: with a memory limit, that of make_plan.
template <class OnlyWhenCalled = void>
step_limits limits_of_step(plan const& p, model_description const& model, planning_request const& request, int ranks)
{
    step_limits limits{.step = time_of_step(p, model, request)};
    limits.without_link_time = time_of_step(p, model, detail::without_link_time(request));
    auto const waiting = parts_of_step(p, model, request, limits.step).waiting;  // below 0 by rounding to nanoseconds
    limits.without_waiting = limits.step * (1.0 - std::max(0.0, waiting));
    if (request.memory_limit) {
        auto unlimited = request;
        unlimited.memory_limit.reset();
        if (unlimited.recompute == recompute_policy::automatic || unlimited.recompute == recompute_policy::selective) {
            unlimited.recompute = recompute_policy::never;
        }
        if (auto const other = make_plan(model, unlimited, ranks)) {
            limits.without_memory_limit = std::min(limits.step, time_of_step(other->plan, model, unlimited));
        }
    }
    return limits;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template step_limits limits_of_step<>(plan const&, model_description const&, planning_request const&, int);
#endif

}  // namespace rheo::inline v0
