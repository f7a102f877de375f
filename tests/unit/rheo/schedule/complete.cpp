// SPDX-License-Identifier: Apache-2.0
// Every way to do too little, too much or in the wrong place is rejected with its culprit.
#include "rheo/schedule/check/complete.hpp"
#include "programs.hpp"
#include "rheo/schedule/check/activations.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::from_text;

static_assert(complete(one_f_one_b::program({.ranks = 3, .microbatches = 5}), 5));
static_assert(!complete(one_f_one_b::program({.ranks = 3, .microbatches = 5}), 4));
static_assert(!complete(one_f_one_b::program({.ranks = 3, .microbatches = 5}), 6));

TEST_CASE("complete: missing or doubled instructions are named")
{
    auto const whole = one_f_one_b::program({.ranks = 3, .microbatches = 4});
    for (std::size_t r = 0; r < whole.rows.size(); ++r) {
        for (std::size_t k = 0; k < whole.rows[r].size(); ++k) {
            auto less = whole;
            less.rows[r].erase(less.rows[r].begin() + static_cast<std::ptrdiff_t>(k));
            auto const missing = complete(less, 4);
            CHECK(missing.fault == program_error::missing);
            CHECK(missing.culprits.front().instruction == whole.rows[r][k]);
            auto more = whole;
            more.rows[r].push_back(whole.rows[r][k]);
            CHECK(complete(more, 4) == refused(program_error::repeated, {pipeline_id{0}, static_cast<int>(r), whole.rows[r][k]}));
        }
    }
}

TEST_CASE("complete: a backward has one or two parts")
{
    CHECK(complete(from_text("0F0,0I0,0W0\n", {0}), 1));
    CHECK(complete(from_text("0F0,0I0\n", {0}), 1).message() == "an instruction is missing: pipeline 0 rank 0 with 0W0");
    CHECK(complete(from_text("0F0,0B0,0W0\n", {0}), 1).fault == program_error::repeated);
}

TEST_CASE("complete: activations end with the last backward part")
{
    CHECK(peak_activations(from_text("0F0,0B0,0F1,0B1\n", {0})) == 1);
    CHECK(peak_activations(from_text("0F0,0I0,0F1,0I1,0W0,0W1\n", {0})) == 2);
    CHECK(peak_activations(from_text("0F0,0I0,0W0,0F1,0I1,0W1\n", {0})) == 1);
    CHECK(peak_activations_by_rank(from_text("0F0,1F0,1B0,0B0\n2F0,2B0\n", {0, 0, 1})) == std::vector{2, 1});
}

TEST_CASE("complete: a stage works where the placement says")
{
    CHECK(complete(from_text("0F0,0B0,1F0,1B0\n\n", {0, 1}), 1).fault == program_error::misplaced);
    CHECK(complete(from_text("0F0,0B0,1F0,1B0\n\n", {0, 0}), 1));
}

TEST_CASE("complete: a backward that the work does not need is refused")
{
    std::vector<stage_work> const work{{microbatch_id{0}, stage_id{1}}};
    CHECK(complete(from_text("0F0\n1F0,1B0\n", {0, 1}), work));
    CHECK(complete(from_text("0F0,0B0\n1F0,1B0\n", {0, 1}), work).fault == program_error::repeated);
    CHECK(complete(from_text("0F0\n1F0\n", {0, 1}), work).fault == program_error::missing);
}
