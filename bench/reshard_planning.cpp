// SPDX-License-Identifier: Apache-2.0
// What planning a re-sharding takes: from one mesh of a GPT to another, up to ten thousand ranks. `gap` is how far the largest send is above its bound, in percent.
// And what choosing ranks saves where every rank's part goes to the next one: `left` is what still moves, in percent of what moves without a choice,
// beside COSTA's published rule.
#include <algorithm>
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

/// What still moves by COSTA's rule (Kabic et al., ISC 2021): pairs of ranks that exchange their places, the one that saves most first, no rank twice.
std::int64_t left_by_disjoint_exchanges(std::vector<std::vector<std::int64_t>> const& shared)
{
    struct exchange {
        std::int64_t saves;
        std::size_t a;
        std::size_t b;
    };
    std::vector<exchange> all;
    std::int64_t left = 0;
    auto const ranks = shared.size();
    for (std::size_t a = 0; a < ranks; ++a) {
        for (std::size_t b = 0; b < ranks; ++b) {
            left += a == b ? 0 : shared[a][b];
            if (a < b) {
                all.push_back({shared[a][b] + shared[b][a] - shared[a][a] - shared[b][b], a, b});
            }
        }
    }
    std::stable_sort(all.begin(), all.end(), [](exchange const& x, exchange const& y) { return x.saves > y.saves; });
    std::vector<bool> taken(ranks, false);
    for (auto const& one : all) {
        if (one.saves > 0 && !taken[one.a] && !taken[one.b]) {
            taken[one.a] = taken[one.b] = true;
            left -= one.saves;
        }
    }
    return left;
}

/// The argument is the number of ranks. @pre each has one part of a byte
void cyclic_shift(benchmark::State& state)
{
    auto const ranks = static_cast<int>(state.range(0));
    std::vector<layout_tensor> const all{{.name = "w", .shape = {ranks}, .element = {bytes{1}}}};
    reshard_request request{.from = {all, {}}, .to = {all, {}}, .ranks = rank_choice::any};
    std::vector<std::vector<std::int64_t>> shared(static_cast<std::size_t>(ranks), std::vector<std::int64_t>(static_cast<std::size_t>(ranks), 0));
    for (int r = 0; r < ranks; ++r) {
        auto const next = (r + 1) % ranks;
        request.from.places.push_back({{rank_id{r}}, {{tensor_id{0}, {{r, r + 1}}}}});
        request.to.places.push_back({{rank_id{next}}, {{tensor_id{0}, {{r, r + 1}}}}});
        shared[static_cast<std::size_t>(r)][static_cast<std::size_t>(next)] = 1;
    }
    reshard_outcome out;
    for (auto _ : state) {
        out = try_reshard(request);
    }
    state.counters["left"] = 100.0 * static_cast<double>(out.plan.certificate.moved.value.count) / ranks;
    state.counters["left_by_COSTA"] = 100.0 * static_cast<double>(left_by_disjoint_exchanges(shared)) / ranks;
}

// The argument: 0 pinned, 1 any rank, 2 whole nodes.
BENCHMARK_CAPTURE(plan, 64_ranks, mesh_shape{4, 2, 8}, mesh_shape{2, 4, 8}, 33)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan, 9984_ranks, mesh_shape{8, 16, 78}, mesh_shape{8, 12, 104}, 48)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(plan_flat, 10000_ranks, 10000, 9000)->DenseRange(0, 1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(verify_plan, 64_ranks, mesh_shape{4, 2, 8}, mesh_shape{2, 4, 8}, 33)->Arg(0)->Unit(benchmark::kMillisecond);

BENCHMARK(cyclic_shift)->DenseRange(3, 8)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
