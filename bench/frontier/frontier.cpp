// SPDX-License-Identifier: Apache-2.0
// How long the frontier takes, by stages and microbatches: the published problem where RHEO_SHARED names its folder, a
// made-up profile of 38 clocks elsewhere; a look-up; the clocks of one deadline. Then the same problem is given to the
// Python package lowtime (RHEO_PYTHON, else python3), where it is installed.
#include <benchmark/benchmark.h>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "rheo/energy/clocks/bucket_clocks.hpp"
#include "rheo/energy/clocks/clock_bound.hpp"
#include "rheo/energy/clocks/round_to_clocks.hpp"
#include "rheo/energy/frontier/certificate.hpp"
#include "rheo/energy/frontier/continued_plan.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/energy/profile/profile_csv.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"

namespace {

using namespace rheo;

constexpr watts blocking{83.64};

/// A device that computes 1.3 times as long at 0.6 of its clock, with power that rises with the cube; stages differ a little.
profile made_up(int stages)
{
    profile result;
    for (int stage = 0; stage < stages; ++stage) {
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            double const work = (kind == instruction_kind::forward ? 50.0 : 95.0) * (1.0 + 0.03 * ((stage * 5) % 7));
            for (int step = 0; step < 38; ++step) {
                double const share = 1.0 - 0.4 * step / 37.0;
                auto const time = milliseconds(work * (0.45 + 0.55 / share));
                auto const power = 90.0 + 390.0 * share * share * share;
                result.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {1410.0 * share}, time, watts{power} * time});
            }
        }
    }
    return result;
}

/// The published profile of 8 stages; empty where it is not.
profile published()
{
    auto const* shared = std::getenv("RHEO_SHARED");
    std::ifstream file{std::string{shared == nullptr ? "" : shared} + "/data/perseus/gpt3-175b_a100-sxm_profile.csv"};
    std::stringstream text;
    text << file.rdbuf();
    auto read = parse_profile(text.str(), "profile");
    return read ? *std::move(read) : profile{};
}

made_network problem(profile const& measured, int microbatches, cost_fit fit)
{
    auto const p = one_f_one_b::program({.ranks = stages_of(measured), .microbatches = microbatches});
    return *make_activity_network(make_event_network(p), measured, {blocking, fit});
}

void solve(benchmark::State& state, profile const& measured, cost_fit fit, frontier_begin begin)
{
    if (measured.rows.empty()) {
        state.SkipWithError("RHEO_SHARED names no folder with the published profile");
        return;
    }
    auto const made = problem(measured, static_cast<int>(state.range(0)), fit);
    std::size_t vertices = 0;
    double ticks_passed = 0;
    for (auto _ : state) {
        auto const f = make_frontier(made.activities, blocking * static_cast<double>(stages_of(measured)), begin);
        vertices = f.vertices.size();
        ticks_passed = (f.vertices.front().time - f.vertices.back().time).count;
        benchmark::DoNotOptimize(f.events.data());
    }
    state.counters["operations"] = static_cast<double>(made.activities.curve_of.size());
    state.counters["vertices"] = static_cast<double>(vertices);
    state.counters["ticks"] = ticks_passed;
}

void published_exponential(benchmark::State& state) { solve(state, published(), cost_fit::exponential, frontier_begin::slowest); }
void published_hull(benchmark::State& state) { solve(state, published(), cost_fit::hull, frontier_begin::least_energy); }
BENCHMARK(published_exponential)->Arg(12)->Arg(96)->Unit(benchmark::kMillisecond);
BENCHMARK(published_hull)->Arg(12)->Arg(24)->Arg(48)->Arg(96)->Arg(192)->Arg(768)->Unit(benchmark::kMillisecond);

void made_up_hull(benchmark::State& state) { solve(state, made_up(static_cast<int>(state.range(1))), cost_fit::hull, frontier_begin::least_energy); }
BENCHMARK(made_up_hull)->ArgsProduct({{12, 48, 192, 768}, {4}})->ArgsProduct({{8, 16, 32}, {8}})->Unit(benchmark::kMillisecond);

void look_up(benchmark::State& state)
{
    auto const made = problem(made_up(8), 12, cost_fit::hull);
    auto const f = make_frontier(made.activities, blocking * 8.0);
    auto const deadline = (fastest_time(f) + slowest_time(f)) * 0.5;
    for (auto _ : state) {
        benchmark::DoNotOptimize(at(f, deadline)->durations.data());
    }
}
BENCHMARK(look_up)->Unit(benchmark::kMicrosecond);

/// The plans at real clocks for all deadlines, or for the fastest time alone.
void real_clocks(benchmark::State& state, bool all)
{
    auto const made = problem(made_up(8), static_cast<int>(state.range(0)), cost_fit::hull);
    auto const f = make_frontier(made.activities, blocking * 8.0);
    std::size_t points = 0;
    for (auto _ : state) {
        auto const real = make_real_frontier(f, made.options, blocking, all ? slowest_time(f) : fastest_time(f));
        points = real.points.size();
        benchmark::DoNotOptimize(real.changes.data());
    }
    state.counters["points"] = static_cast<double>(points);
}

void real_clocks_for_all(benchmark::State& state) { real_clocks(state, true); }
void real_clocks_for_the_fastest(benchmark::State& state) { real_clocks(state, false); }
BENCHMARK(real_clocks_for_all)->Arg(12)->Arg(96)->Unit(benchmark::kMillisecond);
BENCHMARK(real_clocks_for_the_fastest)->Arg(12)->Arg(96)->Unit(benchmark::kMillisecond);

void look_up_real_clocks(benchmark::State& state)
{
    auto const made = problem(made_up(8), 12, cost_fit::hull);
    auto const f = make_frontier(made.activities, blocking * 8.0);
    auto const real = make_real_frontier(f, made.options, blocking, slowest_time(f));
    auto const deadline = (fastest_time(f) + slowest_time(f)) * 0.5;
    for (auto _ : state) {
        benchmark::DoNotOptimize(round_to_clocks(real, deadline)->options.data());
    }
}
BENCHMARK(look_up_real_clocks)->Unit(benchmark::kMicrosecond);

void certificate_checked(benchmark::State& state)
{
    auto const made = problem(made_up(8), 12, cost_fit::hull);
    auto const f = make_frontier(made.activities, blocking * 8.0);
    auto const claim = certify(f, f.vertices[f.vertices.size() / 2].time);
    for (auto _ : state) {
        benchmark::DoNotOptimize(verify(f.activities, claim).bound);
    }
}
BENCHMARK(certificate_checked)->Unit(benchmark::kMicrosecond);

/// A plan of a long program from its steady state, which is looked for each time, and its proof.
void carried_over(benchmark::State& state)
{
    auto const measured = published().rows.empty() ? made_up(8) : published();
    auto const microbatches = static_cast<int>(state.range(0));
    bool proved = false;
    for (auto _ : state) {
        auto const made = problem(measured, microbatches, cost_fit::hull);
        auto const steady =
            find_steady_state([&](int m) { return problem(measured, m, cost_fit::hull).activities; }, blocking * 8.0, {.from = 48, .to = microbatches / 4});
        if (!steady) {
            state.SkipWithError("no steady state");
            return;
        }
        auto const curve = continued_curve(*steady, made.activities, microbatches);
        proved = static_cast<bool>(continued_at(*steady, curve, microbatches, curve.vertices.back().time));
    }
    state.counters["proved"] = proved ? 1.0 : 0.0;
}
BENCHMARK(carried_over)->Arg(192)->Arg(768)->Arg(3072)->Unit(benchmark::kMillisecond);

/// The problem as JSON: curves tick by tick, the order within ranks and the dependencies between stages as edges.
std::string as_json(made_network const& made)
{
    std::ostringstream text;
    text.precision(17);
    text << "{\"curves\":[";
    for (auto const& curve : made.activities.curves) {
        text << (&curve == made.activities.curves.data() ? "" : ",") << "{\"first\":" << curve.times.front().count << ",\"costs\":[";
        for (auto t = curve.times.front(); t <= curve.times.back(); t += ticks{1}) {
            text << (t == curve.times.front() ? "" : ",") << in_joules(cost_at(curve, t)).count;
        }
        text << "]}";
    }
    text << "],\"operations\":[";
    for (std::size_t k = 0; k < made.activities.curve_of.size(); ++k) {
        text << (k == 0 ? "" : ",") << made.activities.curve_of[k];
    }
    text << "],\"edges\":[";
    auto const& all = made.activities.network.operations;
    bool first = true;
    for (std::size_t a = 0; a < all.size(); ++a) {
        for (std::size_t b = 0; b < all.size(); ++b) {
            bool const next = b == a + 1 && all[a].row == all[b].row;
            bool const up = all[a].instruction.kind == instruction_kind::forward;
            bool const passes = all[a].instruction.kind == all[b].instruction.kind && all[a].instruction.item == all[b].instruction.item &&
                                all[b].instruction.stage == all[a].instruction.stage + (up ? 1 : -1);
            if (next || passes) {
                text << (first ? "[" : ",[") << a << "," << b << "]";
                first = false;
            }
        }
    }
    text << "]}\n";
    return text.str();
}

/// Both cost models at real clocks and the same times, over schedules and microbatches; times beyond T* end at T* with the hull.
void compare_models()
{
    auto const measured = published().rows.empty() ? made_up(8) : published();
    std::printf("\n%s profile, 8 stages, real clocks at the published method's own times\n", published().rows.empty() ? "made-up" : "published");
    std::printf("schedule  microbatches  points  exponential J  hull J (means)  less %%  hull above\n");
    for (char const* name : {"1f1b", "gpipe"}) {
        for (int microbatches : {4, 8, 12, 16, 24, 32}) {
            auto const p = make_program(*parse_schedule(name), {.ranks = 8, .microbatches = microbatches});
            auto const network = make_event_network(p);
            auto const fitted = *make_activity_network(network, measured, {blocking, cost_fit::exponential});
            auto const hull = *make_activity_network(network, measured, {blocking});
            auto const theirs = make_frontier(fitted.activities, blocking * 8.0, frontier_begin::slowest);
            auto const ours = make_frontier(hull.activities, blocking * 8.0);
            auto const buckets = buckets_of(fitted, blocking);
            auto const real_frontier = make_real_frontier(ours, hull.options, blocking, slowest_time(ours));
            int points = 0;
            int above = 0;
            joules sums[2] = {{0.0}, {0.0}};
            for (auto time = theirs.vertices.back().time; time <= theirs.vertices.front().time; time += ticks{7}) {
                auto const other = at_bucket_clocks(fitted, plan_at(theirs, time), buckets, blocking);
                auto const end = other.time + nanoseconds(1.0 * microbatches);
                auto const real = round_to_clocks(real_frontier, end);
                auto const energy = total_energy(ours, real->cost, std::min(end, slowest_time(ours)));
                auto const other_energy = total_energy(ours, other.cost, end);
                above += energy.count > other_energy.count + 1e-6 ? 1 : 0;
                sums[0] += other_energy;
                sums[1] += energy;
                ++points;
            }
            std::printf("%-8s %13d %7d %14.2f %15.2f %7.2f %11d\n", name, microbatches, points, sums[0].count / points, sums[1].count / points,
                        100.0 * (1.0 - sums[1] / sums[0]), above);
        }
    }
}

/// What rounding costs above the bound where clocks are few and coarse: plain rounding of the relaxed plan at each deadline, and the plans of the family.
void coarse_clocks()
{
    std::printf("\nmade-up devices of 300 W with few clocks, 1F1B, 60 deadlines from the fastest plan to the least-energy one: energy above the bound\n");
    std::printf("clocks  fixed W  stages  microbatches  plain mean %%  largest %%  dearer when longer   now mean %%  largest %%\n");
    struct shape {
        int clocks;
        double fixed;
        int stages;
        int microbatches;
    };
    for (auto const [clocks, fixed, stages, microbatches] :
         {shape{3, 150, 4, 24}, shape{4, 150, 4, 8}, shape{4, 160, 8, 24}, shape{5, 140, 8, 12}, shape{6, 120, 8, 24}}) {
        profile measured;
        for (int stage = 0; stage < stages; ++stage) {
            for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
                double share = 1.0;
                for (int k = 0; k < clocks; ++k, share *= 0.74 + 0.055 * ((k * 3) % 4)) {
                    double const work = (kind == instruction_kind::forward ? 40.0 : 79.0) * (1.0 + 0.02 * ((stage * 5) % 7));
                    auto const time = milliseconds(work * (0.2 + 0.8 / share));
                    measured.rows.push_back(
                        {rank_id{-1}, stage_id{stage}, kind, {1740.0 * share}, time, watts{fixed + (300.0 - fixed) * std::pow(share, 2.4)} * time});
                }
            }
        }
        auto const made = problem(measured, microbatches, cost_fit::hull);
        auto const f = make_frontier(made.activities, blocking * static_cast<double>(stages));
        auto const tables = detail::worth_choosing(made.options, blocking);
        auto const real = make_real_frontier(f, made.options, blocking, slowest_time(f));
        double mean[2] = {0.0, 0.0};
        double largest[2] = {0.0, 0.0};
        int dearer = 0;
        auto last = std::numeric_limits<std::int64_t>::max();
        for (int k = 0; k < 60; ++k) {
            auto const deadline = fastest_time(f) + (slowest_time(f) - fastest_time(f)) * (k / 60.0);
            auto const end = in_whole_nanoseconds(deadline);
            auto const flows = certify(f, std::max(detail::ticks_within(f, deadline), f.vertices.back().time)).flows;
            auto const bound = total_energy(f, least_cost_by(made.activities, made.options, blocking, flows, deadline), deadline);
            detail::clock_search plain{made.activities, tables};
            plain.round_down(detail::events_within(f, end), detail::rounding::windows);
            (void)plain.meet(end);
            plain.fill(end, [](auto const&) {});
            dearer += plain.cost() > last ? 1 : 0;
            last = std::min(last, plain.cost());
            double const above[2] = {total_energy(f, {plain.cost()}, deadline) / bound - 1.0,
                                     total_energy(f, round_to_clocks(real, deadline)->cost, deadline) / bound - 1.0};
            for (int which = 0; which < 2; ++which) {
                mean[which] += above[which] / 60.0;
                largest[which] = std::max(largest[which], above[which]);
            }
        }
        std::printf("%6d %8.0f %7d %13d %13.3f %10.3f %19d %12.3f %10.3f\n", clocks, fixed, stages, microbatches, 100.0 * mean[0], 100.0 * largest[0], dearer,
                    100.0 * mean[1], 100.0 * largest[1]);
    }
}

void against_lowtime(int microbatches)
{
    auto measured = published();
    bool const real = !measured.rows.empty();
    if (!real) {
        measured = made_up(8);
    }
    auto const made = problem(measured, microbatches, cost_fit::exponential);
    auto const begin = std::chrono::steady_clock::now();
    auto const f = make_frontier(made.activities, blocking * 8.0, frontier_begin::slowest);
    auto const ours = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    auto name = (std::filesystem::temp_directory_path() / "rheo-frontier-").string() + std::string(6, 'X');  // which mkstemp replaces
    int const file = mkstemp(name.data());
    if (file < 0) {
        std::printf("lowtime: no file can be made in the folder for temporary ones, comparison skipped\n");
        return;
    }
    close(file);
    std::ofstream{name} << as_json(made);
    auto const* python = std::getenv("RHEO_PYTHON");
    auto const command = std::string{python == nullptr ? "python3" : python} + " " + RHEO_BENCH_FOLDER + "/with_lowtime.py < " + name + " 2>/dev/null";
    std::string answer;
    if (auto* const pipe = popen(command.c_str(), "r"); pipe != nullptr) {
        char line[256];
        while (std::fgets(line, sizeof line, pipe) != nullptr) {
            answer = line;
        }
        pclose(pipe);
    }
    std::remove(name.c_str());
    double theirs = 0.0;
    int points = 0;
    int time = 0;
    double cost = 0.0;
    if (std::sscanf(answer.c_str(), "%lf %d %d %lf", &theirs, &points, &time, &cost) != 4) {
        std::printf("lowtime: not installed, comparison skipped (pip install lowtime==0.3.0)\n");
        return;
    }
    std::printf("%d microbatches, %s profile: rheo %.4f s for %d ticks, lowtime %.2f s for %d points (%.0f times as long)\n", microbatches,
                real ? "published" : "made-up", ours, (f.vertices.front().time - f.vertices.back().time).count, theirs, points, theirs / ours);
    std::printf("  last point: rheo %d ticks %.6f J, lowtime %d ticks %.6f J\n", f.vertices.back().time.count, in_joules(f.vertices.back().cost).count, time,
                cost);
}

}  // namespace

int main(int argc, char** argv)
{
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
    compare_models();
    coarse_clocks();
    against_lowtime(12);
    return 0;
}
