// SPDX-License-Identifier: Apache-2.0
// A rank that waits for a sum before it has sent the gradient with which its neighbour completes that sum.
// expect: the product of the pipelines hangs
#include <vector>

#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/reductions.hpp"

constexpr bool two_pipelines_end()
{
    auto const tied = rheo::units_by_stage{{rheo::reduction_id{0}}, {rheo::reduction_id{0}}};
    std::vector<rheo::program> programs;
    for (int microbatches : {1, 3}) {
        auto const compute = rheo::one_f_one_b::program({.ranks = 2, .microbatches = microbatches});
        programs.push_back(rheo::with_reductions(rheo::lower(compute), tied, 0));
    }
#ifdef RHEO_MISTAKE
    auto& row = programs[0].rows[1];  // receive, F, B, send, post, await -> receive, F, B, post, await, send
    auto const send = row[3];
    row.erase(row.begin() + 3);
    row.push_back(send);
#endif
    return rheo::deadlock_free<rheo::rendezvous>(programs).ok;
}

static_assert(two_pipelines_end(), "the product of the pipelines hangs");
