// SPDX-License-Identifier: Apache-2.0
// A plan is rehearsed with the programs that its workers interpret, and with costs that add up to the model's.
#include <set>

#include "rheo/simulate/plan_step.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr microbatch_shape shape{.sequences = 2, .tokens = 16};
constexpr modelled_machine machine{{1e9}, {1e9}, {microseconds(10.0), {1e8}}, microseconds(50.0)};

model_description small_gpt() { return gpt_model({.vocabulary = 64, .context = 16, .width = 32, .heads = 4, .blocks = 4}); }

plan two_and_three()
{
    auto const cut = [](std::vector<int> at) {
        std::vector<layer_id> cuts;
        for (int const l : at) {
            cuts.push_back(layer_id{l});
        }
        return cuts;
    };
    plan p{one_f_one_b{}, {}, {}, {}};
    p.pipelines.push_back({cut({0, 3, 6}), {{rank_id{3}}, {rank_id{1}}}});
    p.pipelines.push_back({cut({0, 2, 4, 6}), {{rank_id{0}}, {rank_id{4}}, {rank_id{2}}}});
    p.work = deal(std::vector{3, 5});
    return p;
}

}  // namespace

TEST_CASE("plan_step: programs are those of the workers")
{
    auto const m = small_gpt();
    auto const p = two_and_three();
    auto const step = step_of(p, m, shape, machine);
    auto const programs = programs_of(p, reduction_units(state_of(m), 6), 6);
    REQUIRE(step.pipelines.size() == 2);
    CHECK(step.pipelines[0].program == programs[0]);
    CHECK(step.pipelines[1].program == programs[1]);
    CHECK(step.pipelines[0].ranks == std::vector{rank_id{3}, rank_id{1}});
    CHECK(step.pipelines[1].ranks == std::vector{rank_id{0}, rank_id{4}, rank_id{2}});
}

TEST_CASE("plan_step: messages and sums have their dtypes")
{
    auto const m = small_gpt();
    auto slow_link = machine;
    slow_link.link = {seconds{0.0}, {1e6}};
    auto const in = [&](dtype_policy const& policy) { return step_of(two_and_three(), m, shape, slow_link, policy); };
    auto const plain = in(fp32);
    auto const half = in(bf16);
    CHECK(half.reductions == plain.reductions);
    CHECK(in(bf16_i32).reductions[0].count * 2 == Approx(plain.reductions[0].count));
    for (std::size_t p = 0; p < plain.pipelines.size(); ++p) {
        for (std::size_t s = 0; s + 1 < plain.pipelines[p].costs.size(); ++s) {
            CHECK(half.pipelines[p].costs[s].send_activation.count * 2 == Approx(plain.pipelines[p].costs[s].send_activation.count));
        }
    }
}

TEST_CASE("plan_step: events know how large messages and sums are")
{
    auto const m = small_gpt();
    auto const p = two_and_three();
    auto const units = reduction_units(state_of(m), 6);
    for (auto const& policy : {fp32, bf16_i32}) {
        std::set<activity> sized;
        for (auto const& e : rehearse_step(step_of(p, m, shape, machine, policy)).events) {
            bytes expected{};
            if (e.activity >= activity::send_activation && e.activity <= activity::receive_gradient) {
                expected = bytes{shape.sequences * shape.tokens * 32 * size_of(policy.storage)};
            } else if (e.activity == activity::post_reduction || e.activity == activity::await_reduction) {
                for (auto const t : units[static_cast<std::size_t>(e.item)].tensors) {
                    expected += bytes{elements(state_of(m).tensors[at(t)].shape) * size_of(policy.accumulate)};
                }
            }
            CHECK(e.size == expected);
            if (e.size > bytes{}) {
                sized.insert(e.activity);
            }
        }
        CHECK(sized.size() == 6);
    }
}

TEST_CASE("plan_step: stage times add up for any cut")
{
    auto const m = small_gpt();
    flops forward;
    flops backward;
    for (auto const& layer : m.layers) {
        forward += forward_flops(layer, shape);
        backward += backward_flops(layer, shape);
    }
    for (auto const& pipeline : two_and_three().pipelines) {
        auto const costs = modelled_costs(m, shape, pipeline.cuts, machine);
        REQUIRE(costs.size() == pipeline.stages.size());
        seconds f;
        seconds b;
        for (std::size_t s = 0; s < costs.size(); ++s) {
            f += costs[s].forward;
            b += costs[s].backward;
            CHECK((costs[s].send_activation > seconds{0.0}) == (s + 1 < costs.size()));
            CHECK((costs[s].send_gradient > seconds{0.0}) == (s > 0));
        }
        CHECK(f.count == Approx((forward / machine.compute).count));
        CHECK(b.count == Approx((backward / machine.compute).count));
    }
}

TEST_CASE("plan_step: a step takes its slowest rank and links")
{
    auto const m = small_gpt();
    auto const step = step_of(two_and_three(), m, shape, machine);
    auto const result = rehearse_step(step);
    REQUIRE(result.sound);
    double most = 0.0;
    for (std::size_t i = 0; i < step.pipelines.size(); ++i) {
        auto const count = static_cast<double>(two_and_three().work[i].size());
        for (auto const& c : step.pipelines[i].costs) {
            most = std::max(most, count * (c.forward + c.backward).count);
        }
    }
    CHECK(result.end.count > most);
    auto slow = machine;
    slow.link.bandwidth = bytes_per_second{1e7};
    CHECK(rehearse_step(step_of(two_and_three(), m, shape, slow)).end > result.end);
}

TEST_CASE("plan_step: only units with holders take time")
{
    auto const m = small_gpt();
    auto const units = reduction_units(state_of(m), 6);
    auto const step = step_of(two_and_three(), m, shape, machine);
    REQUIRE(step.reductions.size() == units.size());
    for (std::size_t u = 0; u < units.size(); ++u) {
        CHECK((step.reductions[u] > seconds{0.0}) == !units[u].tensors.empty());
    }
}

TEST_CASE("plan_step: cuts of another model are refused")
{
    auto p = two_and_three();
    p.pipelines[0].cuts.back() = layer_id{5};
    CHECK_THROWS_WITH(step_of(p, small_gpt(), shape, machine), "the cuts do not end with the model's last layer");
}
