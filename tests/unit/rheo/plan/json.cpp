// SPDX-License-Identifier: Apache-2.0
// plan.json as it is written, letter by letter.
#include "rheo/plan/json.hpp"

#include <sstream>

#include "examples.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::string written(plan const& p)
{
    std::ostringstream out;
    write_json(out, p);
    return out.str();
}

}  // namespace

TEST_CASE("json: a plan on disk")
{
    auto const p = test::example();
    CHECK(written(p) == R"({
  "schema": 1,
  "kind": "rheo plan",
  "schedule": "1f1b",
  "digest": ")" + to_string(digest_of(p)) +
                            R"(",
  "pipelines": [
    {"cuts": [0, 3, 6], "ranks": [[2], [0]], "microbatches": [0, 1]},
    {"cuts": [0, 1, 3, 6], "ranks": [[5], [1], [4]], "microbatches": [2, 3, [4, 2]]}
  ],
  "spares": [3]
}
)");
}

TEST_CASE("json: clocks are at the end and in the digest")
{
    auto p = test::example();
    auto const before = digest_of(p);
    p.clocks = {{{{1410.0}, {705.0}}, {}}, {{{1000.0}}, {}, {}}};
    CHECK_THAT(written(p), Catch::Matchers::ContainsSubstring("\"spares\": [3],\n  \"clocks_MHz\": [[[1410, 705], []], [[1000], [], []]]\n}"));
    CHECK(digest_of(p) != before);
    auto other = p;
    other.clocks[0][0][1] = {720.0};
    CHECK(digest_of(other) != digest_of(p));
    other = p;
    other.clocks = {{{{1410.0}}, {{705.0}}}, {{{1000.0}}, {}, {}}};  // the same clocks at other places
    CHECK(digest_of(other) != digest_of(p));
}

TEST_CASE("json: multi-rank stages, idle pipelines, no spares")
{
    plan p;
    p.schedule = gpipe{};
    p.pipelines.push_back({{layer_id{0}, layer_id{2}}, {{rank_id{0}, rank_id{1}}}});
    p.work.emplace_back();
    auto const text = written(p);
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring(R"({"cuts": [0, 2], "ranks": [[0, 1]], "microbatches": []})"));
    CHECK_THAT(text, Catch::Matchers::ContainsSubstring("\"spares\": []"));
}
