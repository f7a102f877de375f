// SPDX-License-Identifier: Apache-2.0
// Training steps of GPT-2 124M on one rank through rheo::run, whole: tokens per second, the share of the machine's
// measured GEMM peak, and where a step's time goes against what its flops and bytes would take at that peak and at
// this machine's memory bandwidth. Then the same steps in PyTorch, when it is there, and in llm.c, when given where
// that is, as ratios.
//   bench_train_throughput [--json] [--steps 6] [--threads 2] [--sequences 4] [--tokens 64] [--python python3] [--llm-c FOLDER]
// Start it by itself, on a machine that does nothing else. Needs 5 GB of memory.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "../step_durations.hpp"
#include "executor/train/run.hpp"
#include "kernels/adamw/adamw.hpp"
#include "kernels/blas.hpp"
#include "kernels/tiles.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/state.hpp"
#include "rheo/trace/json_lines.hpp"

namespace {

using namespace rheo;
using json = nlohmann::ordered_json;

struct arguments {
    bool json = false;
    int steps = 6;
    int threads = 2;
    int sequences = 4;
    int tokens = 64;
    std::string python = "python3";
    std::string llm_c{};  ///< the folder with llm.c's train_gpt2.c; empty: not compared
};

arguments read_arguments(int argc, char** argv)
{
    arguments result;
    std::map<std::string_view, int*> const numbers{
        {"--steps", &result.steps}, {"--threads", &result.threads}, {"--sequences", &result.sequences}, {"--tokens", &result.tokens}};
    for (int i = 1; i < argc; ++i) {
        std::string_view const word{argv[i]};
        if (word == "--json") {
            result.json = true;
        } else if (word == "--python" && i + 1 < argc) {
            result.python = argv[++i];
        } else if (word == "--llm-c" && i + 1 < argc) {
            result.llm_c = argv[++i];
        } else if (auto const found = numbers.find(word); found != numbers.end() && i + 1 < argc) {
            *found->second = std::stoi(argv[++i]);
        } else {
            fmt::print(stderr,
                       "usage: bench_train_throughput [--json] [--steps N] [--threads N] [--sequences N] [--tokens N] [--python PROGRAM] "
                       "[--llm-c FOLDER]\n");
            std::exit(2);
        }
    }
    return result;
}

template <class Work>
double least_seconds(int repetitions, Work&& work)
{
    double least = 1e30;
    for (int i = 0; i < repetitions; ++i) {
        auto const start = std::chrono::steady_clock::now();
        work();
        least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    return least;
}

/// 1024^3 products, one per thread at a time; the best of a second's worth, in flop/s.
double gemm_peak(tile_pool& pool)
{
    std::int64_t const n = 1024;
    std::vector<float> const a(static_cast<std::size_t>(n * n), 0.5F);
    std::vector<float> c(static_cast<std::size_t>(n * n * pool.threads()));
    double const time = least_seconds(30, [&] {
        pool.run(2 * pool.threads(), [&](std::int64_t, int worker) {
            sgemm({.m = n, .n = n, .k = n, .a = a.data(), .a_row = n, .b = a.data(), .b_row = n, .c = c.data() + worker * n * n, .c_row = n});
        });
    });
    return 2.0 * 1024 * 1024 * 1024 * 2 * pool.threads() / time;
}

/// Bytes read and written per second in place, over much more than the caches hold.
double memory_bandwidth(tile_pool& pool)
{
    constexpr std::int64_t piece = 1 << 14;
    constexpr std::int64_t pieces = 8192;  // 512 MiB
    std::vector<float> values(static_cast<std::size_t>(piece * pieces), 1.0F);
    double const time = least_seconds(8, [&] {
        pool.run(pieces, [&](std::int64_t t, int) {
            auto* const v = values.data() + t * piece;
            for (std::int64_t i = 0; i < piece; ++i) {
                v[i] += 1.0F;
            }
        });
    });
    return 2.0 * sizeof(float) * piece * pieces / time;
}

/// What a step has to do, counted from the model.
struct step_counts {
    double matrix_parameters = 0;  ///< of products: a forward is 2 flops each per token, a backward 4; the tied table counts once
    double parameters = 0;
    double contributions = 0;    ///< parameters counted once per use
    double attention_flops = 0;  ///< per step
};

step_counts count(gpt_shape const& shape, collection const& state, std::int64_t sequences, std::int64_t tokens)
{
    step_counts result;
    auto const width = static_cast<double>(shape.width);
    result.matrix_parameters = 12.0 * shape.blocks * width * width + static_cast<double>(shape.vocabulary) * width;
    for (auto const& tensor : state.tensors) {
        if (tensor.is_parameter) {
            result.parameters += static_cast<double>(elements(tensor.shape));
            result.contributions += static_cast<double>(elements(tensor.shape)) * static_cast<double>(tensor.uses.size());
        }
    }
    // Two products forward and four backward of 2 * tokens^2 * width flops, and one forward again in the backward; half is masked.
    result.attention_flops = shape.blocks * static_cast<double>(sequences) * 7 * 2.0 * static_cast<double>(tokens * tokens) * width / 2;
    return result;
}

/// Seconds of a step by activity, the median over steps, from the rank's own trace.
std::map<std::string, double> parts_of_a_step(std::filesystem::path const& folder, step_id first_step)
{
    struct step_parts {
        std::map<std::string, double> seconds{};
        double reduced = 0;
        double voted = 0;
    };
    std::ifstream file{folder / "trace" / "rank-0.jsonl"};
    std::map<std::int64_t, step_parts> steps;
    for (auto const& event : read_json_lines(file).events) {
        if (event.step < first_step) {
            continue;
        }
        auto& step = steps[event.step.value];
        step.seconds[std::string{name_of(event.activity)}] += event.end.count - event.start.count;
        if (event.activity == activity::await_reduction) {
            step.reduced = event.end.count;
        } else if (event.activity == activity::decide) {
            step.voted = event.start.count;
        }
    }
    std::map<std::string, std::vector<double>> all;
    for (auto& [number, step] : steps) {
        if (step.seconds.contains("update") && step.seconds.contains("B")) {  // a whole step, not the closing
            step.seconds["norm"] = step.voted - step.reduced;                 // with the reduction of a few numbers
            for (auto const& [what, time] : step.seconds) {
                all[what].push_back(time);
            }
        }
    }
    std::map<std::string, double> result;
    for (auto const& [what, times] : all) {
        result[what] = bench::median(times);
    }
    return result;
}

/// The JSON object in the last line that a command prints; null if there is none.
json said_by(std::string const& line)
{
    std::string last;
    if (auto* const pipe = ::popen((line + " 2>/dev/null").c_str(), "r")) {
        std::array<char, 512> part{};
        while (std::fgets(part.data(), static_cast<int>(part.size()), pipe) != nullptr) {
            bool const goes_on = !last.empty() && last.back() != '\n';
            last = goes_on ? last + part.data() : std::string{part.data()};
        }
        ::pclose(pipe);
    }
    auto const result = json::parse(last, nullptr, false);
    return result.is_object() ? result : json{};
}

/// One word for the shell.
std::string shell_word(std::string_view word)
{
    std::string result = "'";
    for (char const c : word) {
        result += c == '\'' ? std::string{"'\\''"} : std::string{c};
    }
    return result + "'";
}

json torch_result(arguments const& given)
{
    auto const result = said_by(fmt::format("{} {} --threads {} --steps {} --sequences {} --tokens {}", shell_word(given.python), shell_word(RHEO_TORCH_SCRIPT),
                                            given.threads, given.steps, given.sequences, given.tokens));
    return result.is_null() ? json{{"skipped", fmt::format("'{}' could not run the PyTorch script", given.python)}} : result;
}

/// Compiled as llm.c's makefile does.
json llm_c_result(arguments const& given)
{
    if (given.llm_c.empty()) {
        return {{"skipped", "--llm-c does not say where it is"}};
    }
    auto const program = std::filesystem::temp_directory_path() / fmt::format("rheo-llm-c-{}", ::getpid());
    auto const result = said_by(fmt::format("cc -Ofast -march=native -fopenmp -DOMP -w -I{} {} -o {} -lm && OMP_NUM_THREADS={} {} {} {} {}",
                                            shell_word(given.llm_c), shell_word(RHEO_LLM_C_DRIVER), shell_word(program.string()), given.threads,
                                            shell_word(program.string()), given.steps, given.sequences, given.tokens));
    std::error_code gone;
    std::filesystem::remove(program, gone);
    return result.is_null() ? json{{"skipped", fmt::format("'{}' has no train_gpt2.c that could be compiled and run", given.llm_c)}} : result;
}

struct part {
    std::string name;
    double seconds;
    double bound;  ///< what its flops at the GEMM peak or its bytes at the memory bandwidth take; 0: neither
};

}  // namespace

int main(int argc, char** argv)
{
    auto const given = read_arguments(argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);

    run_config config;
    config.model = {.vocabulary = 50257, .context = 1024, .width = 768, .heads = 12, .blocks = 12};
    config.train.steps = given.steps + 2;  // the first is redone with its own scales, the second warms up
    config.train.microbatches = 1;
    config.train.microbatch = {given.sequences, given.tokens};
    config.train.eval_microbatches = 1;
    config.plan.failures = 0;
    config.run.threads = given.threads;
    config.run.trace = true;  // some dozens of events of a third of a microsecond in a step of a second
    auto const folder = std::filesystem::temp_directory_path() / fmt::format("rheo-train-throughput-{}", ::getpid());
    config.run.folder = folder.string();

    tile_pool pool{given.threads};
    double const peak = gemm_peak(pool);
    double const bandwidth = memory_bandwidth(pool);
    auto const result = run(MPI_COMM_WORLD, gpt_model(config.model), config, {.quiet = true});
    if (result.exit_code != 0) {
        fmt::print(stderr, "{}\n", result.record.message);
        leave_job(result);
    }
    auto const durations = bench::step_durations(folder);
    auto const parts = parts_of_a_step(folder, step_id{2});
    std::filesystem::remove_all(folder);

    auto const state = state_of(fused(gpt_model(config.model)));
    auto const counts = count(config.model, state, given.sequences, given.tokens);
    double const tokens = static_cast<double>(given.sequences) * given.tokens;
    double const step = bench::median(durations);
    double const flops = 6 * counts.matrix_parameters * tokens + counts.attention_flops;
    auto const at = [&](std::string const& what) { return parts.contains(what) ? parts.at(what) : 0.0; };

    // AdamW and the zeroing of the accumulators are one event: AdamW is measured by itself, the rest is zeroing.
    double adamw = 0;
    {
        auto const n = static_cast<std::int64_t>(counts.parameters);
        std::vector<float> master(static_cast<std::size_t>(n), 0.01F);
        auto first = master;
        auto second = master;
        auto const gradient = master;
        adamw = least_seconds(3, [&] {
            host::adamw(pool, {.count = n,
                               .master = master.data(),
                               .first_moment = first.data(),
                               .second_moment = second.data(),
                               .gradient = gradient.data(),
                               .settings = {.learning_rate = 1e-3, .step = 10}});
        });
    }
    double const tied = static_cast<double>(config.model.vocabulary) * static_cast<double>(config.model.width);
    // Forward and backward: products at the peak; the backward besides reads and writes each accumulator.
    std::vector<part> const table{
        {"forward", at("F"), (2 * counts.matrix_parameters * tokens + counts.attention_flops * 2 / 7) / peak},
        {"backward", at("B"), (4 * counts.matrix_parameters * tokens + counts.attention_flops * 5 / 7) / peak + 16 * counts.contributions / bandwidth},
        // 8 bytes read and 4 written per parameter; of the tied table there is a second use to read, and the two meet in the cache.
        // What is written without having been read is fetched first, so it counts twice.
        {"reduction", at("REDUCE") + at("AWAIT"), (16 * counts.parameters + 8 * tied) / bandwidth},
        {"norm", at("norm"), 4 * counts.parameters / bandwidth},
        {"vote", at("decide"), 0},
        {"AdamW", std::min(adamw, at("update")), 28 * counts.parameters / bandwidth},
        {"zeroing, the rest", std::max(0.0, at("update") - adamw), 16 * counts.contributions / bandwidth},
    };
    struct rival {
        std::string name;
        std::string key;
        json said;
    };
    std::vector<rival> const rivals{{"PyTorch", "torch", torch_result(given)}, {"llm.c", "llm_c", llm_c_result(given)}};
    auto const ratio_to = [&](rival const& r) { return tokens / step / r.said["tokens_per_s"].get<double>(); };

    if (given.json) {
        json object{{"bench", "train_throughput"},
                    {"model", "gpt2-124m"},
                    {"sequences", given.sequences},
                    {"tokens", given.tokens},
                    {"threads", given.threads},
                    {"steps", durations.size()},
                    {"step_s", step},
                    {"tokens_per_s", tokens / step},
                    {"flops_per_step", flops},
                    {"gemm_peak_flop_per_s", peak},
                    {"share_of_peak", flops / step / peak},
                    {"memory_bytes_per_s", bandwidth},
                    {"parts", json::array()}};
        for (auto const& p : table) {
            object["parts"].push_back({{"part", p.name}, {"seconds", p.seconds}, {"bound_s", p.bound}});
        }
        for (auto const& r : rivals) {
            object[r.key] = r.said;
            if (r.said.contains("tokens_per_s")) {
                object["ratio_to_" + r.key] = ratio_to(r);
            }
        }
        fmt::print("{}\n", object.dump());
    } else {
        fmt::print("GPT-2 124M, {} x {} tokens a step, {} threads: {:.0f} tokens/s ({:.3f} s a step, median of {})\n", given.sequences, given.tokens,
                   given.threads, tokens / step, step, durations.size());
        fmt::print("GEMM peak {:.0f} GFLOP/s, memory {:.1f} GB/s; {:.1f} GFLOP a step: {:.0f} % of the peak\n\n", peak * 1e-9, bandwidth * 1e-9, flops * 1e-9,
                   100 * flops / step / peak);
        fmt::print("  {:<20}{:>10}{:>10}{:>12}\n", "part", "ms", "% of step", "bound, ms");
        for (auto const& p : table) {
            fmt::print("  {:<20}{:>10.1f}{:>10.1f}{:>12.1f}\n", p.name, 1e3 * p.seconds, 100 * p.seconds / step, 1e3 * p.bound);
        }
        fmt::print("\n");
        for (auto const& r : rivals) {
            if (r.said.contains("tokens_per_s")) {
                fmt::print("{}: {:.0f} tokens/s, so rheo has {:.2f} times as many\n",
                           r.name + (r.said.contains("version") ? " " + r.said.value("version", "") : ""), r.said["tokens_per_s"].get<double>(), ratio_to(r));
            } else {
                fmt::print("not compared with {}: {}\n", r.name, r.said.value("skipped", ""));
            }
        }
    }
    leave_job(result);
}
