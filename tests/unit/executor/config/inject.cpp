// SPDX-License-Identifier: Apache-2.0
// Faults for tests: what their words mean, and what is rejected.
#include "executor/config/inject.hpp"

#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("inject: a fault names what, who, when and where")
{
    CHECK(parse_fault("kill:2@3") == injected_fault{rank_id{2}, step_id{3}, fault_phase::forward});
    CHECK(parse_fault("kill:0@7.1:commit") == injected_fault{rank_id{0}, step_id{7}, fault_phase::commit, attempt_id{1}});
    CHECK(parse_fault("stop:1@0:copy") == injected_fault{rank_id{1}, step_id{0}, fault_phase::copy, {}, fault_kind::stop});
    CHECK(parse_fault("hang:1@0:shrink") == injected_fault{rank_id{1}, step_id{0}, fault_phase::shrink, {}, fault_kind::hang});
    CHECK(parse_fault("kill:1@40:part_torn") ==
          injected_fault{.rank = rank_id{1}, .step = step_id{40}, .phase = fault_phase::forward, .writing = checkpoint_point::part_torn});
    for (auto const* text : {"", "kill", "kill:", "kill:1", "kill:1@", "kill:-1@2", "kill:1@2:", "kill:1@2x", "hold:1@2", "stop1@2", "hangs:1@2"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_fault(text));
    }
    CHECK(parse_fault("drain:3@5") == injected_fault{.rank = rank_id{3}, .step = step_id{5}, .phase = fault_phase::forward, .kind = fault_kind::drain});
    CHECK(parse_fault("drain:3@5:copy").error() == "the fault 'drain:3@5:copy' is not of the form drain:rank@step: a rank leaves between two steps");
    CHECK(parse_fault("slow:3@5-9:1.25") ==
          injected_fault{.rank = rank_id{3}, .step = step_id{5}, .phase = fault_phase::forward, .kind = fault_kind::slow, .until = step_id{9}, .factor = 1.25});
    for (auto const* text :
         {"slow:3@5", "slow:3@5-9", "slow:3@9-5:2", "slow:3@5-9:0.5", "slow:3@5-9:nan", "slow:3@5-9:2x", "slow:3@5-9:2000", "slow:3@5:forward"}) {
        CAPTURE(text);
        CHECK(parse_fault(text).error().find("is not of the form slow:rank@from-to:factor") != std::string::npos);
    }
    CHECK(parse_fault("stop:1@2:comit").error() == "the fault 'stop:1@2:comit' names no phase of a step; the nearest is 'commit'");
}

TEST_CASE("inject: a rank leaves from its step on")
{
    std::vector<injected_fault> const faults{*parse_fault("drain:1@4"), *parse_fault("kill:2@1:copy")};
    fault_injector const one{faults, rank_id{1}};
    CHECK_FALSE(one.leaves(step_id{3}));
    CHECK(one.leaves(step_id{4}));
    CHECK(one.leaves(step_id{9}));  // the round in which it wanted to leave may have come to nothing
    CHECK_FALSE(fault_injector{faults, rank_id{2}}.leaves(step_id{4}));
}

TEST_CASE("inject: a slow device: the slower fault counts")
{
    std::vector<injected_fault> const faults{*parse_fault("slow:1@4-6:2"), *parse_fault("slow:1@6-8:1.5"), *parse_fault("slow:2@0-9:3")};
    fault_injector const one{faults, rank_id{1}};
    CHECK(one.slowness(step_id{3}) == 1.0);
    CHECK(one.slowness(step_id{4}) == 2.0);
    CHECK(one.slowness(step_id{6}) == 2.0);
    CHECK(one.slowness(step_id{8}) == 1.5);
    CHECK(one.slowness(step_id{9}) == 1.0);
    CHECK(fault_injector{faults, rank_id{0}}.slowness(step_id{4}) == 1.0);
    one.at(fault_phase::forward, step_id{4}, attempt_id{0});  // no rank ends for that
}
