// SPDX-License-Identifier: Apache-2.0
// Nodes are lost, one is drained, one comes back: what the others decide is a value, and each of them finds the same one.
#include <algorithm>
#include <cstdio>

#include "rheo/pipeline/membership.hpp"
#include "rheo/pipeline/plan_templates.hpp"

using namespace rheo;
// Eight layers of 1 MiB, pipelines on two nodes at least; f = 2 nodes may be lost at once.
struct job {
    std::vector<seconds> times = std::vector<seconds>(8, milliseconds(10));
    template_set_value ready = plan_templates(times, {.from = 2, .to = 6});
    std::vector<tensor_bytes> tensors;
    std::vector<pipeline_instance> pipelines;
    std::vector<rank_holdings> members;
};

void lose(job& of, int node)
{
    std::erase_if(of.members, [&](auto const& m) { return m.rank == rank_id{node}; });
}

void decide(char const* what, job& of, std::vector<rank_id> leaving = {})
{
    auto const decision = decide_membership({of.pipelines, of.members, leaving, &of.ready, of.tensors, {.failures = 2, .microbatches = 24}});
    std::printf("%-22s", what);
    for (std::size_t p = 0; p < decision.next->pipelines.size(); ++p) {
        std::printf(p == 0 ? "%zu" : " + %zu", decision.next->pipelines[p].stages.size());
    }
    std::printf(" nodes%s, %.0f MiB copied%s; %s\n", decision.next->rebuilt ? ", all rebuilt" : "", in_mebibytes(decision.next->moved),
                decision.replay ? ", part of the step again" : "", decision.message.c_str());
    of.pipelines = decision.next->pipelines;  // it is done: everyone has what its place needs
    of.members = holdings_in(*decision.next, of.members);
    std::for_each(leaving.begin(), leaving.end(), [&](rank_id rank) { lose(of, rank.value); });
}

int main()
{
    job of;
    for (int l = 0; l < 8; ++l) {
        of.tensors.push_back({{layer_id{l}}, mebibytes(1)});
    }
    for (int node = 0; node < 9; ++node) {
        of.members.push_back({rank_id{node}, {}, {}, {}});
    }
    of.pipelines = recompose(of.members, of.ready, {}, {.failures = 2, .microbatches = 24})->pipelines;
    of.members = holdings_in({.pipelines = of.pipelines}, of.members);
    decide("nine nodes", of);
    lose(of, 8);
    decide("node 8 is lost", of);
    decide("node 3 is drained", of, {rank_id{3}});
    of.members.push_back({rank_id{9}, {}, {}, {}});
    lose(of, 0);
    decide("9 waits, 0 is lost", of);
    lose(of, 9);
    lose(of, 1);
    decide("1 and 9 are lost", of);
}
