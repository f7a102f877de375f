// SPDX-License-Identifier: Apache-2.0
// Nodes of a Chakra trace per second, written and read: the computations, messages and reductions of a pipeline's rank, in memory; and the export of a
// step of 10,000 ranks.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "rheo/model/gpt.hpp"
#include "rheo/model/state.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/simulate/chakra/execution_nodes.hpp"
#include "rheo/simulate/chakra/execution_order.hpp"
#include "rheo/simulate/chakra/step_programs.hpp"
#include "rheo/simulate/chakra/work_sizes.hpp"
#include "rheo/simulate/chakra/write_execution.hpp"
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

/// The step of 1,250 pipelines of 8 ranks, 32 microbatches each: a GPT of 64 blocks on 10,000 ranks.
void export_step(benchmark::State& state)
{
    auto const pipelines = static_cast<int>(state.range(0));
    auto const model = gpt_model({.vocabulary = 50257, .context = 1024, .width = 1024, .heads = 16, .blocks = 62});
    auto const layers = static_cast<int>(model.layers.size());
    plan p{};
    p.schedule = one_f_one_b{};
    for (int i = 0; i < pipelines; ++i) {
        pipeline_instance pipeline;
        for (int s = 0; s < 8; ++s) {
            pipeline.cuts.push_back(layer_id{s * layers / 8});
            pipeline.stages.push_back({rank_id{i * 8 + s}});
        }
        pipeline.cuts.push_back(layer_id{layers});
        p.pipelines.push_back(pipeline);
    }
    p.work = deal(std::vector<int>(static_cast<std::size_t>(pipelines), 32));
    auto const units = reduction_units(state_of(model), layers);
    std::int64_t written = 0;
    std::size_t bytes = 0;
    for (auto _ : state) {
        auto const step = *step_programs_of(p, units, layers);
        auto const sizes = sizes_of(p, model, {.sequences = 1, .tokens = 1024}, bf16);
        auto const order = order_execution(step, pipelines * 8);
        for (std::size_t i = 0; i < step.ranks.size(); ++i) {
            for (std::size_t k = 0; k < step.ranks[i].size(); ++k) {
                auto const made = execution_nodes(step, sizes, order, {i, k}, static_cast<std::size_t>(pipelines) * 8);
                write_execution([&](std::string_view piece) { bytes += piece.size(); }, step.ranks[i][k], array_view{made});
                written += static_cast<std::int64_t>(made.size());
            }
        }
    }
    state.SetItemsProcessed(written);
    state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}

BENCHMARK(export_step)->Arg(125)->Arg(1250)->Unit(benchmark::kMillisecond);
BENCHMARK(write);
BENCHMARK(read);
BENCHMARK(read_and_resolve);

}  // namespace

BENCHMARK_MAIN();
