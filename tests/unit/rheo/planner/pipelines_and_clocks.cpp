// SPDX-License-Identifier: Apache-2.0
// The joint choice is the least energy of all sets of pipelines and all splits, by enumeration, and never more than
// what choosing one after the other takes; there are cases where it is less.
#include "rheo/planner/pipelines_and_clocks.hpp"

#include <functional>
#include <map>

#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Frontiers of 1F1B pipelines of a model whose forward takes 60 ms at the highest clock on one rank.
class frontiers {
public:
    frontier const& operator()(int ranks, int microbatches)
    {
        auto const [found, fresh] = made_.try_emplace({ranks, microbatches});
        if (fresh) {
            profile measured;
            for (int stage = 0; stage < ranks; ++stage) {
                for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
                    double const work = (kind == instruction_kind::forward ? 60.0 : 120.0) / ranks + (stage == ranks - 1 ? 2.0 * ranks : 0.0);
                    double energy = 0.4 * work;
                    double time = work;
                    for (double clock : {1400.0, 1200.0, 1000.0, 800.0}) {
                        measured.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {clock}, milliseconds(time), {energy}});
                        time *= 1.15;
                        energy *= clock > 1000.0 ? 0.88 : 0.97;
                    }
                }
            }
            auto const p = one_f_one_b::program({.ranks = ranks, .microbatches = microbatches});
            found->second = make_frontier(make_activity_network(make_event_network(p), measured, {watts{80.0}, cost_fit::hull, milliseconds(0.01)})->activities,
                                          watts{80.0 * ranks});
        }
        return found->second;
    }

private:
    std::map<std::pair<int, int>, frontier> made_;
};

/// Every set of pipelines with every split, no two the same.
void every_set(std::vector<int> const& sizes, int ranks, int microbatches, std::vector<pipeline_choice>& chosen, std::function<void()> const& visit)
{
    if (ranks == 0 && microbatches == 0) {
        visit();
    }
    for (auto const size : sizes) {
        for (int own = 1; own <= microbatches && size <= ranks; ++own) {
            if (chosen.empty() || std::pair{size, own} <= std::pair{chosen.back().ranks, chosen.back().microbatches}) {
                chosen.push_back({size, own});
                every_set(sizes, ranks - size, microbatches - own, chosen, visit);
                chosen.pop_back();
            }
        }
    }
}

}  // namespace

TEST_CASE("pipelines_and_clocks: joint choice is optimal")
{
    frontiers of;
    std::vector<int> const sizes{2, 3, 4};
    int better = 0;
    for (int ranks = 2; ranks <= 9; ++ranks) {
        for (int least : {1, 2}) {
            joint_request const request{.ranks = ranks, .microbatches = 8, .pipelines = least};
            auto const apart = choose_one_after_the_other(sizes, request, of);
            auto const together = choose_together(sizes, request, of);
            double fastest = std::numeric_limits<double>::infinity();
            std::vector<pipeline_choice> chosen;
            auto const slowest_of = [&] {
                double time = 0.0;
                for (auto const p : chosen) {
                    time = std::max(time, fastest_time(of(p.ranks, p.microbatches)).count);
                }
                return time;
            };
            every_set(sizes, ranks, 8, chosen, [&] { fastest = static_cast<int>(chosen.size()) >= least ? std::min(fastest, slowest_of()) : fastest; });
            CAPTURE(ranks, least);
            REQUIRE(static_cast<bool>(apart) == (fastest < std::numeric_limits<double>::infinity()));
            REQUIRE(static_cast<bool>(together) == static_cast<bool>(apart));
            if (!apart) {
                continue;
            }
            REQUIRE(apart->time.count == fastest);
            REQUIRE(together->time == apart->time);
            for (double late : {1.0, 1.1, 1.3, 1.6}) {
                joint_request const slow{.ranks = ranks, .microbatches = 8, .pipelines = least, .deadline = apart->time * late};
                auto const one = choose_one_after_the_other(sizes, slow, of);
                auto const both = choose_together(sizes, slow, of);
                double energy = std::numeric_limits<double>::infinity();
                every_set(sizes, ranks, 8, chosen, [&] {
                    if (static_cast<int>(chosen.size()) >= least && slowest_of() <= slow.deadline.count) {
                        energy = std::min(energy, detail::energy_of({chosen, slow.deadline, {}}, slow, of).count);
                    }
                });
                CAPTURE(late);
                CHECK(both->energy.count == Approx(energy).epsilon(1e-12));
                CHECK(both->energy <= one->energy);
                better += both->energy.count < one->energy.count - 1e-6 ? 1 : 0;
            }
            int used = 0;
            int work = 0;
            for (auto const p : together->pipelines) {
                used += p.ranks;
                work += p.microbatches;
            }
            CHECK(used == ranks);
            CHECK(work == 8);
            CHECK(static_cast<int>(together->pipelines.size()) >= least);
        }
    }
    CHECK(better > 0);
}

TEST_CASE("pipelines_and_clocks: deadlines are kept or rejected")
{
    frontiers of;
    std::vector<int> const sizes{2, 3};
    auto const fast = choose_together(sizes, {.ranks = 5, .microbatches = 6}, of);
    REQUIRE(fast);
    auto const calm = choose_together(sizes, {.ranks = 5, .microbatches = 6, .deadline = fast->time * 1.3}, of);
    REQUIRE(calm);
    CHECK(calm->time == fast->time * 1.3);
    CHECK(choose_together(sizes, {.ranks = 5, .microbatches = 6, .deadline = fast->time * 0.9}, of).error() == "no set of these templates meets the deadline");
    CHECK(choose_together(sizes, {.ranks = 1, .microbatches = 6}, of).error() ==
          "no set of these templates uses all ranks, with as many pipelines as asked for and a microbatch for each");
    CHECK_FALSE(choose_together(sizes, {.ranks = 4, .microbatches = 1, .pipelines = 2}, of));
    CHECK_THROWS_WITH(choose_together(sizes, {.ranks = 0, .microbatches = 1}, of), "pipelines need at least one rank and one microbatch");
}
