// SPDX-License-Identifier: Apache-2.0
// What planning has room for is what ranks hold: memory by the prices of stages against the memory of each rank of the plan, to the byte.
#include "rheo/plan/layer_memory.hpp"

#include <random>

#include "rheo/model/gpt.hpp"
#include "rheo/model/llama.hpp"
#include "rheo/partition/optimal_makespan.hpp"
#include "rheo/partition/split_memory.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/recomputation.hpp"
#include "rheo/schedule/transform/slices.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr gpt_shape small{.vocabulary = 40, .context = 16, .width = 24, .heads = 2, .blocks = 6, .tied = true};
constexpr modelled_link link{microseconds(1), {1e9}};

stage_prices prices_of(model_description const& model, memory_terms const& terms, recompute_level most)
{
    std::vector<layer_profile> layers(model.layers.size());
    for (std::size_t l = 0; l < layers.size(); ++l) {
        layers[l].forward = microseconds(1);
        layers[l].backward = microseconds(2);
        layers[l].boundary = boundary_bytes(model.layers[l], terms.shape, terms.policy) * terms.shape.slices;
    }
    set_memory(layers, model, terms, most);
    return make_stage_prices(layers, link);
}

bytes of_rank(model_description const& model, pipeline_instance const& pipeline, program const& p, int position, memory_terms const& terms,
              recompute_level most)
{
    std::vector<recompute_level> const recompute_levels(model.layers.size(), most);
    auto const parts = parts_at(model, pipeline, p, position, terms, recompute_levels);
    return total(parts) - parts.workspace;
}

}  // namespace

TEST_CASE("layer_memory: priced at what ranks hold, in all modes")
{
    std::mt19937 draw{11};
    int tried = 0;
    bool gradients = false;
    bool ties = false;
    for (auto const& model : {fused(gpt_model(small)), llama_model({.blocks = 6})}) {
        auto const layers = static_cast<int>(model.layers.size());
        for (auto const family : schedule_families()) {
            for (int const slices : {1, 2}) {
                for (int const ranks : {1, 2, 4}) {
                    microbatch_shape const shape{.sequences = 2, .tokens = 16, .slices = slices};
                    auto const asked = on_slices(family, {.ranks = ranks, .microbatches = 8}, slices);
                    if (error_of(family, asked) != shape_error::none) {
                        continue;
                    }
                    auto const whole = with_slices(make_program(family, asked), slices);
                    auto const chain = stages_per_copy(whole);
                    if (chain > layers) {
                        continue;
                    }
                    pipeline_instance pipeline{{layer_id{0}}, {}};
                    for (int s = 1; s < chain; ++s) {
                        auto const room = layers - pipeline.cuts.back().value - (chain - s);
                        pipeline.cuts.push_back(layer_id{pipeline.cuts.back().value + 1 + static_cast<int>(draw() % static_cast<unsigned>(std::min(room, 3)))});
                    }
                    pipeline.cuts.push_back(layer_id{layers});
                    for (auto const position : whole.placement) {
                        pipeline.stages.push_back({rank_id{position}});
                    }
                    std::vector<int> const devices(static_cast<std::size_t>(chain), 1);
                    for (auto const& terms : {terms_of_ranks(shape, fp32, 2), terms_of_ranks(shape, bf16, 1), terms_of_ranks(shape, bf16_i32, 1)}) {
                        for (auto const most : {recompute_level::none, recompute_level::cheap, recompute_level::full}) {
                            if (most == recompute_level::full && slices > 1) {
                                continue;
                            }
                            auto const prices = prices_of(model, terms, most);
                            for (bool const evicts : {false, true}) {
                                if (evicts && (slices > 1 || most != recompute_level::none)) {
                                    continue;
                                }
                                auto const p = evicts ? with_recomputation(whole) : whole;
                                auto const held = memory_by_rank(prices, p, pipeline.cuts, devices);
                                for (int position = 0; position < ranks; ++position) {
                                    CAPTURE(name_of(family), ranks, slices, position, evicts, name_of(most));
                                    auto const exact = of_rank(model, pipeline, p, position, terms, most);
                                    REQUIRE(held[static_cast<std::size_t>(position)] == exact);
                                    ++tried;
                                }
                            }
                            gradients = gradients || prices.kept_gradients({layer_id{0}, layer_id{layers}}) > bytes{};
                            ties = ties || !prices.ties.empty();
                        }
                    }
                }
            }
        }
    }
    CHECK(tried > 1000);
    CHECK(gradients);
    CHECK(ties);
}

TEST_CASE("layer_memory: search fits exactly the memory needed")
{
    auto const model = fused(gpt_model(small));
    microbatch_shape const shape{.sequences = 2, .tokens = 16};
    auto const prices = prices_of(model, terms_of_ranks(shape, fp32, 2), recompute_level::none);
    for (auto const family : schedule_families()) {
        for (int const ranks : {1, 2}) {
            auto const asked = on_slices(family, {.ranks = ranks, .microbatches = 4}, 1);
            if (error_of(family, asked) != shape_error::none || stages_per_copy(make_program(family, asked)) > prices.layers()) {
                continue;
            }
            for (bool const recompute : {false, true}) {
                auto const kept = make_program(family, asked);
                auto const p = recompute ? with_recomputation(kept) : kept;
                auto const chain = stages_per_copy(p);
                bytes least{std::int64_t{1} << 60};
                std::vector<layer_id> cuts{layer_id{0}};
                std::vector<int> const devices(static_cast<std::size_t>(chain), 1);
                auto const visit = [&](auto const& recompute_levels) -> void {  // all cuts
                    if (static_cast<int>(cuts.size()) == chain + 1 && cuts.back().value == prices.layers()) {
                        least = std::min(least, fullest_device(prices, p, cuts, devices));
                    }
                    for (int next = cuts.back().value + 1; next <= prices.layers() && static_cast<int>(cuts.size()) <= chain; ++next) {
                        cuts.push_back(layer_id{next});
                        recompute_levels(recompute_levels);
                        cuts.pop_back();
                    }
                };
                visit(visit);
                CAPTURE(name_of(family), ranks, recompute);
                auto const within = [&](bytes memory) {
                    return optimal_makespan(
                        prices, {.schedule = family, .nodes = ranks, .microbatches = 4, .device_memory = memory, .slices = 1, .recompute = recompute});
                };
                auto const found = within(least);
                REQUIRE(found);
                CHECK(fullest_device(prices, p, found->cuts, found->devices) == least);
                CHECK_FALSE(within(least - bytes{1}));
            }
        }
    }
}
