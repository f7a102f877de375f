#pragma once
// SPDX-License-Identifier: Apache-2.0

// How many pipelines of which size N' ranks make: redundancy first, then time. Leaving a rank idle is an
// answer, too, when no choice of sizes takes it or when that is quicker; such ranks are spares.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rheo/pipeline/detail/choose_sizes.hpp"
#include "rheo/pipeline/detail/decimal.hpp"
#include "rheo/pipeline/split_batch.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct instantiation_request {
    int ranks;
    int failures;      ///< f: at least f + 1 pipelines are made whenever they fit
    int microbatches;  ///< of a step, over all pipelines

    friend constexpr bool operator==(instantiation_request, instantiation_request) = default;
};

struct instantiation {
    std::vector<int> sizes{};   ///< of the pipelines, ascending
    std::vector<int> shares{};  ///< microbatches per pipeline
    int spares = 0;             ///< ranks left over
    bool degraded = false;      ///< fewer than f + 1 pipelines fit, so fewer than f losses are survivable for sure
    seconds time{};             ///< estimate of an iteration

    friend constexpr bool operator==(instantiation const&, instantiation const&) = default;
};

namespace detail {

/// Why so many ranks make no pipeline; empty when they make one.
template <class OnlyWhenCalled = void>
constexpr std::string too_few_ranks(template_set_value const& ready, int ranks)
{
    if (ready.templates.empty()) {
        return "there is no pipeline template: no partition of the model is allowed";
    }
    auto const smallest = size(ready.templates.front());
    if (ranks < smallest) {
        return decimal(ranks) + (ranks == 1 ? " rank is" : " ranks are") + " too few: the smallest pipeline template takes " + decimal(smallest);
    }
    return {};
}

template <class OnlyWhenCalled = void>
constexpr std::string no_room_for(int microbatches)
{
    return "no choice of these templates has memory for " + decimal(microbatches) + " microbatches";
}

}  // namespace detail

/// Chooses the sizes for so many ranks: at least f + 1 pipelines when they fit (else as many as fit), no
/// more than microbatches beyond that; then the least iteration time, then the fewest spares, then the
/// lexicographically smallest ascending sizes.
/// @pre ranks >= 0, failures >= 0, microbatches >= 1
/// Cost: O((f + 1) x ranks x templates) a bisection step, of which there are about log2 of the time in nanoseconds.
template <class OnlyWhenCalled = void>
constexpr result<instantiation> instantiate(template_set_value const& ready, instantiation_request request)
{
    expects(request.ranks >= 0, "a number of ranks cannot be negative");
    expects(request.failures >= 0, "the number of failures to survive cannot be negative");
    expects(request.microbatches >= 1, "a step needs at least one microbatch");
    if (auto error = detail::too_few_ranks(ready, request.ranks); !error.empty()) {
        return failure{std::move(error)};
    }
    auto const problem = detail::make_size_problem(ready, request.ranks, request.failures, request.microbatches);
    auto const optimum = detail::least_deadline(problem);
    if (optimum.used == 0) {
        return failure{detail::no_room_for(request.microbatches)};
    }
    instantiation answer;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
        order.push_back(i);
    }
    answer.sizes = detail::list_choices(problem, optimum, order, 1, 0).front();
    auto const split = split_batch(costs_of_sizes(ready, answer.sizes), request.microbatches);
    answer.shares = split.shares;
    answer.time = split.time;
    answer.spares = request.ranks - optimum.used;
    answer.degraded = problem.fewest < request.failures + 1;
    return answer;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<instantiation> instantiate<>(template_set_value const&, instantiation_request);
#endif

}  // namespace rheo::inline v0
