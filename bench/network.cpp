// SPDX-License-Identifier: Apache-2.0
// What playing messages on a network takes: all pairs on a ring, collectives on thousands of ranks, a fit of lines.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "rheo/simulate/collectives/collective_time.hpp"
#include "rheo/simulate/network/arrivals.hpp"
#include "rheo/simulate/network/fitted.hpp"

namespace {

using namespace rheo;

template <class Model, class Link>
void all_pairs_on_a_ring(benchmark::State& state, Link link)
{
    auto const ranks = static_cast<int>(state.range(0));
    std::vector<network_level<Link>> const levels{{ranks, network_topology::ring, link}};
    auto const messages = all_pairs<typename Model::time>(ranks, mebibytes(1));
    std::int64_t hops = 0;
    for (auto _ : state) {
        message_network<Model, std::uint32_t> network{levels};
        for (auto const& m : messages) {
            network.send(m.from, m.to, m.size, m.at, 0);
        }
        while (network.next()) {
        }
        hops += network.hops();
    }
    state.counters["messages"] = static_cast<double>(messages.size());
    state.counters["hops"] = static_cast<double>(hops) / static_cast<double>(state.iterations());
    state.counters["hops/s"] = benchmark::Counter(static_cast<double>(hops), benchmark::Counter::kIsRate);
}

void whole_nanoseconds_on_a_ring(benchmark::State& state)
{
    all_pairs_on_a_ring<integer_contended_network>(state, integer_link{500.0, gibibytes_per_second(50.0)});
}
BENCHMARK(whole_nanoseconds_on_a_ring)->Arg(256)->Unit(benchmark::kMillisecond);

void seconds_on_a_ring(benchmark::State& state) { all_pairs_on_a_ring<contended_network>(state, modelled_link{nanoseconds(500.0), {50e9}}); }
BENCHMARK(seconds_on_a_ring)->Arg(256)->Unit(benchmark::kMillisecond);

/// Nodes of eight devices behind a switch, the sum of a gigabyte over all of them.
void all_reduce_of_nodes(benchmark::State& state)
{
    auto const nodes = static_cast<int>(state.range(0));
    std::vector<network_level<>> const levels{{8, network_topology::switched, {microseconds(1.0), {450e9}}},
                                              {nodes, network_topology::switched, {microseconds(5.0), {50e9}}, 8}};
    collective_request<contended_network> request{.size = gibibytes(1)};
    request.form = static_cast<collective_form>(state.range(1));
    double time = 0.0;
    for (auto _ : state) {
        time = collective_time<contended_network>(levels, request)->count;
    }
    state.counters["simulated_ms"] = time * 1e3;
}
BENCHMARK(all_reduce_of_nodes)
    ->Args({128, static_cast<int>(collective_form::ring)})
    ->Args({128, static_cast<int>(collective_form::halving_doubling)})
    ->Args({1024, static_cast<int>(collective_form::halving_doubling)})
    ->Unit(benchmark::kMillisecond);

void fit_of_lines(benchmark::State& state)
{
    std::vector<fitted_line> const lines{{microseconds(20.0), 1e-9}, {microseconds(50.0), 1e-10}, {microseconds(400.0), 1e-11}};
    std::vector<measured_time> rows;
    for (std::int64_t size = 8; size <= (std::int64_t{1} << 33); size *= 2) {
        rows.push_back({{size}, fitted_time(lines, {size})});
    }
    for (auto _ : state) {
        benchmark::DoNotOptimize(fit_lines(rows));
    }
}
BENCHMARK(fit_of_lines)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
