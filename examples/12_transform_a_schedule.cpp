// SPDX-License-Identifier: Apache-2.0
// Schedules are values, and transforms take a program and return another one: lowered, relaxed, sliced, with recomputation, justified.
#include <cstdio>

#include "rheo/schedule/core/text.hpp"
#include "rheo/schedule/draw/draw.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/families/zb_h1.hpp"
#include "rheo/schedule/transform/justify.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/recomputation.hpp"
#include "rheo/schedule/transform/relax.hpp"
#include "rheo/schedule/transform/slices.hpp"

using namespace rheo;

void show(char const* name, program const& p) { std::printf("%s\n%s", name, to_text(p).c_str()); }

int main()
{
    auto const in = one_f_one_b::program({.ranks = 2, .microbatches = 2});
    show("in: 1F1B", in);
    show("lower: sends and receives", lower(in));
    show("relax: receives as late as the proof allows", relax(lower(in)));
    show("with_slices: 2 per microbatch", with_slices(in, 2));
    show("with_recomputation", with_recomputation(in));

    auto const split = zb_h1::program({.ranks = 3, .microbatches = 4});
    auto const costs = unit_costs(3);
    std::printf("in: ZB-H1\n%s", draw(split, costs).c_str());
    std::printf("justified\n%s", draw(justified(split, costs), costs).c_str());
}
