// SPDX-License-Identifier: Apache-2.0
// Steps played on a network: where nobody shares links they are what the timeline says, each moment of each rank is in one part, sharing makes nothing
// quicker, and with losses each rank comes as far as in a rehearsal of them.
#include <map>
#include <string>
#include <vector>

#include "execution_plans.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/plan_step.hpp"
#include "rheo/simulate/played_step/detail/reduction_rounds.hpp"
#include "rheo/simulate/played_step/play_step.hpp"
#include "rheo/simulate/played_step/play_step_in_seconds.hpp"
#include "rheo/simulate/played_step/step_recorder.hpp"
#include "steps.hpp"
#include "support/catch.hpp"
#include "support/rehearsed_losses.hpp"

using namespace rheo;

namespace {

/// All ranks have a link to each other one.
std::vector<network_level<>> all_linked(int ranks, modelled_link wire) { return {{ranks, network_topology::full, wire}}; }

template <class Model>
played_step<> play(modelled_step const& step, std::vector<network_level<>> const& levels, step_rules<Model> const& rules = {}, step_losses const& losses = {})
{
    auto played = play_step<Model>(step, array_view<network_level<> const>{levels}, rules, losses);
    REQUIRE(played.error() == "");
    return *played;
}

constexpr modelled_link wire{{0.125}, {4096.0}};
modelled_machine machine_on(modelled_link l) { return {{1e6}, {1e6}, l, {0.25}}; }

}  // namespace

TEST_CASE("played_step: on free links it is the timeline")
{
    auto const model = test::deep_gpt();
    int played_plans = 0;
    for (auto const family : schedule_families()) {
        for (auto const& sizes : {std::vector{2}, std::vector{4}, std::vector{4, 2}, std::vector{3, 4}}) {
            auto const p = test::plan_on(family, sizes, std::vector<int>(sizes.size(), 8), static_cast<int>(model.layers.size()));
            if (!p) {
                continue;
            }
            INFO(name_of(family) << " on " << sizes.size() << " pipelines");
            auto step = step_of(*p, model, test::small_shape, machine_on(wire));
            step.sums = {};  // sums of no bytes take the latencies of two messages after the last post
            for (auto& reduction : step.reductions) {
                reduction = reduction > seconds{} ? wire.latency * 2.0 : seconds{};
            }
            auto const rehearsed = rehearse_step(step);
            auto const played = play<free_network>(step, all_linked(6 + 1, wire));
            CHECK(played.end.count == Approx((rehearsed.end - step.begin).count).epsilon(1e-12));
            for (auto const& row : played.rows) {
                CHECK(total_time(row.times).count == Approx(played.end.count).epsilon(1e-12));
                CHECK(row.done == step.pipelines[at(row.pipeline)].program.rows[static_cast<std::size_t>(row.position)].size());
            }
            ++played_plans;
        }
    }
    CHECK(played_plans > 30);
}

TEST_CASE("played_step: shared links make nothing quicker")
{
    auto const model = test::deep_gpt(10);
    for (auto const& sizes : {std::vector{4}, std::vector{2, 2}, std::vector{3, 2, 3}}) {
        auto const p = *test::plan_on(one_f_one_b{}, sizes, std::vector<int>(sizes.size(), 6), static_cast<int>(model.layers.size()));
        auto const step = step_of(p, model, test::small_shape, machine_on(wire));
        for (auto const& levels : {std::vector<network_level<>>{{8, network_topology::switched, wire}},
                                   {{8, network_topology::ring, wire}},
                                   {{2, network_topology::switched, wire}, {4, network_topology::switched, wire}},
                                   {{2, network_topology::full, wire}, {4, network_topology::ring, wire}}}) {
            for (auto const form :
                 {step_reduction::ring, step_reduction::tree, step_reduction::direct, step_reduction::slice_owner, step_reduction::node_first}) {
                auto const alone = play<free_network>(step, levels, {.reduction = form});
                auto const shared = play<contended_network>(step, levels, {.reduction = form});
                CHECK(shared.end >= alone.end - seconds{1e-9});
                auto quicker = levels;
                for (auto& level : quicker) {
                    level.link = {level.link.latency / 2.0, level.link.bandwidth * 2.0};
                }
                auto half = step;
                for (auto& pipeline : half.pipelines) {
                    for (auto& c : pipeline.costs) {
                        c = {c.forward / 2.0, c.backward / 2.0, c.input_gradient / 2.0, c.weight_gradient / 2.0, {}, {}, c.overlap_gain / 2.0};
                    }
                }
                half.decide = step.decide / 2.0;
                half.update = step.update / 2.0;
                CHECK(play<contended_network>(half, quicker, {.reduction = form}).end.count == Approx(shared.end.count / 2.0).epsilon(1e-9));
                CHECK(play<free_network>(step, quicker, {.reduction = form}).end <= alone.end);
            }
        }
    }
}

TEST_CASE("played_step: losses stop ranks where a rehearsal does")
{
    auto const step = test::two_and_three();
    constexpr recovery_times phases{{0.5}, {}, {}, {}, {}, {}, {}, {}, {}};
    for (int victim = 0; victim < 5; ++victim) {
        for (double t = 0.25; t < 21.0; t += 0.5) {
            INFO("rank " << victim << " at " << t);
            modelled_loss const loss{rank_id{victim}, step.begin + seconds{t}};
            auto const rehearsed = test::rehearse_losses(step, array_view{&loss, 1}, phases);
            auto const played = play<free_network>(step, all_linked(5, {{0.0}, {1e30}}), {}, {array_view{&loss, 1}, loss.at + phases.detect});
            std::map<std::tuple<int, int, int>, microbatch_set> done;  // by rank, stage
            for (auto const& row : played.rows) {
                auto const& program = step.pipelines[at(row.pipeline)].program.rows[static_cast<std::size_t>(row.position)];
                for (std::size_t k = 0; k < row.done; ++k) {
                    if (program[k].kind == instruction_kind::backward) {
                        done[{row.rank.value, row.pipeline.value, program[k].stage}].insert(microbatch_id{program[k].item});
                    }
                }
            }
            for (auto const& f : rehearsed.finished) {
                CHECK(f.microbatches == done[{f.rank.value, f.pipeline.value, f.stage.value}]);
            }
        }
    }
}

TEST_CASE("played_step: many holders in halves are near all messages")
{
    auto const model = test::deep_gpt(4);
    auto const p = *test::plan_on(one_f_one_b{}, std::vector<int>(32, 1), std::vector<int>(32, 1), static_cast<int>(model.layers.size()));
    auto const step = step_of(p, model, test::small_shape, machine_on(wire));
    for (auto const& levels : {std::vector<network_level<>>{{32, network_topology::switched, {{1e-6}, {4096.0}}}},
                               {{8, network_topology::switched, {{1e-6}, {65536.0}}}, {4, network_topology::switched, {{5e-6}, {4096.0}}}}}) {
        auto const exact = play<contended_network>(step, levels);
        auto const halves = play<contended_network>(step, levels, {.most_exact_holders = 8});
        CHECK(halves.end.count == Approx(exact.end.count).epsilon(0.1));
    }
}

TEST_CASE("played_step: node first, a unit leaves each node once")
{
    // 2, 1 and 3 holders in nodes of 4
    std::vector<rank_id> const ranks{{0}, {3}, {5}, {8}, {9}, {10}};
    std::vector<network_level<>> const levels{{4, network_topology::switched, wire}, {3, network_topology::switched, wire}};
    auto const node_of = [&](rank_id holder) { return ranks[at(holder)].value / 4; };
    for (auto const count : {detail::message_count::each, detail::message_count::joined}) {
        auto const rounds = detail::node_first_rounds(array_view<network_level<> const>{levels}, ranks, {1800, 8, 4}, count);
        REQUIRE(rounds.size() == 4);
        for (std::size_t r = 0; r < 4; ++r) {
            bool const is_inside = r == 0 || r == 3;
            std::int64_t element = r < 2 ? 8 : 4;
            std::map<int, std::int64_t> received;  // by node
            for (auto const& m : rounds[r].messages) {
                CHECK((node_of(m.from) == node_of(m.to)) == is_inside);
                received[node_of(m.to)] += m.size.count;
            }
            if (is_inside) {
                CHECK(received == std::map<int, std::int64_t>{{0, 1800 * element}, {2, 2 * 1800 * element}});  // all but what each holds itself
            } else if (count == detail::message_count::each) {
                std::int64_t const others = r == 1 ? 2 * 600 : 1200;  // a third from two nodes; the thirds of two nodes
                CHECK(received == std::map<int, std::int64_t>{{0, others * element}, {1, others * element}, {2, others * element}});
            } else {
                CHECK(received[0] + received[1] + received[2] == 3 * 1200 * element);
            }
        }
    }
}

TEST_CASE("played_step: node first takes its four rounds")
{
    auto const model = test::deep_gpt(4);
    auto const p = *test::plan_on(one_f_one_b{}, std::vector<int>(4, 1), std::vector<int>(4, 1), static_cast<int>(model.layers.size()));
    auto step = step_of(p, model, test::small_shape, machine_on(wire));
    step.sums.assign(step.sums.size(), bytes{});
    step.sums.back() = {4096 * 8};
    std::vector<network_level<>> const levels{{2, network_topology::full, wire}, {2, network_topology::full, {{0.25}, {1024.0}}}};
    auto const node_first = [&](int most) { return play<free_network>(step, levels, {.reduction = step_reduction::node_first, .most_exact_holders = most}); };
    auto const without = node_first(64).end;
    CHECK(node_first(1).end.count == Approx(without.count));  // two nodes of two: a message for each pair, joined or not
    step.sums.back() = {};
    // Half of the unit in a node and a quarter between nodes, as 8 bytes and then as 4; latencies are there without bytes, too.
    CHECK((without - node_first(64).end).count == Approx(2048.0 * 12 / 4096 + 1024.0 * 12 / 1024));
}

TEST_CASE("played_step: node first is quick on slow links of nodes")
{
    auto const model = test::deep_gpt(4);
    auto const p = *test::plan_on(one_f_one_b{}, std::vector<int>(32, 1), std::vector<int>(32, 1), static_cast<int>(model.layers.size()));
    auto const step = step_of(p, model, test::small_shape, machine_on(wire));
    std::vector<network_level<>> const levels{{8, network_topology::switched, {{1e-6}, {1048576.0}}}, {4, network_topology::switched, {{5e-6}, {4096.0}}}};
    auto const end = [&](step_reduction form, int most) { return play<contended_network>(step, levels, {.reduction = form, .most_exact_holders = most}).end; };
    CHECK(end(step_reduction::node_first, 64) < end(step_reduction::slice_owner, 64) * 0.5);
    CHECK(end(step_reduction::node_first, 1).count == Approx(end(step_reduction::node_first, 64).count).epsilon(0.1));
}

TEST_CASE("played_step: NCCL sums in the time that it expects")
{
    auto const model = test::deep_gpt(4);
    auto const p = *test::plan_on(one_f_one_b{}, std::vector<int>(16, 1), std::vector<int>(16, 1), static_cast<int>(model.layers.size()));
    auto step = step_of(p, model, test::small_shape, machine_on(wire));
    step.sums.assign(step.sums.size(), bytes{});
    step.sums.back() = mebibytes(64);
    std::vector<network_level<>> const levels{{8, network_topology::switched, wire}, {2, network_topology::switched, wire}};
    step_rules<contended_network> rules{.reduction = step_reduction::nccl};
    CHECK(play_step<contended_network>(step, array_view<network_level<> const>{levels}, rules).error() ==
          "reductions by NCCL need what NCCL finds on the machine: the cluster's [nccl]");
    rules.nccl = nccl_machine{.ranks = 0, .nodes = 0, .channels = 16, .channel_bandwidth = 12.0};
    auto const large = play<contended_network>(step, levels, rules);
    auto expected = *rules.nccl;
    expected.ranks = 16;
    expected.nodes = 2;
    auto const takes = nccl_all_reduce(expected, mebibytes(64))->time;
    auto const small = nccl_all_reduce(expected, bytes{})->time;
    step.sums.back() = {};
    CHECK((large.end - play<contended_network>(step, levels, rules).end).count == Approx((takes - small).count));
    for (auto const& row : large.rows) {
        CHECK(row.times.reductions >= takes - seconds{1e-12});
        CHECK(total_time(row.times).count == Approx(large.end.count));
    }
    rules.each_pipeline = true;
    step.sums.back() = mebibytes(64);
    CHECK(play<contended_network>(step, levels, rules) == large);
}

TEST_CASE("played_step: whole nanoseconds are seconds rounded down")
{
    auto const model = test::deep_gpt(10);
    auto const p = *test::plan_on(one_f_one_b{}, {3, 2, 3}, {6, 6, 6}, static_cast<int>(model.layers.size()));
    auto const step = step_of(p, model, test::small_shape, machine_on(wire));
    std::vector<network_level<integer_link>> const whole{{8, network_topology::full, link_as<integer_link>(wire), 1}};
    auto const exact = play<contended_network>(step, all_linked(8, wire));
    auto const rounded = play_step_in_seconds<integer_contended_network>(step, array_view<network_level<integer_link> const>{whole});
    REQUIRE(rounded.error() == "");
    CHECK(rounded->end <= exact.end);
    CHECK(rounded->end.count == Approx(exact.end.count).margin(1e-6));
    REQUIRE(rounded->rows.size() == exact.rows.size());
    for (std::size_t r = 0; r < exact.rows.size(); ++r) {
        CHECK(rounded->rows[r].done == exact.rows[r].done);
        CHECK(total_time(rounded->rows[r].times).count == Approx(rounded->end.count).epsilon(1e-12));
        CHECK(rounded->rows[r].times.computing.count == Approx(exact.rows[r].times.computing.count).margin(1e-6));
    }
    modelled_loss const loss{rank_id{1}, step.begin + exact.end * 0.5};
    step_losses const losses{array_view{&loss, 1}, loss.at + seconds{0.5}};
    step_recorder recorder{step};
    auto const lost = play_step_in_seconds<integer_contended_network>(step, array_view<network_level<integer_link> const>{whole}, {}, losses, recorder);
    REQUIRE(lost.error() == "");
    CHECK(lost->end.count == Approx(play<contended_network>(step, all_linked(8, wire), {}, losses).end.count).margin(1e-6));
    CHECK(!recorder.take().empty());
}

TEST_CASE("played_step: what cannot be played is refused")
{
    auto const step = test::two_and_three();
    auto const refused = [&](std::vector<network_level<>> const& levels) {
        return play_step<free_network>(step, array_view<network_level<> const>{levels}).error();
    };
    CHECK(refused(all_linked(4, wire)) == "rank 4 has no device: the cluster has 4");
    CHECK(refused({}) == "a network has at least one level");
    auto hanging = step;
    hanging.pipelines[0].program.rows[0].clear();
    CHECK(play_step<free_network>(hanging, array_view<network_level<> const>{all_linked(5, wire)}).error() ==
          "the step hangs: a rank waits for a message or a reduction that never comes");
}
