// SPDX-License-Identifier: Apache-2.0
// Stages and state with sums in 32 bits and a scale per row.
#include <cmath>

#include "rheo/model/llama.hpp"
#include "rheo/model/parameter_bytes.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "support/catch.hpp"
#include "unit/executor/stage/stage_steps.hpp"

using namespace rheo;
using namespace stage_steps;

namespace {

model_description llama()
{
    return fused(llama_model({.vocabulary = 37, .context = 12, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 32, .qk_norm = true}));
}

/// What both kinds of sums have room for.
void one_scale(resident_state& state) { std::fill(state.scales.begin(), state.scales.end(), 16); }

}  // namespace

TEST_CASE("row_sums: equal scales match int64 for any work split")
{
    for (auto const& model : {fused(gpt_model(small)), gpt_model(small), llama()}) {
        auto const layers = static_cast<int>(model.layers.size());
        auto const step = random_step(small, 3);
        auto const in_64 = run_step(model, step, {.cuts = {0, layers}, .prepare = one_scale});
        host_backend backend{2, fp32_i32};
        auto const whole = run_step(model, step, {.cuts = {0, layers}, .backend = &backend, .prepare = one_scale});
        REQUIRE(whole.uses.size() == in_64.uses.size());
        CHECK(whole.loss == in_64.loss);
        for (std::size_t u = 0; u < whole.uses.size(); ++u) {
            CHECK(whole.uses[u].sums == in_64.uses[u].sums);
            CHECK(whole.uses[u].state.max_abs == in_64.uses[u].state.max_abs);
            CHECK_FALSE((whole.uses[u].state.overflow || whole.uses[u].state.not_finite || whole.uses[u].rows.empty()));
        }
        for (auto const how : {backwards::whole, backwards::split, backwards::split_late, backwards::recomputed}) {
            CHECK(run_step(model, step, {.cuts = {0, 1, 2, layers}, .how = how, .backend = &backend, .prepare = one_scale}) == whole);
        }
    }
}

TEST_CASE("row_sums: error within half a unit per contribution")
{
    auto const model = fused(gpt_model(small));
    auto const layers = static_cast<int>(model.layers.size());
    auto const step = random_step(small, 3);
    auto const in_64 = run_step(model, step, {.cuts = {0, layers}, .times = 2, .chooses = true});
    host_backend backend{1, fp32_i32};
    auto const in_32 = run_step(model, step, {.cuts = {0, layers}, .backend = &backend, .times = 2, .chooses = true});
    auto const info = state_of(model);
    auto const tied = [&](std::size_t u) { return info.tensors[at(info.uses[u].tensor)].uses.size() > 1; };
    REQUIRE(in_32.uses.size() + 1 == info.uses.size());  // the loss is the last
    for (std::size_t u = 0; u < in_32.uses.size(); ++u) {
        auto const& a = in_32.uses[u];
        auto const& b = in_64.uses[u];
        auto const width = a.sums.size() / a.rows.size();
        REQUIRE_FALSE(a.state.overflow);
        for (std::size_t i = 0; i < a.sums.size(); ++i) {
            auto const unit = std::ldexp(1.0, -a.rows[i / width].scale_log2);
            auto const other = std::ldexp(1.0, -b.state.scale_log2);
            auto const difference = std::fabs(static_cast<double>(a.sums[i]) * unit - static_cast<double>(b.sums[i]) * other);
            REQUIRE(difference <= 3 * 0.5 * (unit + other));
        }
        for (auto const& row : a.rows) {  // and what has one use spends its bits: eight of room, the rest on the largest
            REQUIRE((row.max_abs == 0 || tied(u) || std::ldexp(row.max_abs, row.scale_log2) >= std::ldexp(1.0, row_bound_log2(3) - 9)));
        }
    }
}

TEST_CASE("row_sums: the verdict reports overflow and NaN")
{
    auto const model = fused(gpt_model(small));
    auto const layers = static_cast<int>(model.layers.size());
    auto const step = random_step(small, 1);
    host_backend backend{1, fp32_i32};
    auto const narrow =
        run_step(model, step,
                 {.cuts = {0, layers}, .backend = &backend, .prepare = [](resident_state& state) { std::fill(state.scales.begin(), state.scales.end(), 60); }});
    CHECK(narrow.uses.front().state.overflow);
    auto const sick =
        run_step(model, step,
                 {.cuts = {0, layers}, .backend = &backend, .prepare = [](resident_state& state) { state.tensor(tensor_id{2}).parameter.floats()[0] = NAN; }});
    CHECK(std::any_of(sick.uses.begin(), sick.uses.end(), [](auto const& use) { return use.state.not_finite; }));
}

TEST_CASE("row_sums: bytes match the plan; scales by row")
{
    auto const info = state_of(fused(gpt_model(small)));
    host_backend backend{1, fp32_i32};
    resident_state state{info, backend};
    std::size_t scales = 0;
    std::int64_t rows_of_uses = 0;
    for (tensor_id t{0}; at(t) < info.tensors.size(); ++t) {
        auto const& tensor = info.tensors[at(t)];
        CHECK(state.first_scale(t) == scales);
        scales += state.scales_of(t).size();
        if (!tensor.is_parameter) {
            CHECK(state.scales_of(t).size() == 1);
            continue;
        }
        CHECK(state.scales_of(t).size() == static_cast<std::size_t>(tensor.shape.rows));
        for (auto const use : tensor.uses) {
            auto const& sums = state.accumulator(use);
            auto const measured = static_cast<std::int64_t>(sums.sums.size() * sizeof(std::int64_t) + sums.sums_in_32.size() * sizeof(std::int32_t) +
                                                            sums.rows.size() * sizeof(row_sum_state));
            CHECK(measured == parameter_bytes_of(tensor.shape, fp32_i32).accumulators.count);
            CHECK(bytes{measured} == state.accumulator_size(t));
            rows_of_uses += tensor.shape.rows;
        }
    }
    CHECK(scales == state.scales.size());

    auto const model = fused(gpt_model(small));
    layer_span const all[] = {{layer_id{0}, layer_id{static_cast<int>(model.layers.size())}}};
    std::int64_t measured = 0;
    for (auto const& use : info.uses) {
        measured += info.tensors[at(use.tensor)].is_parameter ? state.accumulator_size(use.tensor).count : 0;
    }
    auto const planned = state_parts(model, all, terms_of_ranks(batch, fp32_i32, 1));
    CHECK(planned.accumulators.count == measured);
    constexpr std::int64_t table = small.vocabulary * small.width;
    CHECK(planned.reduced == bytes{4 * table} + reduction_buffer_bytes(table, dtype::i32));  // of the tied tensor alone
    CHECK(state_parts(model, all, terms_of_ranks(batch, fp32, 1)).accumulators.count == 2 * (measured - 8 * rows_of_uses));
}

TEST_CASE("row_sums: next scales are per row; empty rows keep")
{
    auto const info = state_of(fused(gpt_model(small)));
    host_backend backend{1, fp32_i32};
    resident_state state{info, backend};
    state.begin_scales(4);
    auto const before = state.scales;
    std::vector<float> largest(state.scales.size());
    largest[1] = 3.0F;
    state.choose_scales(largest, 4);
    auto const uses = static_cast<int>(info.tensors[0].uses.size());
    CHECK(state.scales[1] == next_row_scale(3.0F, 4 * uses, 0));
    CHECK(state.scales[0] == before[0]);
    CHECK(std::equal(before.begin() + 2, before.end(), state.scales.begin() + 2));
}

TEST_CASE("row_sums: moved accumulators join exactly")
{
    auto const info = state_of(fused(gpt_model(small)));
    host_backend backend{1, fp32_i32};
    resident_state here{info, backend}, there{info, backend}, both{info, backend};
    for (auto* state : {&here, &there, &both}) {
        one_scale(*state);
    }
    auto const t = info.uses[0].tensor;
    auto const add = [&](resident_state& to, float value) {
        auto& sums = to.accumulator(use_id{0});
        gradient_sum_of<dtype::i32> const target{
            .sums = sums.sums_in_32.data(), .states = sums.rows.data(), .width = info.tensors[at(t)].shape.columns, .contributions = 4};
        for (std::int64_t i = 0; i < elements(info.tensors[at(t)].shape); ++i) {
            definition::contribute(target, i, value * static_cast<float>(i % 29));
        }
    };
    add(here, 0.5F);
    add(there, -0.75F);
    add(both, 0.5F);
    add(both, -0.75F);
    here.merge(use_id{0}, there.accumulator(use_id{0}));
    CHECK(here.accumulator(use_id{0}).sums_in_32 == both.accumulator(use_id{0}).sums_in_32);
    CHECK(here.accumulator(use_id{0}).rows == both.accumulator(use_id{0}).rows);
}
