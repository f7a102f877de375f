// SPDX-License-Identifier: Apache-2.0
// What one row takes at least against what the whole program takes.
#include "rheo/partition/detail/row_bound.hpp"

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "rheo/partition/detail/replay.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/schedule/families/eager_1f1b.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;
using detail::row_window;

namespace {

/// The first of four ranks: three more forwards before the first backward, as many backwards after the last forward, and a steady state whose
/// windows follow each other without a gap.
static_assert(detail::windows_of(make_program(one_f_one_b{}, {.ranks = 4, .microbatches = 4}).rows[0]) == std::vector<row_window>{{3, 0, 1}});
static_assert(detail::windows_of(make_program(one_f_one_b{}, {.ranks = 4, .microbatches = 8}).rows[0]) == std::vector<row_window>{{3, 0, 1}, {0, 3, 1}});
static_assert(detail::windows_of(make_program(one_f_one_b{}, {.ranks = 4, .microbatches = 3}).rows[3]) == std::vector<row_window>{{0, 0, 3}});
static_assert(detail::idle_in({{3, 0, 1}, {0, 3, 2}}, 10, 20, 50) == 20);

std::int64_t worst_row(program const& p, std::vector<detail::stage_times> const& times)
{
    std::int64_t worst = 0;
    for (std::size_t s = 0; s < times.size(); ++s) {
        std::int64_t before = 0;
        std::int64_t behind = 0;
        for (std::size_t other = 0; other < times.size(); ++other) {
            auto const both = times[other].forward + times[other].backward;
            before += other < s ? both + 2 * times[other].send_activation : 0;
            behind += other > s ? both + 2 * times[other - 1].send_activation : 0;
        }
        std::int64_t const items = std::count_if(p.rows[s].begin(), p.rows[s].end(), [](instruction i) { return i.kind == instruction_kind::forward; });
        auto const idle = detail::idle_in(detail::windows_of(p.rows[s]), times[s].forward, times[s].backward, behind);
        worst = std::max(worst, before + items * (times[s].forward + times[s].backward) + idle);
    }
    return worst;
}

}  // namespace

TEST_CASE("row_bound: below the makespan; equal for even stages")
{
    std::mt19937 draw{31};
    int met = 0;
    for (any_schedule const schedule : {any_schedule{gpipe{}}, any_schedule{one_f_one_b{}}, any_schedule{eager_1f1b{}}}) {
        for (int round = 0; round < 400; ++round) {
            auto const ranks = 1 + static_cast<int>(draw() % 6);
            auto const p = make_program(schedule, {.ranks = ranks, .microbatches = 1 + static_cast<int>(draw() % 12)});
            std::vector<detail::stage_times> times;
            for (int s = 0; s < ranks; ++s) {
                auto const send = s + 1 < ranks ? static_cast<std::int64_t>(draw() % 4) : 0;
                times.push_back(
                    {static_cast<std::int64_t>(draw() % 20), static_cast<std::int64_t>(draw() % 30), send, s > 0 ? times.back().send_activation : 0});
            }
            CAPTURE(name_of(schedule), round, ranks);
            auto const makespan = detail::replay{p}(times);
            REQUIRE(worst_row(p, times) <= makespan);
            met += worst_row(p, times) == makespan ? 1 : 0;
        }
    }
    CHECK(met > 400);
    for (int ranks = 1; ranks <= 8; ++ranks) {
        for (int m = 1; m <= 20; ++m) {
            auto const p = make_program(one_f_one_b{}, {.ranks = ranks, .microbatches = m});
            std::vector<detail::stage_times> const times(static_cast<std::size_t>(ranks), {10, 20, 0, 0});
            REQUIRE(worst_row(p, times) == 30 * (m + ranks - 1));
            REQUIRE(worst_row(p, times) == detail::replay{p}(times));
        }
    }
}
