// SPDX-License-Identifier: Apache-2.0
// Nodes of a Chakra trace per second, written and read: the computations, messages and reductions of a pipeline's rank, in memory.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>

#include "rheo/trace/chakra/dependencies.hpp"
#include "rheo/trace/chakra/reader.hpp"
#include "rheo/trace/chakra/writer.hpp"

namespace {

using namespace rheo;

constexpr std::uint64_t nodes = 300'000;

/// A computation, a send that waits for it and a receive, in turns.
template <class Sink>
void write_nodes(Sink sink)
{
    std::array computation{make_attribute("is_cpu_op", false), make_attribute("num_ops", std::int64_t{1'234'567'890}),
                           make_attribute("tensor_size", std::uint64_t{1} << 26U)};
    std::array message{make_attribute("is_cpu_op", false), make_attribute("comm_size", std::int64_t{1 << 20}), make_attribute("comm_src", 2),
                       make_attribute("comm_dst", 3), make_attribute("comm_tag", 0)};
    chakra_writer writer{sink, chakra_metadata{"1.0.0"}};
    for (std::uint64_t i = 1; i < nodes; i += 3) {
        std::array const before{i - 1};
        std::array const computed{i};
        message[4].bits = i / 3;
        writer.add({.id = i,
                    .name = "F 12",
                    .type = chakra_node_type::comp,
                    .data_deps = {before.data(), i > 1 ? before.size() : 0},
                    .duration_micros = 1500,
                    .attributes = computation});
        writer.add({.id = i + 1, .name = "SEND_F 12", .type = chakra_node_type::comm_send, .data_deps = computed, .attributes = message});
        writer.add({.id = i + 2, .name = "RECV_F 13", .type = chakra_node_type::comm_recv, .attributes = message});
    }
    writer.finish();
}

void write(benchmark::State& state)
{
    std::size_t bytes = 0;
    for (auto _ : state) {
        write_nodes([&](std::string_view piece) {
            benchmark::DoNotOptimize(piece.data());
            bytes += piece.size();
        });
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(nodes) * state.iterations());
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}

std::string const& file()
{
    static auto const written = [] {
        std::string text;
        write_nodes([&](std::string_view piece) { text += piece; });
        return text;
    }();
    return written;
}

void read(benchmark::State& state)
{
    for (auto _ : state) {
        chakra_reader reader{chakra_bytes{file()}};
        std::uint64_t sum = 0;
        while (auto const* const node = reader.next()) {
            sum += node->id + node->attributes.size();
        }
        benchmark::DoNotOptimize(sum);
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(nodes) * state.iterations());
    state.SetBytesProcessed(static_cast<std::int64_t>(file().size()) * state.iterations());
}

/// The same with ids and dependencies checked.
void read_and_resolve(benchmark::State& state)
{
    for (auto _ : state) {
        chakra_reader reader{chakra_bytes{file()}};
        chakra_dependencies<> dependencies;
        while (auto const* const node = reader.next()) {
            dependencies.add(*node);
        }
        auto const wrong = dependencies.finish();
        if (!wrong.empty()) {
            state.SkipWithError(wrong.c_str());
        }
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(nodes) * state.iterations());
}

BENCHMARK(write);
BENCHMARK(read);
BENCHMARK(read_and_resolve);

}  // namespace

BENCHMARK_MAIN();
