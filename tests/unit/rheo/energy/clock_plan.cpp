// SPDX-License-Identifier: Apache-2.0
// A small frontier, its clocks and the program with them are constants; the header that is written is the one that is
// compiled here.
#include "rheo/energy/clocks/clock_plan.hpp"

#include <fstream>
#include <iterator>

#include "emitted_plan.inc"
#include "problems.hpp"
#include "rheo/energy/clocks/svg.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace frontier_tests;

namespace {

constexpr auto two_by_two = named<[] { return one_f_one_b::program({.ranks = 2, .microbatches = 2}); }>;

struct made {
    frontier f;
    clocked_plan plan;
};

constexpr made small_plan(seconds deadline)
{
    watts const blocking{50.0};
    auto const made = make_activity_network(make_event_network(one_f_one_b::program({.ranks = 2, .microbatches = 2})), small_profile(),
                                            {blocking, cost_fit::hull, milliseconds(1.0)});
    auto f = make_frontier(made->activities, blocking * 2.0);
    auto real = round_to_clocks(f, made->options, blocking, deadline);
    return {std::move(f), *std::move(real)};
}

// Planned, rounded to real clocks and joined with its program by the compiler.
constexpr auto calm = clocked(two_by_two, [] {
    auto const m = small_plan(milliseconds(18.0));
    return clock_plan_of(two_by_two, m.f, m.plan);
}());
static_assert(calm.size() == 8);
static_assert(calm[0].clock == megahertz{1400.0});  // the first forward is critical
static_assert(clocked(two_by_two, rheo_plan::plan) == calm);

static_assert(two_by_two.digest != program_digest(gpipe::program({.ranks = 2, .microbatches = 2})));
static_assert(two_by_two.digest != program_digest(one_f_one_b::program({.ranks = 2, .microbatches = 3})));

}  // namespace

TEST_CASE("clock_plan: written header equals the included one")
{
    auto const m = small_plan(milliseconds(18.0));
    std::ifstream file{std::string{RHEO_SOURCE_DIR} + "/tests/unit/rheo/energy/emitted_plan.inc"};
    std::string const there{std::istreambuf_iterator<char>{file}, {}};
    CHECK(to_header(one_f_one_b::program({.ranks = 2, .microbatches = 2}), m.f, m.plan) == there);
}

TEST_CASE("clock_plan: picture has all points and computations")
{
    auto const m = small_plan(milliseconds(20.0));
    auto const picture = to_svg(m.f, m.plan);
    auto const count = [&](std::string const& what) {
        std::size_t found = 0;
        for (auto place = picture.find(what); place != std::string::npos; place = picture.find(what, place + 1)) {
            ++found;
        }
        return found;
    };
    CHECK(count("<circle") == 3);
    CHECK(count("<title>") == 8);
    CHECK(count("fastest") == 1);
    CHECK(count("least energy") == 1);
    CHECK(picture.find("nan") == std::string::npos);
    CHECK(picture.substr(picture.size() - 7) == "</svg>\n");
}
