#pragma once
// SPDX-License-Identifier: Apache-2.0

// The shortest order of all, for small sizes, with its proof, by branch and bound (detail/branch_and_bound.hpp).

#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/search/detail/branch_and_bound.hpp"
#include "rheo/schedule/search/exact_answer.hpp"
#include "rheo/schedule/search/list_schedule.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// The shortest order of the request's computations, within its memory cap, with its proof: when the search ends within
/// `most_nodes`, the makespan is the lower bound; else the best order found stands beside the bound of the whole problem.
/// @pre as list_schedule
template <class OnlyWhenCalled = void>
constexpr result<exact_answer> exact_schedule(list_request const& request, long most_nodes = 1'000'000)
{
    auto const known = list_schedule(request);
    if (known) {
        return detail::branch_and_bound{request, most_nodes}.run(known->program, makespan(known->program, request.costs));
    }
    if (request.copies == 1) {  // no order does with less: all stages hold a whole microbatch when its first backward begins
        return failure{known.error()};
    }
    detail::branch_and_bound search{request, most_nodes};
    auto found = search.run({}, search.whole_work());
    if (found.program.rows.empty()) {
        return failure{found.nodes > most_nodes ? "no order was found within the branches allowed" : "no order keeps within the memory cap"};
    }
    return found;
}

}  // namespace rheo::inline v0
