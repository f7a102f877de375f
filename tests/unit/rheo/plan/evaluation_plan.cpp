// SPDX-License-Identifier: Apache-2.0
#include "rheo/plan/evaluation_plan.hpp"

#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("evaluation_plan: dealt to pipelines in turn, forward only")
{
    plan whole{.schedule = one_f_one_b{}, .pipelines = {}, .work = {{{microbatch_id{0}, layer_id{0}}}, {{microbatch_id{1}, layer_id{0}}}, {}}, .spares = {}};
    auto const found = evaluation_plan(whole, 5);
    std::vector<std::vector<microbatch_work>> const expected{{{microbatch_id{0}, no_backward}, {microbatch_id{3}, no_backward}},
                                                             {{microbatch_id{1}, no_backward}, {microbatch_id{4}, no_backward}},
                                                             {{microbatch_id{2}, no_backward}}};
    CHECK(found.work == expected);
    CHECK(found.schedule == whole.schedule);
}
