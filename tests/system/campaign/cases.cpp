// SPDX-License-Identifier: Apache-2.0
#include "cases.hpp"

#include <cstddef>
#include <iterator>
#include <tuple>
#include <utility>

namespace campaign {

namespace {

layout const two_and_two{.pipelines = "2,2", .ranks = 4, .shares = "4,4"};
layout const two_and_three{.pipelines = "2,3", .ranks = 5, .shares = "3,5", .min_ranks = 2};
layout const down_to_ones{.pipelines = "2,3", .ranks = 5, .shares = "3,5"};  // the survivors become pipelines of one rank
layout const groups_of_two{.pipelines = "2,2", .ranks = 4, .shares = "4,4", .shards = 4, .tensor = "2"};
layout const groups_of_three{.pipelines = "3,3", .ranks = 6, .shares = "3,5", .shards = 4, .tensor = "3"};
layout const stages_of_two{.pipelines = "4,2", .ranks = 6, .shares = "4,4", .shards = 4, .tensor = "2"};
layout const stages_of_three{.pipelines = "4,3", .ranks = 7, .shares = "4,4", .shards = 4, .tensor = "3,1,3"};
layout const to_threes{.pipelines = "3,3", .ranks = 6, .shares = "3,5", .shards = 4, .changes = "2: tensor=3"};
layout const from_threes{.pipelines = "3,3", .ranks = 6, .shares = "3,5", .shards = 4, .tensor = "3", .changes = "2: tensor=1"};
layout const to_groups{.pipelines = "2,2", .ranks = 4, .shares = "4,4", .shards = 4, .changes = "2: tensor=2"};
layout const three_twos{.pipelines = "2,2,2", .ranks = 6, .shares = "", .schedule = "gpipe", .min_ranks = 2};

/// Another rank of the victim's pipeline: when both die the other pipelines are whole.
int partner(layout const& where, int rank)
{
    if (where.pipelines == "2,3" && rank >= 2) {
        return rank == 4 ? 2 : rank + 1;
    }
    return rank ^ 1;
}

bool in_recovery(std::string_view phase) { return phase == "shrink" || phase == "copy"; }

/// One victim; one that dies in a recovery needs a loss before.
job_case one(layout const& where, int victim, int step, std::string_view phase)
{
    job_case result{where, {{victim, step, -1, std::string{phase}}}};
    if (in_recovery(phase)) {
        result.faults.insert(result.faults.begin(), {partner(where, victim), step, -1, "backward"});
    }
    return result;
}

}  // namespace

std::string name_of(layout const& where)
{
    return where.pipelines + (where.clocks ? " with clocks" : "") + (where.rendezvous ? " by rendezvous" : "") + (where.recompute ? " recomputed" : "") +
           (where.memory_kib > 0 ? " in " + std::to_string(where.memory_kib) + " KiB" : "") +
           (where.slices > 1 ? " in " + std::to_string(where.slices) + " slices" : "") + (where.tensor.empty() ? "" : " by " + where.tensor) +
           (where.changes.empty() ? "" : ", then " + where.changes) + (where.shares.empty() ? "" : " shares " + where.shares) +
           (where.layers.empty() ? "" : " layers " + where.layers) + ' ' + where.schedule +
           (where.threads > 1 ? ' ' + std::to_string(where.threads) + " threads" : "") +
           (where.min_ranks > 1 ? " from " + std::to_string(where.min_ranks) : "");
}

std::string name_of(job_case const& what)
{
    auto name = name_of(what.where);
    for (auto const& f : what.faults) {
        name += "  " + std::to_string(f.rank) + '@' + std::to_string(f.step) + (f.attempt < 0 ? "" : '.' + std::to_string(f.attempt)) + ':' + f.phase;
    }
    return name + (what.slow.empty() ? "" : "  slow " + what.slow) + (what.seed == 1 ? "" : "  seed " + std::to_string(what.seed));
}

std::vector<std::string> arguments_of(job_case const& what)
{
    std::vector<std::string> result{"pipelines=" + what.where.pipelines,
                                    "schedule=" + what.where.schedule,
                                    "threads=" + std::to_string(what.where.threads),
                                    "min_ranks=" + std::to_string(what.where.min_ranks),
                                    "blocks=" + std::to_string(what.where.blocks),
                                    "steps=" + std::to_string(what.steps),
                                    "seed=" + std::to_string(what.seed)};
    if (!what.where.shares.empty()) {
        result.push_back("shares=" + what.where.shares);
    }
    if (what.where.rendezvous) {
        result.push_back("rendezvous=1");
    }
    if (what.where.spares > 0) {
        result.push_back("spares=" + std::to_string(what.where.spares));
    }
    if (what.where.failures != 1) {
        result.push_back("failures=" + std::to_string(what.where.failures));
    }
    if (what.where.recompute) {
        result.push_back("recompute=1");
    }
    if (what.where.memory_kib > 0) {
        result.insert(result.end(), {"recompute=auto", "memory_kib=" + std::to_string(what.where.memory_kib)});
    }
    if (!what.where.layers.empty()) {
        result.push_back("layers=" + what.where.layers);
    }
    if (what.where.slices > 1) {
        result.push_back("slices=" + std::to_string(what.where.slices));
    }
    if (what.where.shards > 1) {
        result.push_back("shards=" + std::to_string(what.where.shards));
    }
    if (!what.where.tensor.empty()) {
        result.push_back("tensor=" + what.where.tensor);
    }
    if (!what.where.changes.empty()) {
        result.push_back("changes=" + what.where.changes);
    }
    if (!what.slow.empty()) {
        result.push_back("inject=slow:" + what.slow);
    }
    for (auto const& f : what.faults) {
        if (f.phase == "leaves") {
            result.push_back("inject=drain:" + std::to_string(f.rank) + '@' + std::to_string(f.step));
            continue;
        }
        result.push_back("inject=kill:" + std::to_string(f.rank) + '@' + std::to_string(f.step) + (f.attempt < 0 ? "" : '.' + std::to_string(f.attempt)) + ':' +
                         f.phase);
    }
    return result;
}

std::vector<job_case> undisturbed_cases()
{
    std::vector<job_case> cases;
    for (int const threads : {1, 2}) {
        for (auto const* schedule : {"1f1b", "gpipe"}) {
            for (auto const& [pipelines, ranks, shares] :
                 {std::tuple{"1", 1, "8"}, {"2", 2, "8"}, {"4", 4, "8"}, {"2,2", 4, "4,4"}, {"2,2", 4, "3,5"}, {"2,3", 5, "4,4"}, {"2,3", 5, "3,5"}}) {
                cases.push_back({{pipelines, ranks, shares, schedule, threads}});
            }
        }
    }
    return cases;
}

std::vector<job_case> group_cases()
{
    std::vector<job_case> cases;
    std::vector<std::string_view> everywhere(std::begin(phases), std::end(phases));
    everywhere.insert(everywhere.end(), {"gather", "sum", "sum_gradient"});
    for (auto const phase : everywhere) {
        for (int victim = 0; victim < groups_of_two.ranks; ++victim) {
            cases.push_back(one(groups_of_two, victim, 2, phase));
        }
        cases.push_back(one(groups_of_three, static_cast<int>(cases.size()) % groups_of_three.ranks, 1, phase));
    }
    for (int victim = 0; victim < to_groups.ranks; ++victim) {
        cases.push_back({to_groups, {{victim, 2, -1, "copy"}}});
    }
    cases.push_back({to_groups, {{1, 3, -1, "sum_gradient"}}});
    for (int victim = 0; victim < to_threes.ranks; victim += 2) {
        cases.push_back({to_threes, {{victim, 2, -1, "copy"}}});
        cases.push_back({from_threes, {{victim + 1, 2, -1, "copy"}}});
    }
    // Activations recomputed, and a split backward, at both degrees.
    for (auto where : {stages_of_two, stages_of_three}) {
        where.recompute = true;
        for (auto const* phase : {"recompute", "backward", "sum_gradient"}) {
            cases.push_back({where, {{static_cast<int>(cases.size()) % 2, 2, -1, phase}}});  // of the first stage, which recomputes
        }
        where.recompute = false;
        where.schedule = "zb-h1";
        for (auto const* phase : {"input_gradient", "weight_gradient", "sum_gradient"}) {
            cases.push_back({where, {{static_cast<int>(cases.size()) % where.ranks, 1, -1, phase}}});
        }
    }
    return cases;
}

std::vector<job_case> phase_cases()
{
    std::vector<job_case> cases;
    for (auto const& where : {two_and_two, two_and_three}) {  // each victim in each phase
        for (auto const phase : phases) {
            for (int victim = 0; victim < where.ranks; ++victim) {
                cases.push_back(one(where, victim, 2, phase));
            }
        }
    }
    for (std::size_t p = 0; p < std::size(phases); ++p) {
        cases.push_back(one(three_twos, static_cast<int>(p) % three_twos.ranks, 1, phases[p]));
    }
    auto gpipe_threads = two_and_three;
    gpipe_threads.schedule = "gpipe";
    gpipe_threads.threads = 2;
    cases.push_back(one(gpipe_threads, 3, 1, "backward"));
    cases.push_back(one(gpipe_threads, 0, 2, "reduce"));
    cases.push_back(one(gpipe_threads, 4, 2, "copy"));

    // several at once
    auto const add = [&](layout const& where, std::vector<fault> faults) { cases.push_back({where, std::move(faults)}); };
    add(two_and_two, {{0, 2, -1, "commit"}, {1, 2, -1, "commit"}});
    add(two_and_two, {{2, 1, -1, "decide"}, {3, 1, -1, "decide"}});
    add(two_and_two, {{0, 2, -1, "idle"}, {1, 2, -1, "idle"}});
    add(two_and_two, {{2, 2, -1, "reduce"}, {3, 2, -1, "reduce"}});
    add(two_and_three, {{2, 2, -1, "decide"}, {3, 2, -1, "decide"}});
    add(two_and_three, {{2, 2, -1, "commit"}, {3, 2, -1, "commit"}, {4, 2, -1, "commit"}});
    add(two_and_three, {{0, 1, -1, "idle"}, {1, 1, -1, "commit"}});
    add(three_twos, {{0, 2, -1, "forward"}, {2, 2, -1, "forward"}});
    add(three_twos, {{1, 2, -1, "commit"}, {5, 2, -1, "commit"}});
    add(three_twos, {{0, 2, -1, "decide"}, {1, 2, -1, "decide"}, {2, 2, -1, "decide"}, {3, 2, -1, "decide"}});

    // one loss in the recovery from another, twice in a row
    add(two_and_three, {{3, 2, -1, "backward"}, {2, 2, -1, "shrink"}, {4, 2, -1, "copy"}});
    add(two_and_three, {{3, 1, -1, "forward"}, {4, 1, -1, "copy"}, {2, 1, -1, "copy"}});
    add(three_twos, {{0, 1, -1, "reduce"}, {1, 1, -1, "shrink"}, {2, 2, -1, "commit"}, {3, 2, -1, "idle"}});
    // one loss after another
    add(down_to_ones, {{4, 1, -1, "backward"}, {3, 2, -1, "reduce"}, {0, 3, -1, "commit"}});

    // the first step, which is done twice
    add(two_and_two, {{1, 0, 0, "forward"}});
    add(two_and_two, {{0, 0, 0, "commit"}});
    add(two_and_two, {{3, 0, 0, "decide"}});
    add(two_and_two, {{0, 0, 1, "backward"}});
    add(two_and_two, {{2, 0, 1, "reduce"}});
    add(two_and_two, {{1, 0, 1, "commit"}});
    add(two_and_three, {{4, 0, 0, "backward"}});
    add(two_and_three, {{2, 0, 0, "idle"}});
    add(two_and_three, {{0, 0, 1, "decide"}, {1, 0, 1, "decide"}});
    add(two_and_two, {{1, 0, 0, "copy"}});  // before anything is computed
    // the last one
    add(two_and_two, {{0, 3, -1, "backward"}});
    add(two_and_two, {{0, 3, -1, "decide"}});
    add(two_and_two, {{0, 3, -1, "commit"}});
    add(two_and_two, {{0, 3, -1, "idle"}});
    add(two_and_two, {{3, 3, -1, "idle"}});
    add(two_and_three, {{4, 3, -1, "reduce"}});
    add(two_and_three, {{2, 3, -1, "commit"}, {3, 3, -1, "idle"}});
    return cases;
}

std::vector<job_case> family_cases(bool all)
{
    std::vector<job_case> cases;
    auto const add = [&](std::string schedule, std::string pipelines, int ranks, std::string shares, std::vector<fault> faults = {}) {
        cases.push_back({{.pipelines = std::move(pipelines), .ranks = ranks, .shares = std::move(shares), .schedule = std::move(schedule), .blocks = 6},
                         std::move(faults)});
    };
    // Undisturbed: each family on each of these, or in turn on one.
    struct shape {
        char const* pipelines;
        int ranks;
        char const* shares;
    };
    constexpr shape shapes[] = {{"2", 2, "8"}, {"4", 4, "8"}, {"3", 3, "8"}, {"2,3", 5, "3,5"}, {"2,2", 4, "4,4"}, {"1,2", 3, "3,5"}};
    std::size_t turn = 0;
    for (auto const* family : {"eager-1f1b", "interleaved", "looped-bfs", "zb-h1", "zb-h2", "zb1p", "zb-v", "v-half", "v-min", "dualpipe", "dualpipe-v",
                               "chimera", "bitpipe", "hanayo"}) {
        for (std::size_t k = 0; k < std::size(shapes); ++k) {
            if (all || k == turn % 2) {
                add(family, shapes[k].pipelines, shapes[k].ranks, shapes[k].shares);
            }
        }
        if (all) {
            add(family, "4", 4, "8");
            cases.back().where.rendezvous = true;
        }
        ++turn;
    }
    add("zb-v", "4", 4, "8");
    cases.back().where.rendezvous = true;
    add("dualpipe", "4", 4, "8");
    cases.back().where.rendezvous = true;
    // Activations recomputed: one stage per rank, chunks, pairs computed at once, and a loss before and behind it.
    for (auto const* family : {"1f1b", "gpipe", "zb-h1", "interleaved", "dualpipe"}) {
        add(family, "2,2", 4, "4,4");
        cases.back().where.recompute = true;
    }
    for (auto const* phase : {"forward", "recompute", "backward"}) {
        add("1f1b", "2,2", 4, "4,4", {{0, 2, -1, phase}});
        cases.back().where.recompute = true;
    }
    // Only as many stages as the memory asks for, also those of the survivors.
    for (auto const* family : {"1f1b", "zb-v"}) {
        for (auto const* phase : {"", "forward"}) {
            add(family, "2,2", 4, "4,4", *phase == 0 ? std::vector<fault>{} : std::vector<fault>{{1, 2, -1, phase}});
            cases.back().where.memory_kib = 1800;
        }
    }
    // Cuts that no planner would make: one stage per rank, chunks, two copies of the model; the survivors of a loss are cut by templates again.
    auto const cut = [&](std::string schedule, std::string pipelines, int ranks, std::string shares, std::string layers, std::vector<fault> faults = {}) {
        add(std::move(schedule), std::move(pipelines), ranks, std::move(shares), std::move(faults));
        cases.back().where.layers = std::move(layers);
    };
    cut("1f1b", "3", 3, "8", "1,1,6");
    cut("zb-h1", "2,3", 5, "3,5", "7,1,1,4,3");
    cut("zb-v", "2", 2, "8", "1,3,1,3");
    cut("dualpipe", "4", 4, "8", "3,1,1,3");
    cut("1f1b", "2,2", 4, "4,4", "1,7,6,2", {{1, 2, -1, "backward"}});
    // Pairs computed at once, each on its part of a rank's threads.
    for (auto const* family : {"dualpipe", "dualpipe-v"}) {
        for (auto const* phase : {"", "backward"}) {
            add(family, "2,2", 4, "4,4", *phase == 0 ? std::vector<fault>{} : std::vector<fault>{{1, 2, -1, phase}});
            cases.back().where.threads = 2;
        }
    }
    // One rank lost at each kind of instruction: one stage per rank, chunks, two copies of the model.
    for (auto const* family : {"zb-h1", "zb-v", "dualpipe", "chimera", "interleaved"}) {
        std::string_view const name{family};
        for (auto const* phase : {"forward", "backward", "input_gradient", "weight_gradient", "reduce"}) {
            bool const split = std::string_view{phase}.ends_with("_gradient");
            if ((split && (name == "chimera" || name == "interleaved")) || (std::string_view{phase} == "backward" && name.starts_with("zb-"))) {
                continue;
            }
            for (int victim = 0; victim < (all ? 4 : 1); ++victim) {
                add(family, "2,2", 4, "4,4", {{all ? victim : static_cast<int>(cases.size()) % 4, 2, -1, phase}});
            }
        }
    }
    return cases;
}

std::vector<job_case> slice_cases(bool all, int slices)
{
    std::vector<job_case> cases;
    auto const add = [&](std::string schedule, std::string pipelines, int ranks, std::string shares, std::vector<fault> faults = {}) {
        cases.push_back(
            {{.pipelines = std::move(pipelines), .ranks = ranks, .shares = std::move(shares), .schedule = std::move(schedule), .blocks = 6, .slices = slices},
             std::move(faults)});
    };
    add("seq1f1b", "2", 2, "8");
    add("seq1f1b", "3", 3, "8");
    add("seq1f1b", "4", 4, "8");
    add("seq1f1b", "2,3", 5, "3,5");
    add("seq1f1b", "4", 4, "8");
    cases.back().where.rendezvous = true;
    add("seq1f1b", "4", 4, "8");
    cases.back().where.layers = "1,4,1,2";
    // The others on the same grid: one stage per rank, a split backward, chunks, pairs computed at once.
    for (auto const* family : {"1f1b", "gpipe", "zb-h1", "interleaved", "zb-v", "dualpipe"}) {
        add(family, "2,2", 4, "4,4");
    }
    // A rank lost between the slices of a microbatch, forwards and backwards; the contributions of single slices are kept.
    for (auto const* phase : {"forward", "backward", "reduce"}) {
        for (int victim = 0; victim < (all ? 4 : 2); ++victim) {
            add("seq1f1b", "2,2", 4, "4,4", {{all ? victim : 2 * victim + static_cast<int>(cases.size()) % 2, 2, -1, phase}});
        }
    }
    add("zb-h1", "2,2", 4, "4,4", {{1, 2, -1, "weight_gradient"}});
    add("seq1f1b", "2,3", 5, "3,5", {{3, 1, -1, "backward"}});
    return cases;
}

std::vector<job_case> clock_cases(bool all)
{
    std::vector<job_case> cases;
    auto const add = [&](layout where, std::string slow, std::vector<fault> faults = {}) {
        where.clocks = true;
        where.blocks = 4;
        cases.push_back({.where = std::move(where), .faults = std::move(faults), .slow = std::move(slow)});
    };
    // A loss at each phase of a step, or of the recovery from another, while a rank is slow: the one that is lost, its neighbour, one of the other pipeline.
    std::size_t turn = 0;
    for (auto const& where : {two_and_three, two_and_two}) {
        for (auto const phase : phases) {
            ++turn;
            for (int victim = 0; victim < where.ranks; ++victim) {
                if (all || (where.ranks == 5 && victim == static_cast<int>(turn) % where.ranks)) {
                    add(where, std::to_string((victim + static_cast<int>(turn) % 3) % where.ranks) + "@0-3:1.6", one(where, victim, 2, phase).faults);
                }
            }
        }
    }
    // Split backwards, chunks, two copies of the model, slices; undisturbed, and with a loss.
    auto with = [](layout where, std::string schedule, int slices, int threads) {
        where.schedule = std::move(schedule);
        where.slices = slices;
        where.threads = threads;
        return where;
    };
    for (auto const* family : {"zb-h1", "zb-v", "dualpipe", "interleaved", "chimera"}) {
        if (all || family == std::string_view{"zb-h1"} || family == std::string_view{"dualpipe"}) {
            add(with(two_and_two, family, 1, 2), "1@1-2:1.5", {{2, 2, -1, "forward"}});
            add(with(two_and_two, family, 1, 2), "");
        }
    }
    return cases;
}

std::vector<job_case> clock_cases_on_slices(bool all)
{
    std::vector<job_case> cases;
    for (auto const* family : {"seq1f1b", "1f1b", "zb-h1", "dualpipe"}) {
        if (all || family == std::string_view{"seq1f1b"}) {
            layout where = two_and_two;
            where.schedule = family;
            where.slices = 2;
            where.clocks = true;
            cases.push_back({.where = where, .slow = "1@1-2:1.5"});
            cases.push_back({.where = where, .faults = {{2, 2, -1, family == std::string_view{"zb-h1"} ? "input_gradient" : "backward"}}, .slow = "1@1-2:1.5"});
        }
    }
    return cases;
}

std::vector<job_case> no_replica_cases()
{
    // no rank keeps a second copy when no loss has to be survived
    layout const pair{.pipelines = "2", .ranks = 2, .shares = "8", .failures = 0};
    layout const four{.pipelines = "4", .ranks = 4, .shares = "8", .failures = 0};
    std::vector<job_case> cases;
    auto const add = [&](layout const& where, std::vector<fault> faults) { cases.push_back({.where = where, .faults = std::move(faults), .survives = false}); };
    for (int victim = 0; victim < pair.ranks; ++victim) {
        for (auto const* phase : {"forward", "reduce", "commit"}) {
            add(pair, {{victim, 2, -1, phase}});
        }
    }
    for (int victim = 0; victim < four.ranks; ++victim) {
        for (auto const* phase : {"backward", "decide", "idle"}) {
            add(four, {{victim, 1, -1, phase}});
        }
    }
    // both copies of a layer at once
    add(two_and_two, {{0, 2, -1, "commit"}, {2, 2, -1, "commit"}});
    add(two_and_two, {{1, 1, -1, "decide"}, {3, 1, -1, "decide"}});
    return cases;
}

std::vector<shooting_range> shooting_ranges()
{
    return {{two_and_two, {{0, 1}, {2, 3}}}, {two_and_three, {{0, 1}, {2, 3}, {3, 4}, {2, 4}}}, {three_twos, {{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 5}, {4, 5}}}};
}

}  // namespace campaign
