// SPDX-License-Identifier: Apache-2.0
// The compiler makes, checks and compares programs of 8 ranks x 16 microbatches within its default limits.
#include "rheo/schedule/check/figures.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/proved.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

template <class Family>
inline constexpr bool proved_8x16 = proved<Family, schedule_shape{.ranks = 8, .microbatches = 16}>;

template <class Family>
constexpr double makespan_8x16()
{
    auto const p = Family::program({.ranks = 8, .microbatches = 16});
    return makespan(p, even_costs(p, {{1.0}, {2.0}, {1.0}, {1.0}, {0.0}, {0.0}})).count;
}

}  // namespace

static_assert(proved_8x16<zb_h1> && proved_8x16<zb_h2> && proved_8x16<zb_v> && proved_8x16<dualpipe> && proved_8x16<chimera>);
static_assert(proved_8x16<interleaved> && proved_8x16<zb1p> && proved_8x16<v_half> && proved_8x16<hanayo> && proved_8x16<bitpipe> && proved_8x16<seq1f1b>);
static_assert(makespan_8x16<one_f_one_b>() == 69.0 && makespan_8x16<interleaved>() == 58.5);
static_assert(makespan_8x16<zb_h1>() == 55.0 && makespan_8x16<zb_v>() == 51.5);
static_assert(peak_activations(zb_v::program({.ranks = 8, .microbatches = 16})) == 16);

TEST_CASE("compile_time: 8 x 16 of eleven families proved") { SUCCEED(); }
