// SPDX-License-Identifier: Apache-2.0
// What fits a device and with how little recomputed: against all choices of layers on small models, and a model of 7 billion
// parameters on one device by the compiler.
#include "rheo/plan/memory_plan.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/slices.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr llama_shape seven_billion{.vocabulary = 32000, .context = 4096, .width = 4096, .heads = 32, .kv_heads = 32, .blocks = 32, .mlp_width = 11008};

/// One pipeline of one rank, a device of 139 GiB of which kernels have one; microbatches of so many sequences of 4096 tokens.
constexpr memory_plan on_one_device(int sequences, dtype_policy const& policy, gradient_buffer alone = gradient_buffer::none)
{
    auto const model = fused(llama_model(seven_billion));
    pipeline_instance const pipeline{{layer_id{0}, layer_id{34}}, {{rank_id{0}}}};
    memory_terms const terms{.shape = {sequences, 4096}, .policy = policy, .alone = alone, .kernels = gibibytes(1)};
    return plan_memory(model, pipeline, one_f_one_b::program({.ranks = 1, .microbatches = 4}), 0, terms, gibibytes(139));
}

// 6,738,415,616 parameters. With sums in 32 bits 18 bytes each, and 8 a row: 112.97 GiB; the activations of 4096 tokens are 18.39 GiB, the backward
// works in 1.08 GiB: 133.44 GiB of 139 with nothing recomputed.
constexpr bool fits_as_it_is()
{
    auto const plan = on_one_device(1, bf16_i32);
    std::int64_t const parameters = plan.parts.state.master.count / 4;
    auto const state = total(plan.parts.state).count;
    return plan.fits() && plan.recomputed_now == flops{} && parameters == 6'738'415'616 &&
           state - 18 * parameters == plan.parts.state.accumulators.count - 4 * parameters && state - 18 * parameters < parameters / 1000;
}
static_assert(fits_as_it_is());

// 16384 tokens at once fit, too: 23 of 32 blocks are recomputed and 9 drop what is cheap; a quarter is recomputed. 138.48 GiB.
constexpr bool fits_with_some_recomputed()
{
    auto const plan = on_one_device(4, bf16_i32);
    return plan.fits() && layers_at_level(plan, recompute_level::full) == 23 && layers_at_level(plan, recompute_level::cheap) == 9 &&
           plan.recomputed_now * 4 < plan.computed;
}
static_assert(fits_with_some_recomputed());

// With sums in 64 bits it does not: 22 bytes are 138.06 GiB before anything flows, with a buffer for reduced gradients 26, 163.17 GiB, and
// with full recomputation 166.82 GiB are needed.
static_assert(!on_one_device(1, bf16));
static_assert(!on_one_device(1, bf16, gradient_buffer::reduced));

/// Small models whose layers differ: widths of blocks are one, but embedding, blocks and classifier drop different amounts.
constexpr gpt_shape small{.vocabulary = 100, .context = 8, .width = 8, .heads = 2, .blocks = 4};
constexpr microbatch_shape shape{.sequences = 2, .tokens = 8};

model_description different_layers()
{
    auto model = gpt_model(small);
    for (std::size_t l = 1; l < 5; ++l) {  // wider and wider inside
        add_slot(model.layers[l], static_cast<int>(8 * l * l));
        add_op(model.layers[l], {.kind = l % 2 == 0 ? op_kind::gelu : op_kind::linear,
                                 .x = {0, no_slot},
                                 .z = {static_cast<int>(model.layers[l].slot_widths.size()) - 1, no_slot},
                                 .in_width = 8,
                                 .out_width = static_cast<int>(8 * l * l)});
    }
    return model;
}

struct fewest {
    int cheap = 0;
    int all = 0;
};

/// By trying everything: no layers at all, else the fewest that drop what is cheap, else the fewest that are recomputed as a whole while all others drop what is cheap.
std::optional<fewest> by_trying(model_description const& model, pipeline_instance const& pipeline, program const& p, int position, memory_terms const& terms,
                                bytes available)
{
    std::vector<std::size_t> mine;
    for (auto const span : layers_at(pipeline.cuts, placement_of(p), position)) {
        for (auto l = span.begin; l < span.end; ++l) {
            mine.push_back(at(l));
        }
    }
    for (bool const whole : {false, true}) {
        std::optional<fewest> best;
        for (unsigned marks = 0; marks < 1U << mine.size(); ++marks) {
            std::vector<recompute_level> recompute_levels(model.layers.size(), recompute_level::none);
            fewest count;
            for (std::size_t i = 0; i < mine.size(); ++i) {
                bool const marked = (marks >> i & 1U) != 0;
                recompute_levels[mine[i]] = marked  ? (whole ? recompute_level::full : recompute_level::cheap)
                                            : whole ? recompute_level::cheap
                                                    : recompute_level::none;
                (whole ? count.all : count.cheap) += marked;
            }
            bool const fits = total(parts_at(model, pipeline, p, position, terms, recompute_levels)) <= available;
            if (fits && (!best || (whole ? count.all < best->all : count.cheap < best->cheap))) {
                best = count;
            }
        }
        if (best) {
            return best;
        }
    }
    return std::nullopt;
}

void compare_with_trying(model_description const& model, pipeline_instance const& pipeline, program const& p, memory_terms const& terms)
{
    for (int position = 0; position < static_cast<int>(p.rows.size()); ++position) {
        std::vector<recompute_level> const everything(model.layers.size(), recompute_level::full);
        auto const most = total(parts_at(model, pipeline, p, position, terms)).count;
        auto const least = std::min(most, total(parts_at(model, pipeline, p, position, terms, everything)).count);
        for (int part = -1; part <= 16; ++part) {
            bytes const available{least + (most - least) * part / 16};
            INFO("position " << position << ", part " << part);
            auto const plan = plan_memory(model, pipeline, p, position, terms, available);
            auto const best = by_trying(model, pipeline, p, position, terms, available);
            CHECK(plan.parts == parts_at(model, pipeline, p, position, terms, plan.recompute_levels));
            REQUIRE(plan.fits() == best.has_value());
            if (best) {
                CHECK(layers_at_level(plan, recompute_level::full) == best->all);
                if (best->all == 0) {
                    CHECK(layers_at_level(plan, recompute_level::cheap) == best->cheap);
                }
                for (auto recompute_levels = plan.recompute_levels; auto& how : recompute_levels) {  // none of the cheap ones can be left out
                    if (how == recompute_level::cheap) {
                        how = recompute_level::none;
                        CHECK(total(parts_at(model, pipeline, p, position, terms, recompute_levels)) > available);
                        how = recompute_level::cheap;
                    }
                }
                CHECK((part < 16 || plan.recomputed_now == flops{}));
            }
        }
    }
}

}  // namespace

TEST_CASE("memory_plan: fewest recomputed layers, all modes")
{
    for (auto const& model : {fused(gpt_model(small)), different_layers(), llama_model({.blocks = 4})}) {
        for (auto const& policy : {fp32, bf16_i32}) {
            memory_terms const terms{.shape = shape, .policy = policy};
            compare_with_trying(model, {{layer_id{0}, layer_id{6}}, {{rank_id{0}}}}, one_f_one_b::program({.ranks = 1, .microbatches = 3}), terms);
            compare_with_trying(model, {{layer_id{0}, layer_id{3}, layer_id{6}}, {{rank_id{0}}, {rank_id{1}}}},
                                one_f_one_b::program({.ranks = 2, .microbatches = 4}), terms);
            compare_with_trying(model, {{layer_id{0}, layer_id{4}, layer_id{6}}, {{rank_id{0}}, {rank_id{1}}}}, zb_h1::program({.ranks = 2, .microbatches = 4}),
                                terms);
        }
    }
}

TEST_CASE("memory_plan: chunks: fits when possible, no waste")
{
    auto const model = fused(gpt_model({.vocabulary = 100, .context = 8, .width = 8, .heads = 2, .blocks = 6}));
    auto const p = interleaved::program({.ranks = 2, .microbatches = 4, .chunks = 2});
    pipeline_instance const pipeline{{layer_id{0}, layer_id{2}, layer_id{4}, layer_id{6}, layer_id{8}},
                                     {{rank_id{0}}, {rank_id{1}}, {rank_id{0}}, {rank_id{1}}}};
    memory_terms const terms{.shape = shape, .policy = bf16};
    int partly = 0;
    for (int position = 0; position < 2; ++position) {
        auto const most = total(parts_at(model, pipeline, p, position, terms)).count;
        auto const least = total(parts_at(model, pipeline, p, position, terms, std::vector<recompute_level>(8, recompute_level::full))).count;
        for (int part = 0; part <= 16; ++part) {
            bytes const available{least + (most - least) * part / 16};
            auto const plan = plan_memory(model, pipeline, p, position, terms, available);
            auto const best = by_trying(model, pipeline, p, position, terms, available);
            REQUIRE(plan.fits() == best.has_value());
            for (std::size_t l = 0; l < 8; ++l) {
                bool const mine = contains(layers_at(pipeline.cuts, placement_of(p), position), layer_id{static_cast<int>(l)});
                CHECK((mine || plan.recompute_levels[l] == recompute_level::none));
                auto less = plan.recompute_levels;
                less[l] = recompute_level::none;
                if (plan.recompute_levels[l] == recompute_level::cheap) {
                    CHECK(total(parts_at(model, pipeline, p, position, terms, less)) > available);
                    ++partly;
                }
            }
        }
    }
    CHECK(partly > 0);
}

TEST_CASE("memory_plan: slices never recompute layers; split: twice")
{
    auto const model = gpt_model(small);
    pipeline_instance const pipeline{{layer_id{0}, layer_id{6}}, {{rank_id{0}}}};
    auto const sliced = with_slices(one_f_one_b::program({.ranks = 1, .microbatches = 3}), 2);
    memory_terms const terms{.shape = {.sequences = 2, .tokens = 8, .slices = 2}};
    auto const plan = plan_memory(model, pipeline, sliced, 0, terms, bytes{1});
    CHECK_FALSE(plan.fits());
    CHECK(layers_at_level(plan, recompute_level::full) == 0);
    CHECK(layers_at_level(plan, recompute_level::cheap) > 0);
    CHECK(total(plan.parts) < total(parts_at(model, pipeline, sliced, 0, terms)));

    auto const whole = plan_memory(model, pipeline, one_f_one_b::program({.ranks = 1, .microbatches = 3}), 0, {.shape = shape}, bytes{1});
    auto const split = plan_memory(model, pipeline, zb_h1::program({.ranks = 1, .microbatches = 3}), 0, {.shape = shape}, bytes{1});
    CHECK(split.recomputed_now == whole.recomputed_now * 2);
    CHECK(whole.recomputed_now > flops{});
}

TEST_CASE("memory_plan: error names device, sizes, largest part")
{
    auto plan = on_one_device(1, bf16, gradient_buffer::reduced);
    CHECK(message_of(plan, "a device") ==
          "a device has 139.00 GiB, but 166.82 GiB are needed with full recomputation; the largest part is 50.21 GiB of moments");
    plan = {.parts = {.activations = mebibytes(3), .workspace = {1 << 19}}, .available = mebibytes(2)};
    CHECK(message_of(plan, "rank 3") == "rank 3 has 2.00 MiB, but 3.50 MiB are needed; the largest part is 3.00 MiB of activations");
    plan.available = mebibytes(4);
    CHECK_THROWS_AS(message_of(plan, "rank 3"), precondition_error);
}
