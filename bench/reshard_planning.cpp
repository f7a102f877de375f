// SPDX-License-Identifier: Apache-2.0
// What planning a re-sharding takes: from one mesh of a GPT to another, up to ten thousand ranks. `gap` is how far the largest send is above its bound, in percent.
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "rheo/reshard/mesh.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/sub_collections.hpp"
#include "rheo/reshard/verify_reshard.hpp"

namespace {

using namespace rheo;

reshard_request between(mesh_shape from, mesh_shape to, int blocks, rank_choice ranks)
{
    auto const tensors = mesh_tensors(gpt_model({.vocabulary = 51200, .context = 1024, .width = 2048, .heads = 16, .blocks = blocks}));
    return {.from = mesh_layout(tensors, from, even_cuts(blocks + 2, from.pipeline)),
            .to = mesh_layout(tensors, to, even_cuts(blocks + 2, to.pipeline)),
            .node_of = ranks == rank_choice::whole_nodes ? nodes_of(std::max(ranks_of(from), ranks_of(to)), 8) : std::vector<node_id>{},
            .ranks = ranks};
}

/// ZeRO: the state of a GPT as one flat range over all ranks. No two ranks hold the same.
reshard_request between_flat(int from, int to, rank_choice ranks)
{
    std::vector<layout_tensor> tensors;
    for (int layer = 0; layer < 48; ++layer) {
        for (auto const& shape : {nd_shape{6144, 2048}, nd_shape{2048, 2048}, nd_shape{8192, 2048}, nd_shape{2048, 8192}}) {
            tensors.push_back({.name = tensor_name{std::to_string(tensors.size())}, .shape = shape, .element = {bytes{12}}});
        }
    }
    return {.from = on(ranks_from(rank_id{0}, from), flat(tensors, from), tensors),
            .to = on(ranks_from(rank_id{0}, to), flat(tensors, to), tensors),
            .ranks = ranks};
}

double peak_mebibytes()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;
}

void plan_request(benchmark::State& state, reshard_request const& request)
{
    reshard_outcome out;
    for (auto _ : state) {
        out = try_reshard(request);
    }
    if (out.fault) {
        state.SkipWithError(std::string{describe(out.fault).view()}.c_str());
        return;
    }
    auto const& is = out.plan.certificate;
    state.counters["tensors"] = static_cast<double>(request.from.tensors.size());
    state.counters["transfers"] = static_cast<double>(out.plan.transfers.size());
    state.counters["GiB"] = in_mebibytes(is.moved.value) / 1024;
    state.counters["gap"] = 100 * (is.largest_send.value / is.largest_send.bound - 1);
    state.counters["peak_MiB"] = peak_mebibytes();
}

void plan(benchmark::State& state, mesh_shape from, mesh_shape to, int blocks)
{
    plan_request(state, between(from, to, blocks, static_cast<rank_choice>(state.range(0))));
}

void plan_flat(benchmark::State& state, int from, int to) { plan_request(state, between_flat(from, to, static_cast<rank_choice>(state.range(0)))); }

void verify_plan(benchmark::State& state, mesh_shape from, mesh_shape to, int blocks)
{
    auto const request = between(from, to, blocks, static_cast<rank_choice>(state.range(0)));
    auto const out = try_reshard(request);
    for (auto _ : state) {
        if (auto const fault = verify(out.plan, request.from, request.to, request.node_of)) {
            state.SkipWithError(std::string{describe(fault).view()}.c_str());
        }
    }
}

// The argument: 0 pinned, 1 any rank, 2 whole nodes.
BENCHMARK_CAPTURE(plan, 64_ranks, mesh_shape{4, 2, 8}, mesh_shape{2, 4, 8}, 33)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, 9984_ranks, mesh_shape{8, 16, 78}, mesh_shape{8, 12, 104}, 48)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_flat, 10000_ranks, 10000, 9000)->DenseRange(0, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(verify_plan, 64_ranks, mesh_shape{4, 2, 8}, mesh_shape{2, 4, 8}, 33)->Arg(0)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
