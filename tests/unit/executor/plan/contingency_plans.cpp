// SPDX-License-Identifier: Apache-2.0
// Plans for which clocks are precomputed: whatever one rank, one node or two ranks lost lead to is among them, and so is what templates make of fewer ranks.
#include "rheo/planner/contingency_plans.hpp"

#include <algorithm>

#include "executor/clocks/frontier_cache.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/energy/profile/stage_profile.hpp"
#include "rheo/planner/make_forecast.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

struct job_in_force {
    run_config config;
    model_description model;
    plan first;
    replanning known;
    membership_rules rules;
    membership_plan members;

    job_in_force(int ranks, std::vector<int> pipelines, int node_size)
    {
        config.model.blocks = 4;
        config.train.microbatches = 6;
        config.plan.pipelines = std::move(pipelines);
        config.plan.node_size = node_size;
        model = gpt_model(config.model);
        first = make_plan(model, config, ranks)->plan;
        known = make_replanning(model, config, ranks);
        rules = membership_rules_of(config);
        std::vector<rank_holdings> holdings;
        for (rank_id r{0}; r.value < ranks; ++r) {
            holdings.push_back({r, {}, {}, {}});
            for (layer_id l{0}; l.value < known.layers; ++l) {
                holdings.back().layers.push_back(l);
            }
        }
        recomposition chosen{.pipelines = first.pipelines, .shares = {}, .spares = first.spares};
        for (auto const& work : first.work) {
            chosen.shares.push_back(static_cast<int>(work.size()));
        }
        members = plan_as_chosen(holdings, known, rules, std::move(chosen));
    }

    contingency_plans ahead() const { return {first, members, known, rules}; }

    std::vector<plan> all() const
    {
        std::vector<plan> result;
        auto plans = ahead();
        while (auto p = plans.next()) {
            result.push_back(std::move(*p));
        }
        return result;
    }

    /// The plan after a loss, made by those who foretell losses to people; none: it cannot be survived.
    std::optional<plan> after(std::vector<rank_id> const& lost) const
    {
        auto const outcome = outcome_of(lost, first, known, rules);
        if (outcome.only_copy || !outcome.next.error.empty()) {
            return std::nullopt;
        }
        auto p = first;
        p.pipelines = outcome.next.pipelines;
        p.work = deal(outcome.next.shares);
        p.spares = outcome.next.spares;
        return p;
    }

    std::vector<std::vector<rank_id>> losses() const
    {
        std::vector<std::vector<rank_id>> result;
        auto const ranks = ranks_of(first);
        for (std::size_t a = 0; a < ranks.size(); ++a) {
            result.push_back({ranks[a]});
            for (std::size_t b = a + 1; b < ranks.size(); ++b) {
                result.push_back({ranks[a], ranks[b]});
            }
        }
        for (std::size_t r = 0; rules.node_size > 2 && r + 2 < ranks.size(); r += 3) {
            result.push_back({ranks[r], ranks[r + 1], ranks[r + 2]});
        }
        return result;
    }
};

profile layers_of(job_in_force const& job)
{
    profile measured;
    for (int layer = 0; layer < job.known.layers; ++layer) {
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            double const work = (kind == instruction_kind::forward ? 1.0 : 2.0) * (1 + layer % 3);
            measured.rows.push_back({rank_id{-1}, stage_id{layer}, kind, {1400.0}, milliseconds(10.0 * work), {4.0 * work}});
            measured.rows.push_back({rank_id{-1}, stage_id{layer}, kind, {1000.0}, milliseconds(13.0 * work), {2.9 * work}});
        }
    }
    return measured;
}

}  // namespace

TEST_CASE("contingency_plans: cover every loss of rank, node or pair")
{
    for (auto const& job : {job_in_force{5, {2, 3}, 1}, job_in_force{6, {2, 2, 2}, 1}, job_in_force{6, {3, 3}, 3}}) {
        auto const plans = job.all();
        std::size_t survivable = 0;
        for (auto const& lost : job.losses()) {
            auto const wanted = job.after(lost);
            if (!wanted) {
                continue;
            }
            ++survivable;
            auto const found = std::find(plans.begin(), plans.end(), *wanted);
            REQUIRE(found != plans.end());
            if (lost.size() == 1) {
                CHECK(found - plans.begin() < std::ssize(ranks_of(job.first)));
            }
        }
        CHECK(survivable > ranks_of(job.first).size());
        CHECK(plans.size() >= survivable);
    }
}

TEST_CASE("contingency_plans: cover every smaller number of ranks")
{
    job_in_force const job{6, {2, 2, 2}, 1};
    auto const plans = job.all();
    for (int n = 1; n < 6; ++n) {
        auto const chosen = instantiate(job.known.ready, {n, job.known.wanted.failures, job.known.wanted.microbatches});
        auto const has = std::any_of(plans.begin(), plans.end(), [&](plan const& p) {
            return chosen && p.pipelines == pipelines_of_sizes(job.known.ready, chosen->sizes, numbered_ranks(n)) && p.work == deal(chosen->shares);
        });
        CHECK(has == static_cast<bool>(chosen));
    }
}

TEST_CASE("contingency_plans: clocks are precomputed for each loss")
{
    job_in_force const job{6, {3, 3}, 3};
    frontier_cache book{layers_of(job), {.costs = {.blocking = {80.0}}}};
    auto plans = job.ahead();
    book.precompute([&] { return plans.next(); });
    CHECK(book.made() > 0);
    auto const done = book.take_precomputed();
    REQUIRE(done);
    CHECK(done->frontiers < done->plans);  // many losses lead to the same pipelines
    for (auto const& lost : job.losses()) {
        if (auto const p = job.after(lost)) {
            CHECK(book.choose(*p, {}));
        }
    }
    CHECK(book.made_at_once() == 0);
}
