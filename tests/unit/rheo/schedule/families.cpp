// SPDX-License-Identifier: Apache-2.0
// The laws of every schedule family, over their list; then what each family promises.
#include <random>
#include <tuple>

#include "rheo/schedule/check/activations.hpp"
#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/draw/draw.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/proved.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "support/catch.hpp"

using namespace rheo;

static_assert(Schedule<gpipe> && Schedule<one_f_one_b> && !Schedule<int>);
static_assert(proved<gpipe, schedule_shape{.ranks = 4, .microbatches = 8}>);
static_assert(proved<one_f_one_b, schedule_shape{.ranks = 4, .microbatches = 8}>);
static_assert(deadlock_free<rendezvous>(lower(one_f_one_b::program({.ranks = 4, .microbatches = 8}))));
static_assert(deadlock_free<rendezvous>(lower(one_f_one_b::program({.ranks = 8, .microbatches = 16}))));
static_assert(peak_activations(one_f_one_b::program({.ranks = 4, .microbatches = 8})) == 4);
static_assert(peak_activations(gpipe::program({.ranks = 4, .microbatches = 8})) == 8);
static_assert(makespan(one_f_one_b::program({.ranks = 4, .microbatches = 8}), unit_costs(4)) == seconds{33.0});

namespace {

std::vector<stage_work> random_work(std::mt19937& draw, int stages, int count)
{
    std::vector<stage_work> work;
    for (int m = 0; m < count; ++m) {
        work.push_back({microbatch_id{3 * m + 1}, stage_id{std::uniform_int_distribution{0, stages}(draw)}});
    }
    std::shuffle(work.begin(), work.end(), draw);
    return work;
}

}  // namespace

TEST_CASE("families: every small size is complete and sound")
{
    for (auto const family : schedule_families()) {
        int made = 0;
        for (int ranks = 1; ranks <= 5; ++ranks) {
            for (int microbatches = 0; microbatches <= 10; ++microbatches) {
                if (error_of(family, {.ranks = ranks, .microbatches = microbatches}) != shape_error::none) {
                    continue;
                }
                ++made;
                auto const p = make_program(family, {.ranks = ranks, .microbatches = microbatches});
                INFO(name_of(family) << ' ' << ranks << " x " << microbatches << '\n' << to_text(p));
                CHECK(complete(p, microbatches));
                CHECK(dependencies_in_order(p));
                CHECK(complete(lower(p), microbatches));
                CHECK(deadlock_free<rendezvous>(lower(p)));
                CHECK(deadlock_free<nonblocking>(lower(p)));
                CHECK(deadlock_free<tagged>(lower(p)));
                CHECK(deadlock_free(lower(p), fifo{.depth = 1}));
            }
        }
        CHECK(made > 5);
    }
}

TEST_CASE("families: microbatches run only to the depth asked")
{
    std::mt19937 draw{7};
    for (auto const& family : schedule_families()) {
        for (int round = 0; round < 200; ++round) {
            auto const ranks = 1 + round % 5;
            auto const count = round % 11;
            if (error_of(family, {.ranks = ranks, .microbatches = count}) != shape_error::none) {
                continue;
            }
            auto const undisturbed = make_program(family, {.ranks = ranks, .microbatches = count});
            auto const work = random_work(draw, stages_per_copy(undisturbed), count);
            auto const p = make_program(family, ranks, work);
            INFO(name_of(family) << '\n' << to_text(p));
            CHECK(complete(p, work));
            CHECK(deadlock_free<rendezvous>(lower(p)));
            for (auto const peak : peak_activations_by_rank(p)) {
                CHECK(peak <= static_cast<int>(work.size()) * static_cast<int>(p.placement.size()) * p.slices / ranks);
            }
        }
    }
}

TEST_CASE("families: flagged families grow in flight monotonically")
{
    std::mt19937 draw{11};
    int said = 0;
    for (auto const family : schedule_families()) {
        if (!family->peaks_grow) {
            continue;
        }
        ++said;
        for (int round = 0; round < 12; ++round) {
            auto const ranks = 1 + round % 6;
            std::vector<bytes> weights(64);
            for (auto& weight : weights) {
                weight = bytes{1 + static_cast<std::int64_t>(draw() % 9)};
            }
            std::vector<bytes> before(static_cast<std::size_t>(ranks));
            for (int m = 1; m <= 4 * ranks; ++m) {
                if (error_of(family, {.ranks = ranks, .microbatches = m}) != shape_error::none) {
                    continue;
                }
                auto const p = make_program(family, {.ranks = ranks, .microbatches = m});
                auto activations = weights;
                activations.resize(p.placement.size());
                auto const peaks = peak_bytes_by_rank(p, activations);
                for (std::size_t r = 0; r < peaks.size(); ++r) {
                    CAPTURE(name_of(family), ranks, m, r);
                    CHECK(peaks[r] >= before[r]);
                }
                before = peaks;
            }
        }
    }
    CHECK(said == 11);
}

TEST_CASE("families: whole work in order is the undisturbed step")
{
    for (auto const& family : schedule_families()) {
        CHECK(make_program(family, 2, whole_step(6)) == make_program(family, {.ranks = 2, .microbatches = 6}));
    }
}

TEST_CASE("families: GPipe and 1F1B: (m + p - 1)(f + b), peaks")
{
    for (int p = 1; p <= 6; ++p) {
        for (int m = 1; m <= 9; ++m) {
            for (auto const& [f, b] : {std::tuple{1.0, 2.0}, {1.0, 1.0}, {3.0, 2.0}, {2.0, 7.0}}) {
                stage_costs const costs(static_cast<std::size_t>(p), {{f}, {b}, {0.0}, {0.0}, {0.0}, {0.0}});
                auto const expected = seconds{(m + p - 1) * (f + b)};
                CHECK(makespan(gpipe::program({p, m}), costs) == expected);
                CHECK(makespan(one_f_one_b::program({p, m}), costs) == expected);
                CHECK(makespan<nonblocking>(lower(one_f_one_b::program({p, m})), costs) == expected);
            }
            auto const peaks = peak_activations_by_rank(one_f_one_b::program({p, m}));
            for (int r = 0; r < p; ++r) {
                CHECK(peaks[static_cast<std::size_t>(r)] == std::min(p - r, m));
            }
            CHECK(peak_activations(gpipe::program({p, m})) == m);
        }
    }
}

TEST_CASE("families: an evaluation holds no activation")
{
    std::vector<stage_work> const evaluation(6, {microbatch_id{0}, stage_id{3}});
    auto work = evaluation;
    for (std::size_t m = 0; m < work.size(); ++m) {
        work[m].microbatch = microbatch_id{static_cast<int>(m)};
    }
    CHECK(peak_activations(gpipe::program(3, work)) == 0);
    work[2].deepest = stage_id{1};
    CHECK(peak_activations_by_rank(gpipe::program(3, work)) == std::vector{0, 1, 1});
}

TEST_CASE("families: the drawing of GPipe")
{
    CHECK('\n' + draw(gpipe::program({.ranks = 3, .microbatches = 4})) == R"(
0 | F0 F1 F2 F3 .  .  .  .  .  .  B0 =  B1 =  B2 =  B3 =
1 | .  F0 F1 F2 F3 .  .  .  B0 =  B1 =  B2 =  B3 =  .  .
2 | .  .  F0 F1 F2 F3 B0 =  B1 =  B2 =  B3 =  .  .  .  .
)");
}

TEST_CASE("families: the drawing of 1F1B")
{
    CHECK('\n' + draw(one_f_one_b::program({.ranks = 4, .microbatches = 6})) == R"(
0 | F0 F1 F2 F3 .  .  .  .  .  .  B0 =  F4 B1 =  F5 B2 =  .  B3 =  .  B4 =  .  B5 =
1 | .  F0 F1 F2 .  .  .  .  B0 =  F3 B1 =  F4 B2 =  F5 B3 =  .  B4 =  .  B5 =  .  .
2 | .  .  F0 F1 .  .  B0 =  F2 B1 =  F3 B2 =  F4 B3 =  F5 B4 =  .  B5 =  .  .  .  .
3 | .  .  .  F0 B0 =  F1 B1 =  F2 B2 =  F3 B3 =  F4 B4 =  F5 B5 =  .  .  .  .  .  .
)");
}

TEST_CASE("families: the drawing of what a loss left to do")
{
    std::vector<stage_work> const work{{microbatch_id{5}, stage_id{0}}, {microbatch_id{7}, stage_id{2}}, {microbatch_id{1}, stage_id{3}}};
    CHECK('\n' + draw(one_f_one_b::program(3, work)) == R"(
0 | F5 F7 F1 .  .  .  .  B5 =
1 | .  F5 F7 .  .  B5 =  F1 .
2 | .  .  F5 B5 =  F7 B7 =  F1
)");
}

TEST_CASE("families: unknown name suggests the nearest")
{
    CHECK(name_of(*parse_schedule("gpipe")) == "gpipe");
    CHECK(*parse_schedule("1f1b") == one_f_one_b{});
    CHECK(parse_schedule("1F1").error() == "no schedule is called '1F1'; the nearest known name is '1f1b'");
    CHECK(parse_schedule("pipe").error() == "no schedule is called 'pipe'; the nearest known name is 'gpipe'");
    CHECK_FALSE(parse_schedule(""));
}

TEST_CASE("families: interleaved groups: accepted iff acyclic")
{
    int refused = 0;
    int others = 0;
    for (int p = 1; p <= 4; ++p) {
        for (int v = 1; v <= 3; ++v) {
            for (int m = 1; m <= 9; ++m) {
                for (int g = 1; g <= 10; ++g) {
                    schedule_shape const shape{.ranks = p, .microbatches = m, .chunks = v, .group = g};
                    INFO("p " << p << " v " << v << " m " << m << " g " << g);
                    bool const known = p <= g && g <= m && (m % g == 0 || m % g >= p);
                    for (auto const& [order, fault] :
                         {std::pair{interleaved::order(shape), error_of<interleaved>(shape)}, std::pair{zb1p::order(shape), error_of<zb1p>(shape)}}) {
                        bool const acyclic = dependencies_in_order(order).ok;
                        CHECK((acyclic || !known));
                        CHECK((fault == shape_error::none) == acyclic);
                        refused += acyclic ? 0 : 1;
                        others += acyclic && !known ? 1 : 0;
                    }
                }
            }
        }
    }
    CHECK(refused > 20);
    CHECK(others > 20);
}

TEST_CASE("families: impossible schedules are rejected")
{
    CHECK_THROWS_WITH(gpipe::program({.ranks = 0, .microbatches = 2}), "a schedule needs at least one rank");
    CHECK_THROWS_WITH(gpipe::program({.ranks = 2, .microbatches = -1}), "a step has no negative number of microbatches");
    std::vector<stage_work> const deep{{microbatch_id{0}, stage_id{3}}};
    CHECK_THROWS_WITH(one_f_one_b::program(2, deep), "the deepest stage of a microbatch lies outside the pipeline");
}
