// SPDX-License-Identifier: Apache-2.0
// The events of a run, and traces of PyTorch's profiler, read and analyzed: operators, launches and kernels of a training as they stand in a file,
// in memory. Events per second
// are those of the file for the reader, those that ran on the device for the analysis.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "rheo/analyze/device/analysis.hpp"
#include "rheo/analyze/step/run_analysis.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/reductions.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/trace/json_lines.hpp"
#if __has_include("executor/records/kineto/kineto_reader.hpp")
#include "executor/records/kineto/kineto_reader.hpp"
#endif

namespace {

using namespace rheo;

constexpr std::int64_t kernels = 100'000;
constexpr std::int64_t events_of_kernel = 3;

/// An operator, a launch and a kernel for each kernel, every tenth an all-reduce on a stream of its own.
std::string make_file()
{
    std::string text = R"({"distributedInfo":{"rank":0},"traceEvents":[)";
    for (std::int64_t k = 0; k < kernels; ++k) {
        auto const number = std::to_string(k);
        auto const launched = std::to_string(1'700'000'000'000'000 + 40 * k);
        auto const begins = std::to_string(1'700'000'000'000'020 + 40 * k);
        bool const reduces = k % 10 == 0;
        text += R"({"ph":"X","cat":"cpu_op","name":"aten::linear","pid":1,"tid":1,"ts":)" + launched + R"(.125,"dur":30.5,"args":{"External id":)" + number +
                R"(,"Record function id":0,"Sequence number":12,"Fwd thread id":0,"Ev Idx":)" + number + "}},\n";
        text += R"({"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":)" + launched + R"(.250,"dur":4.125,"args":{"External id":)" +
                number + R"(,"cbid":211,"correlation":)" + number + "}},\n";
        text += R"({"ph":"X","cat":"kernel","name":")" +
                std::string{reduces ? "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
                                    : "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float> >(int, at::native::AddFunctor<float>)"} +
                R"(","pid":0,"tid":7,"ts":)" + begins + R"(.500,"dur":35.25,"args":{"External id":)" + number +
                R"(,"queued":0,"device":0,"context":1,"stream":)" + (reduces ? "20" : "7") + R"(,"correlation":)" + number +
                R"(,"registers per thread":16,"shared memory":0,"blocks per SM":1.2,"warps per SM":4.8,"grid":[128,1,1],"block":[128,1,1]}})" +
                (k + 1 < kernels ? ",\n" : "]}");
    }
    return text;
}

/// What the reader makes of such a file.
rank_trace make_trace(std::int64_t count)
{
    rank_trace trace;
    trace.streams = {{0, 7}, {0, 20}};
    trace.names = {"kernel", "AllReduce"};
    trace.collectives = {"AllReduce"};
    for (std::int64_t k = 0; k < count; ++k) {
        trace.launches.push_back({{40'000 * k}, {40'000 * k + 4'000}, k});
        bool const reduces = k % 10 == 0;
        trace.events.push_back({.begin = {40'000 * k + 20'000},
                                .end = {40'000 * k + 55'000},
                                .correlation = k,
                                .name = reduces ? 1U : 0U,
                                .collective = reduces ? 0U : no_collective,
                                .stream = static_cast<std::uint16_t>(reduces ? 1 : 0),
                                .work = reduces ? device_work::communication : device_work::compute});
        if (k % 1000 == 0) {
            trace.steps.push_back({k / 1000, {40'000 * k}, {40'000 * (k + 1000)}});
        }
    }
    put_in_order(trace);
    return trace;
}

#if __has_include("executor/records/kineto/kineto_reader.hpp")
void read(benchmark::State& state)
{
    auto const file = make_file();
    for (auto _ : state) {
        std::string_view rest = file;
        auto const found = read_kineto([&](char* to, std::size_t room) {
            auto const count = std::min(room, rest.size());
            std::memcpy(to, rest.data(), count);
            rest.remove_prefix(count);
            return count;
        });
        if (!found || found->events != events_of_kernel * kernels) {
            state.SkipWithError("the file was not read");
        }
    }
    state.SetItemsProcessed(events_of_kernel * kernels * state.iterations());
    state.SetBytesProcessed(static_cast<std::int64_t>(file.size()) * state.iterations());
}
BENCHMARK(read)->Unit(benchmark::kMillisecond);
#endif

void analyze_ranks(benchmark::State& state)
{
    std::vector<rank_trace> const traces(static_cast<std::size_t>(state.range(0)), make_trace(kernels));
    for (auto _ : state) {
        benchmark::DoNotOptimize(analyze(array_view<rank_trace const>{traces}));
    }
    state.SetItemsProcessed(state.range(0) * kernels * state.iterations());
}
BENCHMARK(analyze_ranks)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);

/// Eight pipelines of eight ranks, 32 microbatches each: 11,520 events a step.
std::vector<trace_event> make_run(int steps)
{
    std::vector<stage_work> work;
    for (int m = 0; m < 32; ++m) {
        work.push_back({microbatch_id{m}, stage_id{0}});
    }
    modelled_step step{};
    for (int p = 0; p < 8; ++p) {
        auto const lowered = lower(one_f_one_b::program(8, work));
        units_by_stage units;
        std::vector<rank_id> ranks;
        for (int s = 0; s < 8; ++s) {
            units.push_back({reduction_id{s}});
            ranks.push_back(rank_id{8 * p + s});
        }
        stage_cost const cost{milliseconds(10), milliseconds(20), milliseconds(10), milliseconds(10), milliseconds(1), milliseconds(1)};
        step.pipelines.push_back({with_reductions(lowered, units, 8), ranks, stage_costs(8, cost)});
    }
    step.reductions.assign(8, milliseconds(2));
    step.decide = step.update = milliseconds(1);
    std::vector<trace_event> events;
    for (int s = 0; s < steps; ++s) {
        auto const rehearsed = rehearse_step(step);
        events.insert(events.end(), rehearsed.events.begin(), rehearsed.events.end());
        step.begin = rehearsed.end;
        ++step.step;
    }
    put_in_order(events);
    return events;
}

void read_run(benchmark::State& state)
{
    auto const events = make_run(20);
    std::ostringstream lines;
    write_json_lines(lines, events);
    for (auto _ : state) {
        std::istringstream in{lines.str()};
        benchmark::DoNotOptimize(read_json_lines(in));
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(events.size()) * state.iterations());
}
BENCHMARK(read_run)->Unit(benchmark::kMillisecond);

void analyze_steps(benchmark::State& state)
{
    auto const events = make_run(20);
    for (auto _ : state) {
        benchmark::DoNotOptimize(analyze_run(recorded_steps(array_view<trace_event const>{events})));
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(events.size()) * state.iterations());
}
BENCHMARK(analyze_steps)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
