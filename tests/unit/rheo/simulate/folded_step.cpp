// SPDX-License-Identifier: Apache-2.0
// Pipelines that are alike are played once: with the times of a step that plays them all.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "execution_plans.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/plan_step.hpp"
#include "rheo/simulate/played_step/detail/folded_step.hpp"
#include "rheo/simulate/played_step/play_step_in_seconds.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr modelled_link between{{0.125}, {4096.0}};
constexpr modelled_link inside{{1e-3}, {8192.0}};
constexpr modelled_machine machine{{1e6}, {1e6}, between, {0.25}};

std::vector<std::vector<network_level<>>> sixteen_ranks()
{
    return {{{4, network_topology::switched, inside}, {4, network_topology::switched, between}},
            {{4, network_topology::full, inside}, {4, network_topology::ring, between}},
            {{4, network_topology::full, inside}, {6, network_topology::full, between}},  // two nodes do nothing
            {{2, network_topology::full, {{1e-4}, {16384.0}}}, {2, network_topology::switched, inside}, {4, network_topology::switched, between}}};
}

std::optional<modelled_step> step_on(any_schedule family, std::vector<int> const& sizes, model_description const& model)
{
    auto const p = test::plan_on(family, sizes, std::vector<int>(sizes.size(), 8), static_cast<int>(model.layers.size()));
    return p ? std::optional{step_of(*p, model, test::small_shape, machine)} : std::nullopt;
}

/// The largest difference of two steps in the times of a rank, as a share of the step.
double difference(played_step<> const& a, played_step<> const& b)
{
    REQUIRE(a.rows.size() == b.rows.size());
    double most = std::abs((a.end - b.end) / b.end);
    for (std::size_t r = 0; r < a.rows.size(); ++r) {
        CHECK((a.rows[r].pipeline == b.rows[r].pipeline && a.rows[r].position == b.rows[r].position && a.rows[r].rank == b.rows[r].rank));
        CHECK(a.rows[r].done == b.rows[r].done);
        most = std::max(most, std::abs((a.rows[r].end - b.rows[r].end) / b.end));
        for (auto const part : rank_step_parts<>) {
            most = std::max(most, std::abs((a.rows[r].times.*part - b.rows[r].times.*part) / b.end));
        }
    }
    return most;
}

template <class Model>
double folding_changes(modelled_step const& step, std::vector<network_level<typename Model::link>> const& levels, step_reduction reduction)
{
    auto const view = array_view<network_level<typename Model::link> const>{levels};
    auto const once = play_step_in_seconds<Model>(step, view, {.reduction = reduction, .most_exact_holders = 1});
    auto const each = play_step_in_seconds<Model>(step, view, {.reduction = reduction, .most_exact_holders = 1, .each_pipeline = true});
    REQUIRE((once.error() + each.error()).empty());
    return difference(*once, *each);
}

}  // namespace

TEST_CASE("folded_step: a block played once is all blocks played")
{
    auto const model = test::deep_gpt(10);
    int folded = 0;
    for (auto const family : schedule_families()) {
        for (auto const& sizes : {std::vector{4, 4, 4, 4}, std::vector{2, 2, 2, 2, 2, 2, 2, 2}, std::vector{3, 1, 3, 1, 3, 1, 3, 1}, std::vector{8, 8}}) {
            auto const step = step_on(family, sizes, model);
            if (!step) {
                continue;
            }
            for (auto const& levels : sixteen_ranks()) {
                INFO(name_of(family) << " on " << sizes.size() << " pipelines, " << levels.size() << " levels, " << name_of(levels.back().topology));
                auto const fold = detail::fold_of(*step, array_view<network_level<> const>{levels});
                REQUIRE(fold);
                CHECK(fold->blocks == (sizes.size() == 2 ? 2 : 4));
                CHECK(folding_changes<contended_network>(*step, levels, step_reduction::slice_owner) < 1e-9);
                CHECK(folding_changes<free_network>(*step, levels, step_reduction::direct) < 1e-9);
                // What comes from another node at the time of something in the node itself may be first or second: a message more or less of some thousands.
                CHECK(folding_changes<contended_network>(*step, levels, step_reduction::node_first) < 1e-3);
                ++folded;
            }
        }
    }
    CHECK(folded > 100);
}

TEST_CASE("folded_step: whole nanoseconds fold, too")
{
    auto const model = test::deep_gpt(10);
    std::vector<network_level<integer_link>> const levels{{4, network_topology::switched, link_as<integer_link>(inside), 1},
                                                          {4, network_topology::switched, link_as<integer_link>(between), 1}};
    for (auto const& sizes : {std::vector{4, 4, 4, 4}, std::vector{2, 2, 2, 2, 2, 2, 2, 2}, std::vector(16, 1)}) {
        CHECK(folding_changes<integer_contended_network>(*step_on(one_f_one_b{}, sizes, model), levels, step_reduction::slice_owner) < 1e-9);
    }
}

TEST_CASE("folded_step: pipelines that differ are all played")
{
    auto const model = test::deep_gpt(10);
    auto const levels = sixteen_ranks();
    auto const fold = [](modelled_step const& step, std::vector<network_level<>> const& on) {
        return detail::fold_of(step, array_view<network_level<> const>{on}).has_value();
    };
    auto const alike = *step_on(one_f_one_b{}, {4, 4, 4, 4}, model);
    CHECK(fold(alike, levels[0]));
    auto slow = alike;
    slow.pipelines[2].costs[1].backward = slow.pipelines[2].costs[1].backward * 1.5;
    CHECK_FALSE(fold(slow, levels[0]));
    auto longer = alike;
    longer.pipelines[3].program.rows[0].pop_back();
    CHECK_FALSE(fold(longer, levels[0]));
    auto elsewhere = alike;
    std::swap(elsewhere.pipelines[1].ranks, elsewhere.pipelines[2].ranks);
    CHECK_FALSE(fold(elsewhere, levels[0]));
    CHECK_FALSE(fold(*step_on(one_f_one_b{}, {4, 4, 4}, model), levels[1]));  // a ring with a gap
    CHECK(fold(*step_on(one_f_one_b{}, {4, 4, 4}, model), levels[0]));
    CHECK_FALSE(fold(*step_on(one_f_one_b{}, {4, 4, 4, 3}, model), levels[0]));
    CHECK_FALSE(fold(*step_on(one_f_one_b{}, {3, 3, 3, 3}, model), levels[0]));
    CHECK_FALSE(fold(*step_on(one_f_one_b{}, {4}, model), levels[0]));
    CHECK_FALSE(fold(alike, {{16, network_topology::full, between}}) !=
                fold(alike, {{16, network_topology::full, between}, {1, network_topology::full, between}}));

    auto const block = detail::fold_of(alike, array_view<network_level<> const>{levels[0]});
    CHECK(detail::has_alike_reductions<free_network>(alike, *block, {.most_exact_holders = 3}));
    CHECK_FALSE(detail::has_alike_reductions<free_network>(alike, *block, {}));  // four holders, each message played
    auto unknown = alike;
    unknown.sums = {};  // of no bytes
    CHECK_FALSE(detail::has_alike_reductions<free_network>(unknown, *block, {}));
    CHECK(detail::has_alike_reductions<free_network>(alike, *block, {.reduction = step_reduction::node_first}));
    CHECK_FALSE(detail::has_alike_reductions<free_network>(alike, *block, {.reduction = step_reduction::tree, .most_exact_holders = 1}));
}
