// SPDX-License-Identifier: Apache-2.0
// The tokens of a step do not depend on how many pipelines share it: whatever the plan, and whatever was lost on the way.
#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "executor/data/data.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/plan/holdings_under.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/planner/make_replanning.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

constexpr microbatch_shape shape{2, 16};
constexpr std::uint64_t seed = 7;
constexpr int numbers_of_shares[] = {1, 2, 3, 4, 5, 8};

struct text_data {
    temporary_folder folder{};
    dataset data;

    text_data() : data{config(), 256, shape} {}

private:
    data_config config()
    {
        std::mt19937 draw{1};
        std::string text;
        for (int i = 0; i < 6000; ++i) {
            text += static_cast<char>('a' + draw() % 26);
        }
        return {.paths = {folder.write("text", text)}};
    }
};

using step_tokens = std::map<int, std::vector<std::int32_t>>;  // microbatch -> its tokens and targets

/// What the pipelines read for their work, each microbatch once.
void read_work(dataset const& data, step_id step, std::vector<std::vector<microbatch_work>> const& work, step_tokens& tokens)
{
    for (auto const& list : work) {
        for (auto const& one : list) {
            auto& both = tokens[one.microbatch.value];
            REQUIRE(both.empty());
            auto const count = static_cast<std::size_t>(rows(shape));
            both.resize(2 * count);
            data.training_microbatch(seed, step, one.microbatch, std::span{both}.first(count), std::span{both}.last(count));
        }
    }
}

step_tokens tokens_of(dataset const& data, std::int64_t step, std::vector<int> const& shares)
{
    step_tokens tokens;
    read_work(data, step_id{step}, deal(shares), tokens);
    return tokens;
}

std::vector<int> even(int microbatches, int shares)
{
    std::vector<int> made;
    for (int i = 0; i < shares; ++i) {
        made.push_back(microbatches * (i + 1) / shares - microbatches * i / shares);
    }
    return made;
}

}  // namespace

TEST_CASE("step_tokens: alike for any number of shares")
{
    text_data const of;
    std::mt19937 draw{2};
    for (int const microbatches : {1, 3, 7, 8, 12}) {
        std::vector<step_tokens> steps;
        for (std::int64_t step = 0; step < 3; ++step) {
            steps.push_back(tokens_of(of.data, step, {microbatches}));
            REQUIRE(static_cast<int>(steps.back().size()) == microbatches);
            CHECK((step == 0 || steps[static_cast<std::size_t>(step)] != steps[static_cast<std::size_t>(step) - 1]));
        }
        for (int const shares : numbers_of_shares) {
            for (std::int64_t step = 0; step < 3; ++step) {
                CHECK(tokens_of(of.data, step, even(microbatches, shares)) == steps[static_cast<std::size_t>(step)]);
                std::vector<int> uneven(static_cast<std::size_t>(shares), 0);
                for (int m = 0; m < microbatches; ++m) {
                    ++uneven[draw() % uneven.size()];
                }
                CHECK(tokens_of(of.data, step, uneven) == steps[static_cast<std::size_t>(step)]);
            }
        }
    }
}

TEST_CASE("step_tokens: kept and redone work have those of the step")
{
    text_data const of;
    auto const model = gpt_model({.vocabulary = 256, .context = 16, .width = 32, .heads = 2, .blocks = 2});
    std::mt19937 draw{3};
    int redone = 0, kept = 0;
    for (int const microbatches : {5, 8}) {
        auto const whole = tokens_of(of.data, 4, {microbatches});
        for (int const shares : numbers_of_shares) {
            if (shares == 1 || shares > microbatches) {
                continue;  // the only copy is lost, or a pipeline has no work
            }
            planning_request const request{.schedule = one_f_one_b{},
                                           .microbatches = microbatches,
                                           .microbatch = shape,
                                           .pipelines = std::vector<int>(static_cast<std::size_t>(shares), 1),
                                           .failures = 1};
            auto const first = make_plan(model, request, shares);
            REQUIRE(first);
            auto const known = make_replanning(model, request, shares);
            for (rank_id lost{0}; lost.value < shares; ++lost) {
                auto holdings = holdings_under(first->plan, ranks_of(first->plan), 1);
                std::vector<std::vector<microbatch_work>> done(1);
                for (auto& holds : holdings) {  // each rank has done the first microbatches of its share
                    holds.version = step_id{4};
                    auto const& work = first->plan.work[at(position_of(first->plan, holds.rank).pipeline)];
                    microbatch_set summed;
                    auto const count = draw() % (work.size() + 1);
                    for (std::size_t i = 0; i < count; ++i) {
                        summed.insert(work[i].microbatch);
                        if (holds.rank != lost) {
                            done.front().push_back(work[i]);
                        }
                    }
                    for (use_id use{0}; at(use) < known.state.uses.size(); ++use) {
                        holds.uses.push_back({use, summed});
                    }
                }
                std::erase_if(holdings, [&](auto const& holds) { return holds.rank == lost; });
                auto const next = plan_membership(holdings, first->plan.pipelines, {}, known, {});
                REQUIRE(next.error.empty());
                step_tokens tokens;
                read_work(of.data, step_id{4}, done, tokens);
                kept += static_cast<int>(tokens.size());
                read_work(of.data, step_id{4}, next.salvage.work, tokens);
                redone += static_cast<int>(tokens.size());
                CHECK(tokens == whole);
            }
        }
    }
    CHECK(kept > 0);
    CHECK(redone > kept);
}
