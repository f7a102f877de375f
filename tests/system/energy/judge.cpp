// SPDX-License-Identifier: Apache-2.0
// energy_judge <run folder> carried <step>: whether what was left of a step that lost a rank, and the evaluation at the end, ran at the clocks of the
// plan of the survivors: each computation at the highest one that later steps have for its stage and kind on its rank.
// energy_judge <run folder> <first step> <last step> [<slow rank> <factor>]: whether the committed steps of a training with the plan
// of its folder ran at the clocks that the library chooses, drew what it foretells within 2 %, and took no more than 2 % longer.
// Time is the devices': each computation at the recorded clock, as its profile says, in the order and with the waiting of the program.
// What the machine adds to that depends on who else runs on it, so no wall time is judged but one: no rank computes less than
// its device takes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "executor/clocks/clock_request.hpp"
#include "executor/clocks/frontier_cache.hpp"
#include "executor/clocks/rank_device.hpp"
#include "executor/records/run_folder.hpp"
#include "rheo/energy/profile/stage_profile.hpp"
#include "rheo/planner/plan_clocks.hpp"

using namespace rheo;

namespace {

int faults = 0;

void expect(bool good, std::string const& what)
{
    if (!good) {
        std::printf("wrong: %s\n", what.c_str());
        ++faults;
    }
}

struct account {
    seconds time;
    joules energy;
};

/// A step as its ranks recorded it, on the time of their devices.
account replayed(run_folder const& run, profile const& layers, std::int64_t step, std::span<slow_rank const> slow, chosen_clocks const& chosen)
{
    std::map<std::int32_t, std::vector<trace_event>> computed;  // by rank; of the attempt that was committed
    std::int32_t attempt = 0;
    for (auto const& e : run.events) {
        attempt = e.step.value == step ? std::max(attempt, e.attempt.value) : attempt;
    }
    for (auto const& e : run.events) {
        if (e.step.value == step && e.attempt.value == attempt && is_instruction(e.activity) && is_compute(static_cast<instruction_kind>(e.activity)) &&
            e.clock.count > 0.0) {
            computed[e.rank.value].push_back(e);
        }
    }
    account result{};
    seconds busy{};
    auto const blocking = run.config.power.blocking;
    for (std::size_t p = 0; p < run.first->pipelines.size(); ++p) {
        auto const& pipeline = run.first->pipelines[p];
        auto const stages = *profile_of_stages(layers, pipeline.cuts);
        auto const ranks = ranks_of(pipeline);
        auto const network = make_event_network(schedule_of(*run.first, p).compute);
        std::vector<std::size_t> next(ranks.size());
        std::vector<seconds> lasts;
        for (auto const& o : network.operations) {
            auto const row = static_cast<std::size_t>(o.row);
            auto const k = next[row]++;
            auto const& events = computed[ranks[row].value];
            auto const wanted = chosen.clocks[p][row][k];
            if (k >= events.size()) {
                expect(false, "step " + std::to_string(step) + ": rank " + std::to_string(ranks[row].value) + " has recorded too few computations");
                return result;
            }
            auto const& event = events[k];
            expect(static_cast<instruction_kind>(event.activity) == o.instruction.kind && event.item == o.instruction.item, "the order of the computations");
            expect(event.clock == wanted, "step " + std::to_string(step) + ", rank " + std::to_string(ranks[row].value) + ", " + label_of(event) + ": at " +
                                              std::to_string(event.clock.count) + " MHz, planned " + std::to_string(wanted.count));
            auto const factor = detail::factor_of(slow, ranks[row]);
            for (auto const& option : options_of(stages, rank_id{-1}, stage_id{o.instruction.stage}, o.instruction.kind)) {
                if (option.clock == event.clock) {
                    lasts.push_back(option.time * factor);
                    busy += option.time * factor;
                }
            }
            expect(event.end - event.start >= lasts.back() - microseconds(1), "a computation ends before its device is done");
            result.energy += event.energy;
        }
        std::vector<seconds> when(static_cast<std::size_t>(network.events));
        for (auto const& arc : network.arcs) {
            auto const time = arc.operation < 0 ? nanoseconds(static_cast<double>(arc.nanoseconds)) : lasts[static_cast<std::size_t>(arc.operation)];
            auto& end = when[static_cast<std::size_t>(arc.to)];
            end = std::max(end, when[static_cast<std::size_t>(arc.from)] + time);
        }
        result.time = std::max(result.time, when.back());
    }
    double ranks = 0;
    for (auto const& pipeline : run.first->pipelines) {
        ranks += static_cast<double>(ranks_of(pipeline).size());
    }
    result.energy += blocking * (result.time * ranks - busy);
    return result;
}

int judge_carried(run_folder const& run, std::int64_t lost_in)
{
    generation_id last{};
    std::int64_t steps = 0;
    for (auto const& e : run.events) {
        last = std::max(last, e.generation);
        steps = std::max(steps, e.step.value);
    }
    std::map<std::tuple<std::int32_t, std::int32_t, activity>, double> planned;
    auto const each = [&](auto&& of_step, auto&& visit) {
        for (auto const& e : run.events) {
            if (e.generation == last && of_step(e.step.value) && is_instruction(e.activity) && is_compute(static_cast<instruction_kind>(e.activity))) {
                visit(std::tuple{e.rank.value, e.stage.value, e.activity}, e.clock.count);
            }
        }
    };
    double highest = 0;
    each([&](std::int64_t s) { return s > lost_in && s < steps; },
         [&](auto const& what, double clock) {
             planned[what] = std::max(planned[what], clock);
             highest = std::max(highest, clock);
         });
    for (auto const step : {lost_in, steps}) {  // evaluations at the end stand as a step behind the last
        int computations = 0;
        int calm = 0;
        each([&](std::int64_t s) { return s == step; },
             [&](auto const& what, double clock) {
                 ++computations;
                 calm += clock < highest ? 1 : 0;
                 expect(planned.contains(what) && clock == planned[what],
                        "step " + std::to_string(step) + ": a computation at " + std::to_string(clock) + " MHz");
             });
        std::printf("step %lld: %d computations, %d of them below %g MHz\n", static_cast<long long>(step), computations, calm, highest);
        expect(computations > 0 && calm > 0, "nothing of step " + std::to_string(step) + " ran at a lower clock");
    }
    return faults == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    auto const run = read_run_folder(argv[1]);
    if (argc == 4 && std::string_view{argv[2]} == "carried") {
        return judge_carried(run, std::atoll(argv[3]));
    }
    if (!run.first) {
        std::printf("no plan\n");
        return 1;
    }
    auto const layers = *read_clock_profile(run.config.power, run.first->pipelines.front().cuts.back().value);
    frontier_cache book{layers, clock_request_of(run.config.power, layers)};
    std::vector<slow_rank> slow;
    if (argc > 5) {
        slow.push_back({rank_id{std::atoi(argv[4])}, std::atof(argv[5])});
    }
    auto const usual = *book.choose(*run.first, {});
    auto const chosen = *book.choose(*run.first, slow);
    expect(run.first->clocks == usual.clocks, "plan.json has the clocks that the library chooses");
    std::printf("planned: %.4f s, %.3f J (%.4f s, %.3f J at the highest clocks)\n", chosen.time.count, chosen.energy.count, chosen.fastest.count,
                chosen.at_highest.count);
    expect(chosen.energy < 0.98 * chosen.at_highest, "clocks save something here");
    for (std::int64_t step = std::atoll(argv[2]); step <= std::atoll(argv[3]); ++step) {
        auto const real = replayed(run, layers, step, slow, chosen);
        std::printf("step %lld: %.4f s, %.3f J\n", static_cast<long long>(step), real.time.count, real.energy.count);
        expect(real.time <= 1.02 * chosen.time, "the step takes longer than planned");
        expect(real.energy <= 1.02 * chosen.energy && real.energy >= 0.98 * chosen.energy, "the step draws another energy than planned");
    }
    for (auto const* s : run.of_kind("step")) {
        auto const step = s->value("step", std::int64_t{-1});
        if (step > std::atoll(argv[2]) && step <= std::atoll(argv[3])) {  // the first one holds what came before it
            auto const energy = s->value("energy_J", 0.0);
            expect(energy >= 0.98 * chosen.energy.count, "the meters count less than the plan: " + std::to_string(energy) + " J");
            expect(s->value("planned_energy_J", 0.0) == chosen.energy.count, "the records hold what was planned");
        }
    }
    return faults == 0 ? 0 : 1;
}
