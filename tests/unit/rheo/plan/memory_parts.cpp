// SPDX-License-Identifier: Apache-2.0
// The memory of a rank against the collection of the job's state, and against a replay of its row that holds and gives back piece by piece.
#include "rheo/plan/memory_parts.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "rheo/model/grid.hpp"
#include "rheo/model/state.hpp"
#include "rheo/plan/rank_memory.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/schedule/families/families.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr gpt_shape small{.vocabulary = 48, .context = 16, .width = 16, .heads = 2, .blocks = 4, .tied = true};
constexpr microbatch_shape shape{.sequences = 2, .tokens = 16};

/// The pipeline of a program: stages of as many layers as can be, the rest in the first.
pipeline_instance pipeline_for(program const& p, int layers)
{
    auto const chain = stages_per_copy(p);
    pipeline_instance result{{layer_id{0}}, {}};
    for (int s = 1; s <= chain; ++s) {
        result.cuts.push_back(layer_id{layers - (chain - s) * (layers / chain)});
    }
    for (auto const position : p.placement) {
        result.stages.push_back({rank_id{position}});
    }
    return result;
}

/// What a rank holds by the collection: tensors once, accumulators by use.
bytes state_by_collection(model_description const& model, std::vector<layer_span> const& held, memory_terms const& terms)
{
    auto const state = state_of(model);
    auto const units = reduction_units(state, static_cast<int>(model.layers.size()));
    auto const in_place = [&](tensor_info const& tensor) {
        auto const is_it = [&](tensor_id t) { return &state.tensors[at(t)] == &tensor; };
        auto const unit = std::find_if(units.begin(), units.end(), [&](auto const& u) { return std::any_of(u.tensors.begin(), u.tensors.end(), is_it); });
        return std::all_of(unit->tensors.begin(), unit->tensors.end(), [&](tensor_id t) { return state.tensors[at(t)].uses.size() == 1; });
    };
    bytes sum;
    for (auto const& tensor : state.tensors) {
        int here = 0;
        for (auto const use : tensor.uses) {
            here += std::any_of(held.begin(), held.end(), [&](layer_span span) { return contains(span, state.uses[at(use)].layer); });
        }
        if (here > 0 && tensor.is_parameter) {
            bool const joined = terms.pipelines > 1 || tensor.uses.size() > 1;
            auto const alone = in_place(tensor) ? terms.alone : gradient_buffer::reduced;
            sum += total(parameter_bytes_of(tensor.shape, terms.policy, joined ? gradient_buffer::joined : alone, here));
        }
    }
    return sum;
}

/// The most that a row holds, piece by piece: each item of a stage as the sum of what its layers keep, gradients apart.
held_peak most_held(model_description const& model, pipeline_instance const& pipeline, program const& p, int position, memory_terms const& terms,
                    std::vector<recompute_level> const& recompute_levels)
{
    std::map<std::pair<int, int>, held_peak> held;
    held_peak most;
    for (auto const& i : p.rows[static_cast<std::size_t>(position)]) {
        auto const span = layers_of(pipeline, stage_of(i));
        auto const layers = array_view{model.layers}.subspan(at(span.begin), static_cast<std::size_t>(size(span)));
        auto& mine = held[{i.stage, i.item}];
        switch (i.kind) {
        case instruction_kind::forward:
            mine.activations = activation_bytes(layers, terms.shape, terms.policy);
            for (auto l = span.begin; l < span.end; ++l) {
                mine.activations -= dropped_bytes(model.layers[at(l)], terms.shape, recompute_levels[at(l)], terms.policy);
            }
            break;
        case instruction_kind::input_gradient: mine.gradients = kept_gradient_bytes(layers, terms.shape, terms.policy); break;
        case instruction_kind::backward:
        case instruction_kind::weight_gradient: mine = {}; break;
        default: break;
        }
        held_peak sum;
        for (auto const& [key, size] : held) {
            sum += size;
        }
        most = most < sum ? sum : most;
    }
    return most;
}

constexpr model_description both_ends() { return gpt_model(small); }

// A tied table with both its ends on the rank: one tensor, two accumulators, and always buffers.
constexpr bool counts_a_tie()
{
    auto const model = both_ends();
    std::vector<layer_span> const all{{layer_id{0}, layer_id{6}}};
    std::vector<layer_span> const first{{layer_id{0}, layer_id{1}}};
    constexpr memory_terms terms{.shape = shape, .policy = bf16};
    constexpr std::int64_t table = 48 * 16;
    constexpr std::int64_t places = 16 * 16;
    auto const parts = state_parts(model, first, terms);
    std::int64_t count = 0;
    for (auto const& layer : model.layers) {
        count += parameter_count(layer);
    }
    return parts.accumulators == bytes{8 * (table + places)} && parts.reduced == bytes{4 * table} + kibibytes(8) &&
           state_parts(model, all, terms).reduced == parts.reduced && state_parts(model, all, terms).master == bytes{4 * (count - table)} &&
           state_parts(model, all, terms).accumulators == bytes{8 * count};
}
static_assert(counts_a_tie());

// Host ranks have a gradient buffer for everything, and with several holders one more for each tensor (each of a block's is small here).
constexpr bool counts_what_sums_are_joined_in()
{
    std::vector<layer_span> const block{{layer_id{1}, layer_id{2}}};
    auto one = state_parts(both_ends(), block, terms_of_ranks(shape, fp32, 1));
    one.reduced += kibibytes(8) * static_cast<std::int64_t>(both_ends().layers[1].parameters.size());
    return one == state_parts(both_ends(), block, {.shape = shape, .pipelines = 2});
}
static_assert(counts_what_sums_are_joined_in());
static_assert(reduction_buffer_bytes(1 << 18, dtype::i64) == kibibytes(256) && reduction_buffer_bytes(1 << 18, dtype::i32) == kibibytes(128) &&
              reduction_buffer_bytes(1 << 26, dtype::i64) == mebibytes(4));

constexpr bool counts_copies_of_the_model()
{
    plan p;
    p.pipelines.push_back({{layer_id{0}, layer_id{3}, layer_id{6}}, {{rank_id{0}}, {rank_id{1}}}});
    auto const one = memory_terms_of(p, shape, fp32_i32).pipelines;
    p.pipelines.front().stages.push_back({rank_id{1}});  // a second copy, in the other direction
    p.pipelines.front().stages.push_back({rank_id{0}});
    return one == 1 && memory_terms_of(p, shape, fp32_i32).pipelines == 2;
}
static_assert(counts_copies_of_the_model());

}  // namespace

TEST_CASE("memory_parts: state and activations match a replay")
{
    auto const model = fused(gpt_model(small));
    std::vector<recompute_level> const mixed{recompute_level::none, recompute_level::cheap, recompute_level::none,
                                             recompute_level::full, recompute_level::cheap, recompute_level::full};
    std::vector<recompute_level> const none(6, recompute_level::none);
    int tried = 0;
    bool gradients = false;
    for (auto const name : {"gpipe", "1f1b", "zb-h1", "zb-h2", "interleaved", "zb-v", "chimera", "dualpipe", "bitpipe", "hanayo"}) {
        auto const found = parse_schedule(name);
        REQUIRE(found);
        for (int const ranks : {1, 2, 3}) {
            schedule_shape const asked{.ranks = ranks, .microbatches = 6};
            if (error_of(*found, asked) != shape_error::none) {
                continue;
            }
            auto const p = make_program(*found, asked);
            if (stages_per_copy(p) > 6) {
                continue;
            }
            auto const pipeline = pipeline_for(p, 6);
            for (auto const& terms : {terms_of_ranks(shape, fp32, 2), memory_terms{.shape = shape, .policy = bf16},
                                      memory_terms{.shape = shape, .policy = bf16_i32, .kernels = {1000}}}) {
                for (int position = 0; position < ranks; ++position) {
                    auto const spans = layers_at(pipeline.cuts, placement_of(p), position);
                    for (auto const& recompute_levels : {none, mixed}) {
                        auto const parts = parts_at(model, pipeline, p, position, terms, recompute_levels);
                        CHECK(total(parts.state) == state_by_collection(model, spans, terms));
                        CHECK(held_peak{parts.activations, parts.kept_gradients} == most_held(model, pipeline, p, position, terms, recompute_levels));
                        gradients = gradients || parts.kept_gradients > bytes{};
                        bytes sum;
                        for (auto const& part : named_parts(parts)) {
                            sum += part.size;
                            CHECK(part.size <= largest_of(parts).size);
                        }
                        CHECK(sum == total(parts));
                        bytes region;
                        for (auto const span : spans) {
                            for (auto l = span.begin; l < span.end; ++l) {
                                region = std::max(region, dropped_bytes(model.layers[at(l)], shape, recompute_levels[at(l)], terms.policy));
                            }
                        }
                        CHECK(parts.recompute_buffer == region * (has_overlap(p, position) ? 2 : 1));
                        CHECK(parts.workspace >= terms.kernels);
                        ++tried;
                    }
                    CHECK(parts_at(model, pipeline, p, position, terms) == parts_at(model, pipeline, p, position, terms, none));
                }
            }
        }
    }
    CHECK(tried > 200);
    CHECK(gradients);
}

TEST_CASE("memory_parts: state on a grid is that of its collection")
{
    constexpr llama_shape grouped{.vocabulary = 83, .context = 16, .width = 64, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 96};
    constexpr gpt_shape wide{.vocabulary = 83, .context = 16, .width = 64, .heads = 4, .blocks = 2, .tied = true};
    for (int const grid : {2, 4}) {
        for (auto const& model : {on_grid(fused(gpt_model(wide)), grid), on_grid(fused(llama_model(grouped)), grid)}) {
            for (auto const& terms :
                 {terms_of_ranks(shape, fp32, 2), memory_terms{.shape = shape, .policy = bf16}, memory_terms{.shape = shape, .policy = bf16_i32}}) {
                for (int first = 0; first < 4; ++first) {
                    for (int last = first + 1; last <= 4; ++last) {
                        std::vector<layer_span> const held{{layer_id{first}, layer_id{last}}};
                        CHECK(total(state_parts(model, held, terms)) == state_by_collection(model, held, terms));
                    }
                }
                std::vector<layer_span> const ends{{layer_id{0}, layer_id{1}}, {layer_id{3}, layer_id{4}}};
                CHECK(total(state_parts(model, ends, terms)) == state_by_collection(model, ends, terms));
            }
        }
    }
}
