// SPDX-License-Identifier: Apache-2.0
// The rule by which pipelines are chosen after a loss, against all choices there are on random small clusters.
#include "rheo/pipeline/recovery_price.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "rheo/pipeline/repair.hpp"
#include "rheo/pipeline/split_batch.hpp"
#include "support/catch.hpp"
#include "unit/rheo/pipeline/losses.hpp"

using namespace rheo;

namespace {

/// Pipelines before, who is left of them and who waits, what can be made of them, and how long ranks last.
struct cluster {
    job model;
    template_set_value ready;
    std::vector<pipeline_instance> before;
    std::vector<rank_holdings> survivors;
    recomposition_request request;
    repair_terms terms;
    int smallest;
};

cluster random_cluster(std::mt19937& draw)
{
    auto const below = [&](unsigned n) { return static_cast<int>(draw() % n); };
    cluster of{make_job(5 + below(3)),
               {},
               {},
               {},
               {.failures = below(3), .microbatches = 1 + below(9)},
               {.redo_step = below(3) > 0, .reserved_spares = below(3)},
               1 + below(2)};
    for (auto& time : of.model.times) {
        time = microseconds(500.0 + 100 * below(20));
    }
    for (auto& tensor : of.model.tensors) {
        tensor.size = bytes{500 + 250 * below(12)};
    }
    of.ready = plan_templates(of.model.times, {of.smallest, of.smallest + 4});
    if (below(4) == 0) {  // some have memory for few microbatches only
        for (auto& shape : of.ready.templates) {
            shape.cost.most_microbatches = 2 + below(6);
        }
    }
    int rank = 0;
    for (int pipelines = 1 + below(3); pipelines > 0 && rank + of.smallest <= 8; --pipelines) {
        auto const n = std::min(of.smallest + below(4), 8 - rank);
        auto const& shape = template_of_size(of.ready, n);
        std::vector<rank_id> ranks;
        for (int s = 0; s < n; ++s) {
            ranks.push_back(rank_id{rank + s});
            of.survivors.push_back(holder(rank + s, layers_of(shape.cuts, stage_id{s})));
        }
        of.before.push_back(make_instance(shape, ranks));
        rank += n;
    }
    for (int waiting = below(3); waiting > 0 && rank < 9; --waiting) {
        of.survivors.push_back(holder(rank++, {layer_id{0}, layer_id{0}}));
    }
    for (int lost = below(4); lost > 0 && of.survivors.size() > 1; --lost) {
        of.survivors.erase(of.survivors.begin() + below(static_cast<unsigned>(of.survivors.size())));
    }
    // A layer takes about a millisecond to copy: the next loss comes long before one is worth it, or long after, or anywhere between.
    of.request.losses = {seconds{std::pow(10.0, -4.0 + 0.01 * below(800))}, {1e6}};
    return of;
}

/// A choice as people would write it down: sizes, time of a step, bytes that its ranks miss at least.
struct choice {
    std::vector<int> sizes;
    seconds step;
    std::int64_t moved;
};

/// The fewest bytes that ranks miss in pipelines of these sizes: over all sets of ranks for the first places, one place after the other.
std::int64_t fewest_bytes(cluster const& of, std::vector<rank_holdings> const& usable, std::vector<int> const& sizes)
{
    constexpr auto never = std::numeric_limits<std::int64_t>::max() / 2;
    std::vector<std::int64_t> least(std::size_t{1} << usable.size(), never);
    least[0] = 0;
    auto result = never;
    std::vector<layer_span> places;
    for (auto const n : sizes) {
        for (int s = 0; s < n; ++s) {
            places.push_back(layers_of(template_of_size(of.ready, n).cuts, stage_id{s}));
        }
    }
    for (std::size_t set = 0; set < least.size(); ++set) {
        auto const taken = static_cast<std::size_t>(std::popcount(set));
        if (taken == places.size()) {
            result = std::min(result, least[set]);
        }
        for (std::size_t r = 0; r < usable.size() && taken < places.size() && least[set] < never; ++r) {
            if ((set >> r & 1U) == 0) {
                auto& next = least[set | std::size_t{1} << r];
                next = std::min(next, least[set] + missing(usable[r], places[taken], of.model.tensors));
            }
        }
    }
    return result;
}

/// All choices of sizes for so many ranks that can do the microbatches, with no fewer pipelines than f + 1 where those fit.
std::vector<choice> all_choices(cluster const& of, std::vector<rank_holdings> const& usable)
{
    auto const ranks = static_cast<int>(usable.size());
    auto const fewest = std::min(of.request.failures + 1, ranks / of.smallest);
    auto const most = std::max(fewest, of.request.microbatches);
    std::vector<choice> result;
    std::vector<int> sizes;
    std::function<void(int, std::size_t)> const compose = [&](int left, std::size_t least) {
        auto const count = static_cast<int>(sizes.size());
        if (count >= fewest && count <= most) {
            auto const split = split_batch(costs_of_sizes(of.ready, sizes), of.request.microbatches);
            if (split.unplaced == 0) {
                result.push_back({sizes, split.time, fewest_bytes(of, usable, sizes)});
            }
        }
        for (auto i = least; i < of.ready.templates.size() && size(of.ready.templates[i]) <= left; ++i) {
            sizes.push_back(size(of.ready.templates[i]));
            compose(left - sizes.back(), i);
            sizes.pop_back();
        }
    };
    compose(ranks, 0);
    return result;
}

bool held_a_place(cluster const& of, rank_id rank)
{
    return std::any_of(of.before.begin(), of.before.end(), [&](auto const& p) { return !layers_of(p, rank).empty(); });
}

}  // namespace

TEST_CASE("recovery_price: bytes, redone step and longer steps")
{
    loss_model const losses{.mtbf = seconds{1000}, .copy_rate = {1e6}};
    recovery_price const price{time_to_next_loss(losses, 10), losses.copy_rate, seconds{2}, true};
    CHECK(price(seconds{2}, bytes{}).count == Approx(2));
    CHECK(price(seconds{2}, bytes{3'000'000}).count == Approx(5));
    CHECK(price(seconds{3}, bytes{}).count == Approx(3 + 100 * 0.5));
    CHECK((recovery_price{seconds{100}, {1e6}, seconds{2}, false})(seconds{3}, bytes{1'000'000}).count == Approx(1 + 100 * 0.5));
    for (double const limit : {2.1, 3.0, 10.0, 1e4}) {
        auto const longest = price.longest_step_below(seconds{limit}, bytes{50'000}, 1'000'000'000'000);
        CHECK(price(nanoseconds(static_cast<double>(longest + 2)), bytes{50'000}) > seconds{limit});
        CHECK(price(nanoseconds(static_cast<double>(longest - 2)), bytes{50'000}) < seconds{limit});
    }
    CHECK(price.longest_step_below(seconds{1e9}, bytes{}, 5'000'000'000) == 5'000'000'000);
    CHECK(price.longest_step_below(seconds{0.1}, bytes{}, 5'000'000'000) == 2'000'000'000);  // nothing is shorter
}

TEST_CASE("recovery_price: cheapest of all choices is taken")
{
    std::mt19937 draw{31};
    int as_they_were = 0;
    int quickest_made = 0;
    int slower_made = 0;
    int impossible = 0;
    for (int round = 0; round < 4000; ++round) {
        auto const of = random_cluster(draw);
        auto const answer = repair(of.before, of.survivors, of.ready, of.model.tensors, of.request, of.terms);
        // Those that wait and are not to be taken: the last ones, beyond those that replace, as far as f + 1 pipelines do without them.
        auto const all = static_cast<int>(of.survivors.size());
        auto const waiting =
            static_cast<int>(std::count_if(of.survivors.begin(), of.survivors.end(), [&](auto const& r) { return !held_a_place(of, r.rank); }));
        int places = 0;
        for (auto const& pipeline : of.before) {
            places += static_cast<int>(ranks_of(pipeline).size());
        }
        auto const in_places = std::min(places, all);
        auto const fewest = std::min(of.request.failures + 1, all / of.smallest);
        auto const kept = std::max(0, std::min({of.terms.reserved_spares, waiting - (places - (all - waiting)), all - fewest * of.smallest}));
        auto usable = of.survivors;
        usable.resize(static_cast<std::size_t>(all - kept));
        auto choices = fewest == 0 ? std::vector<choice>{} : all_choices(of, usable);
        if (choices.empty() && fewest > 0) {
            usable = of.survivors;
            choices = all_choices(of, usable);
        }
        CAPTURE(round, of.smallest, of.request.failures, of.request.microbatches, of.terms.reserved_spares, of.request.losses.mtbf.count, all, waiting, places,
                answer ? sizes_of(*answer) : std::vector<int>{});
        REQUIRE(static_cast<bool>(answer) == !choices.empty());
        if (choices.empty()) {
            ++impossible;
            continue;
        }
        auto quickest = choices.front().step;
        for (auto const& c : choices) {
            quickest = std::min(quickest, c.step);
        }
        int most_used = 0;
        for (auto const& c : choices) {
            most_used = c.step == quickest ? std::max(most_used, std::accumulate(c.sizes.begin(), c.sizes.end(), 0)) : most_used;
        }
        auto const price = [&](seconds step, std::int64_t moved) {
            auto const until = of.request.losses.mtbf.count / all;
            return static_cast<double>(moved) / 1e6 + (of.terms.redo_step ? step.count : 0) + until * (step / quickest - 1);
        };
        choice const* cheapest = nullptr;
        for (auto const& c : choices) {
            if (std::accumulate(c.sizes.begin(), c.sizes.end(), 0) >= std::min(in_places, most_used) &&
                (cheapest == nullptr || price(c.step, c.moved) < price(cheapest->step, cheapest->moved))) {
                cheapest = &c;
            }
        }
        auto const chosen = price(answer->time, answer->moved.count);
        auto const least = price(cheapest->step, cheapest->moved);
        CAPTURE(cheapest->sizes, cheapest->step.count, cheapest->moved, answer->time.count, answer->moved.count, quickest.count);
        REQUIRE(chosen == Approx(least).epsilon(1e-9).margin(1e-12));
        REQUIRE(static_cast<int>(answer->pipelines.size()) >= fewest);
        REQUIRE(answer->degraded == (fewest < of.request.failures + 1));
        REQUIRE(answer->time == split_batch(costs_of_sizes(of.ready, sizes_of(*answer)), of.request.microbatches).time);
        std::int64_t missed = 0;
        std::set<rank_id> seen(answer->spares.begin(), answer->spares.end());
        for (auto const& pipeline : answer->pipelines) {
            for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
                auto const rank = pipeline.stages[s].front();
                REQUIRE(seen.insert(rank).second);
                for (auto const& survivor : of.survivors) {
                    missed += survivor.rank == rank ? missing(survivor, layers_of(pipeline.cuts, stage_id{static_cast<int>(s)}), of.model.tensors) : 0;
                }
            }
        }
        REQUIRE(seen.size() == of.survivors.size());
        REQUIRE(missed == answer->moved.count);
        ++(!answer->rebuilt ? as_they_were : answer->time == quickest ? quickest_made : slower_made);
    }
    CHECK(as_they_were > 500);
    CHECK(quickest_made > 500);
    CHECK(slower_made > 50);
    CHECK(impossible > 20);
}

TEST_CASE("recovery_price: reliable ranks: shorter steps, more bytes")
{
    std::mt19937 draw{5};
    int changed = 0;
    for (int round = 0; round < 200; ++round) {
        auto of = random_cluster(draw);
        auto step = seconds{std::numeric_limits<double>::max()};
        bytes moved{-1};
        for (double mtbf = 1e-5; mtbf < 1e6; mtbf *= 10) {
            of.request.losses.mtbf = seconds{mtbf};
            auto const answer = repair(of.before, of.survivors, of.ready, of.model.tensors, of.request, of.terms);
            if (!answer) {
                break;  // no number of losses changes that
            }
            REQUIRE(answer->time <= step);
            REQUIRE(answer->moved >= moved);
            changed += step.count < 1e3 && answer->time < step ? 1 : 0;
            step = answer->time;
            moved = answer->moved;
        }
    }
    CHECK(changed > 20);
}
