// SPDX-License-Identifier: Apache-2.0
// plan.json as it is written, letter by letter.
#include "executor/plan/plan_json.hpp"

#include "executor/config/strict_json.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "support/catch.hpp"
#include "unit/rheo/plan/examples.hpp"

using namespace rheo;

namespace {

std::string written(plan const& p) { return format_members(to_json(p)); }

plan read_again(plan const& p) { return plan_from_json(nlohmann::json::parse(written(p)), find_schedule); }

}  // namespace

TEST_CASE("plan_json: a plan on disk")
{
    auto const p = test::example();
    CHECK(written(p) == R"({
  "schema": 1,
  "kind": "rheo plan",
  "digest": ")" + to_string(digest_of(p)) +
                            R"(",
  "schedule": "1f1b",
  "pipelines": [
    {"cuts": [0, 3, 6], "ranks": [[2], [0]], "microbatches": [0, 1]},
    {"cuts": [0, 1, 3, 6], "ranks": [[5], [1], [4]], "microbatches": [2, 3, [4, 2]]}
  ],
  "spares": [3]
}
)");
}

TEST_CASE("plan_json: clocks are at the end and in the digest")
{
    auto p = test::example();
    auto const before = digest_of(p);
    p.clocks = {{{{1410.0}, {705.0}}, {}}, {{{1000.0}}, {}, {}}};
    CHECK_THAT(written(p), Catch::Matchers::ContainsSubstring("\"spares\": [3],\n  \"clocks_MHz\": [[[1410.0, 705.0], []], [[1000.0], [], []]]\n}"));
    CHECK(digest_of(p) != before);
    auto other = p;
    other.clocks[0][0][1] = {720.0};
    CHECK(digest_of(other) != digest_of(p));
    other = p;
    other.clocks = {{{{1410.0}}, {{705.0}}}, {{{1000.0}}, {}, {}}};  // the same clocks at other places
    CHECK(digest_of(other) != digest_of(p));
}

TEST_CASE("plan_json: multi-rank stages, idle pipelines, no spares")
{
    plan p;
    p.schedule = gpipe{};
    p.pipelines.push_back({{layer_id{0}, layer_id{2}}, {{rank_id{0}, rank_id{1}}}});
    p.work.emplace_back();
    auto const text = written(p);
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring(R"({"cuts": [0, 2], "ranks": [[0, 1]], "microbatches": []})"));
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring("\"spares\": []"));
}

TEST_CASE("plan_json: shares only where named; no digest, no check")
{
    auto plain = test::example();
    CHECK(written(plain).find("shares") == std::string::npos);
    auto shared = plain;
    for (auto& pipeline : shared.pipelines) {
        pipeline.shares.assign(pipeline.stages.size(), {4});
    }
    CHECK_THAT(written(shared), Catch::Matchers::ContainsSubstring(R"("shares": [[4], [4]], "microbatches")"));
    CHECK(read_again(shared) == shared);
    CHECK(digest_of(shared) != digest_of(plain));
    auto by_hand = nlohmann::json::parse(written(plain));
    by_hand.erase("digest");
    by_hand["pipelines"][0]["shares"] = {{1, 3}, {4}};
    CHECK(plan_from_json(by_hand, find_schedule).pipelines[0].shares == std::vector<std::vector<int>>{{1, 3}, {4}});
    by_hand["pipelines"][0]["shares"] = {4, 4};
    CHECK_THROWS_WITH(plan_from_json(by_hand, find_schedule), "no plan: 'shares' must be a list of lists of whole numbers from 0 on");
}

TEST_CASE("plan_json: what is recomputed, and slices, only where set")
{
    auto const plain = test::example();
    CHECK(written(plain).find("recompute") == std::string::npos);
    CHECK(written(plain).find("slices") == std::string::npos);
    auto every = plain;
    every.recompute.every_stage = true;
    every.slices = 3;
    CHECK_THAT(written(every), Catch::Matchers::ContainsSubstring("\"recompute\": true,\n  \"slices\": 3,"));
    CHECK(read_again(every) == every);
    auto some = plain;
    auto levels = plain;
    for (auto const& pipeline : plain.pipelines) {
        some.recompute.stages.emplace_back(pipeline.stages.size(), false);
        levels.recompute.levels.emplace_back(pipeline.stages.size(), std::vector(6, recompute_level::none));
    }
    some.recompute.stages.front().front() = true;
    CHECK_THAT(written(some), Catch::Matchers::ContainsSubstring("\"recomputed_stages\": [[0], []]"));
    CHECK(read_again(some) == some);
    levels.recompute.levels.front().front()[1] = recompute_level::cheap;
    CHECK_THAT(written(levels), Catch::Matchers::ContainsSubstring("\"recompute_levels\": [[[\"none\", \"cheap\", \"none\""));
    CHECK(read_again(levels) == levels);
}

TEST_CASE("plan_json: every field of the wrong kind is named")
{
    auto p = test::example();
    p.clocks = {{{{1410.0}, {705.0}}, {}}, {{{1000.0}}, {}, {}}};
    auto const error_with = [&](std::string const& name, nlohmann::json value) {
        auto whole = nlohmann::json::parse(written(p));
        (whole["pipelines"][0].contains(name) ? whole["pipelines"][0] : whole)[name] = std::move(value);
        try {
            (void)plan_from_json(whole, find_schedule);
        } catch (json_error const& error) {
            return std::string{error.what()};
        }
        return std::string{"taken"};
    };
    CHECK(error_with("schedule", 1) == "no plan: 'schedule' must be a name");
    CHECK(error_with("schedule", "1f1c") == "no schedule is called '1f1c'; the nearest known name is '1f1b'");
    CHECK(error_with("recompute", 1) == "no plan: 'recompute' must be true or false");
    CHECK(error_with("recomputed_stages", {0}) == "no plan: 'recomputed_stages' must be a list of lists of numbers of stages");
    CHECK(error_with("recomputed_stages", {{2}, {0}}) == "no plan: 'recomputed_stages' must hold a list per pipeline, with numbers of its stages");
    CHECK(error_with("recompute_levels", {{{"half"}}}) == "no plan: 'recompute_levels' must be a list of lists of lists of \"none\", \"cheap\" or \"full\"");
    CHECK(error_with("recompute_levels", {{{"full"}}}).find("no plan: 'recompute_levels' must hold a list per pipeline, of a list per rank") == 0);
    CHECK(error_with("slices", -1) == "no plan: 'slices' must be a whole number from 0 on");
    CHECK(error_with("slices", 0) == "no plan: 'slices' counts from one");
    CHECK(error_with("pipelines", 1) == "no plan: 'pipelines' must be a list");
    CHECK(error_with("cuts", {-1}) == "no plan: 'cuts' must be a list of whole numbers from 0 on");
    CHECK(error_with("ranks", {0}) == "no plan: 'ranks' must be a list of lists of whole numbers from 0 on");
    CHECK(error_with("microbatches", {{1, 2, 3}}) == "no plan: 'microbatches' must be a list of microbatches, each a number or [number, deepest layer]");
    CHECK(error_with("spares", "3") == "no plan: 'spares' must be a list of whole numbers from 0 on");
    CHECK(error_with("clocks_MHz", {{{-1}}}) == "no plan: 'clocks_MHz' must be a list of lists of lists of numbers from 0 to 1000000");
    CHECK(error_with("digest", "00") == "the plan is not the one that its digest was made of; a plan that was changed by hand goes without 'digest'");
    CHECK(error_with("spares", {3}) == "taken");
}
