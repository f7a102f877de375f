// SPDX-License-Identifier: Apache-2.0
// The coverage theorem against the enumeration of all choices of templates.
#include <numeric>

#include "rheo/pipeline/covers.hpp"
#include "rheo/pipeline/plan_templates.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr gpt_shape tiny{.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = 2};
using gpt = model<embedding<tiny>, repeat<2, transformer_block<tiny>>, classifier<tiny>>;
using two = pipeline_template<gpt, cuts<0, 2, 4>, one_f_one_b>;
using three = pipeline_template<gpt, cuts<0, 1, 3, 4>, one_f_one_b>;
using four = pipeline_template<gpt, cuts<0, 1, 2, 3, 4>, one_f_one_b>;
using ready = template_set<two, three, four>;
using holed = template_set<two, four>;

static_assert(covers<ready>({.from = 4, .to = 16, .failures = 1}));
static_assert(covered<ready, coverage_request{.from = 4, .to = 16, .failures = 1}>);
static_assert(sizes_needed(8, 2) == 4 && sizes_needed(1, 0) == 1 && sizes_needed(5, 0) == 5);
static_assert(largest_size(16, 2, 1) == 14);
static_assert(covers<ready>({.from = 3, .to = 16, .failures = 1}) == coverage_verdict{3, 2});
static_assert(covers<ready>({.from = 4, .to = 40, .failures = 0}));
static_assert(covers<holed>({.from = 4, .to = 16, .failures = 1}) == coverage_verdict{5, 2});
static_assert(covers<template_set<three>>({.from = 6, .to = 8, .failures = 1}).first_uncovered == 7);

/// The most of these sizes that sum up to the total; -1: none do.
int most_pipelines(std::vector<int> const& sizes, int total)
{
    int most = total == 0 ? 0 : -1;
    for (auto const n : sizes) {
        if (n <= total) {
            auto const rest = most_pipelines(sizes, total - n);
            most = rest >= 0 ? std::max(most, rest + 1) : most;
        }
    }
    return most;
}

}  // namespace

TEST_CASE("covers: coverage is what some choice of templates can do")
{
    for (unsigned set = 1; set < 128; ++set) {  // every set of sizes 2 .. 8, with and without holes
        std::vector<int> sizes;
        for (int n = 2; n <= 8; ++n) {
            if ((set >> (n - 2) & 1U) != 0) {
                sizes.push_back(n);
            }
        }
        for (int total = 1; total <= 17; ++total) {
            auto const most = most_pipelines(sizes, total);
            for (int pipelines = 1; pipelines <= 5; ++pipelines) {
                CAPTURE(sizes, total, pipelines);
                REQUIRE(covers_total(sizes, total, pipelines) == (most >= pipelines));
            }
        }
    }
}

TEST_CASE("covers: sizes n0 .. N - f n0 cover everything up to N")
{
    for (int n0 = 1; n0 <= 6; ++n0) {
        for (int f = 0; f <= 4; ++f) {
            for (int all = (f + 1) * n0; all <= 60; ++all) {
                std::vector<int> sizes(static_cast<std::size_t>(largest_size(all, n0, f) - n0 + 1));
                std::iota(sizes.begin(), sizes.end(), n0);
                REQUIRE(covers(sizes, {.from = (f + 1) * n0, .to = all, .failures = f}));
            }
        }
    }
}

TEST_CASE("covers: 1 + ceil((n0 - 1) / (f + 1)) sizes suffice")
{
    for (int n0 = 1; n0 <= 7; ++n0) {
        for (int f = 0; f <= 4; ++f) {
            std::vector<int> sizes(static_cast<std::size_t>(sizes_needed(n0, f)));
            std::iota(sizes.begin(), sizes.end(), n0);
            CHECK(covers(sizes, {.from = (f + 1) * n0, .to = 300, .failures = f}));
            sizes.pop_back();
            if (!sizes.empty()) {
                CHECK(!covers(sizes, {.from = (f + 1) * n0, .to = 300, .failures = f}));
            }
        }
    }
}

TEST_CASE("covers: few layers cap sizes; each count is checked")
{
    for (int n0 = 1; n0 <= 4; ++n0) {
        for (int cap = n0; cap <= 6; ++cap) {
            std::vector<int> sizes(static_cast<std::size_t>(cap - n0 + 1));
            std::iota(sizes.begin(), sizes.end(), n0);
            for (int f = 0; f <= 3; ++f) {
                int first = 0;
                for (int ranks = (f + 1) * n0; ranks <= 24; ++ranks) {
                    CAPTURE(n0, cap, f, ranks);
                    auto const most = ranks / n0;
                    REQUIRE(covers_total(sizes, ranks, f + 1) == (most >= f + 1 && ranks <= most * cap));
                    REQUIRE(covers_total(sizes, ranks, f + 1) == (most_pipelines(sizes, ranks) >= f + 1));
                    first = first == 0 && !covers_total(sizes, ranks, f + 1) ? ranks : first;
                }
                REQUIRE(covers(sizes, {.from = (f + 1) * n0, .to = 24, .failures = f}).first_uncovered == first);
            }
        }
    }
    CHECK_THROWS_AS(sizes_needed(0, 1), precondition_error);
    CHECK_THROWS_AS(largest_size(5, 3, 1), precondition_error);
}

TEST_CASE("covers: the verdict at run time says the same")
{
    std::vector<seconds> const times(3, seconds{1});
    auto const planned = plan_templates(times, {2, 9});
    CHECK(sizes_of(planned) == std::vector<int>{2, 3});
    CHECK(to_string(covers(planned, {.from = 4, .to = 9, .failures = 1})).empty());
    CHECK(to_string(covers(planned, {.from = 5, .to = 7, .failures = 2})) == "5 ranks cannot be covered by at least 3 pipelines of these templates");
    CHECK_THROWS_AS(covers(planned, {.from = 5, .to = 4, .failures = 1}), precondition_error);
    CHECK(covers(template_set_value{}, {.from = 1, .to = 4, .failures = 0}).first_uncovered == 1);
}
