#pragma once
// SPDX-License-Identifier: Apache-2.0

// Steps of a small model through stages at work, cut, threaded and ordered as a test asks: what every test of the
// stage compares.

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "executor/host/stage.hpp"
#include "reference_gpt.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"

namespace stage_steps {

using namespace rheo;

inline constexpr gpt_shape small{.vocabulary = 37, .context = 12, .width = 24, .heads = 3, .blocks = 2};
inline constexpr microbatch_shape batch{.sequences = 2, .tokens = 9};
inline constexpr std::uint64_t seed = 20;
inline constexpr int first_scale = 34;  // of all sums: gradients here stay far below 2^(51 - 34)

inline std::vector<reference::microbatch> random_step(gpt_shape shape, int count)
{
    std::mt19937 draw{77};
    std::vector<reference::microbatch> step(static_cast<std::size_t>(count));
    for (auto& m : step) {
        for (int i = 0; i < rows(batch); ++i) {
            m.tokens.push_back(static_cast<std::int32_t>(draw() % static_cast<unsigned>(shape.vocabulary)));
            m.targets.push_back(static_cast<std::int32_t>(draw() % static_cast<unsigned>(shape.vocabulary)));
        }
    }
    step[0].targets[3] = -1;
    return step;
}

struct use_result {
    std::vector<std::int64_t> sums;  ///< of 32 bits too
    accumulator_state state;
    std::vector<row_sum_state> rows;  ///< of those

    friend bool operator==(use_result const&, use_result const&) = default;
};

inline use_result result_of(resident_state& state, use_id use)
{
    auto const& from = state.accumulator(use);
    if (!from.rows.empty()) {
        auto const sums = copied_from(state.backend(), from.sums_in_32.data(), from.sums_in_32.size());
        auto const rows = state.rows_of_all()[at(use)];
        return {{sums.begin(), sums.end()}, from.state, {rows.begin(), rows.end()}};
    }
    return {copied_from(state.backend(), from.sums.data(), from.sums.size()), from.state, {}};
}

/// All that a step leaves: what each use has summed, the loss, and the logits of the last microbatch.
struct step_result {
    std::vector<use_result> uses;
    loss_sum loss;
    std::vector<float> logits;
    std::vector<std::vector<std::vector<float>>> input_gradients;  ///< item, stage; not compared
    std::vector<bytes> peaks;                                      ///< stage -> most bytes of activations held; not compared

    friend bool operator==(step_result const& a, step_result const& b) { return a.uses == b.uses && a.loss == b.loss && a.logits == b.logits; }
};

/// How a microbatch's backward is done.
enum class backwards {
    whole,
    split,            ///< the two halves one after the other
    split_late,       ///< all microbatches forward, then all input gradients, then all weight gradients, the last microbatch first
    recomputed,       ///< all microbatches forward and evicted, then each recomputed and whole
    recomputed_split  ///< the same with split_late
};

struct options {
    std::vector<int> cuts;
    int threads = 1;
    bool training = true;
    std::vector<layer_id> lowest{};  ///< per microbatch; empty: all of the backward
    std::optional<use_id> only{};    ///< the one use that contributes; none: all
    bool backward = true;
    backwards how = backwards::whole;
    int slices = 1;                                   ///< of each microbatch
    compute_backend* backend = nullptr;               ///< none: the host, with `threads`
    bool stage_by_stage = false;                      ///< all slices of a microbatch on a stage before the next stage has one
    int times = 1;                                    ///< the whole step again, on cleared accumulators
    bool chooses = false;                             ///< before that, scales as after an attempt
    void (*prepare)(resident_state&) = nullptr;       ///< changes what each stage begins with
    std::vector<recompute_level> recompute_levels{};  ///< of each layer of the model; none: nothing
    shard_group group{};                              ///< of all stages
    group_exchange* exchange = nullptr;               ///< between its members
};

/// The largest |g| of what all uses of a state have summed, by scale.
inline std::vector<float> largest_of(resident_state& state)
{
    std::vector<float> largest(state.scales.size());
    auto const all_rows = state.rows_of_all();
    for (std::size_t u = 0; u < state.info().uses.size(); ++u) {
        use_id const use{static_cast<int>(u)};
        if (!state.has_accumulator(use)) {
            continue;
        }
        auto const& sums = state.accumulator(use);
        auto* const first = largest.data() + state.first_scale(state.info().uses[u].tensor);
        *first = std::max(*first, sums.rows.empty() ? sums.state.max_abs : 0.0F);
        auto const rows = all_rows[u];
        for (std::size_t r = 0; r < rows.size(); ++r) {
            first[r] = std::max(first[r], rows[r].max_abs);
        }
    }
    return largest;
}

/// The numbers of a slice of each sequence of a microbatch.
inline std::vector<std::int32_t> slice_of(std::vector<std::int32_t> const& whole, microbatch_shape shape, std::size_t slice)
{
    std::vector<std::int32_t> part;
    for (int row = 0; row < microbatch_rows(shape); ++row) {
        if (static_cast<std::size_t>(row % shape.tokens / slice_tokens(shape)) == slice) {
            part.push_back(whole[static_cast<std::size_t>(row)]);
        }
    }
    return part;
}

/// Runs a step's microbatches through the stages between the cuts, each with memory of its own, as ranks have it.
inline step_result run_step(model_description const& model, std::vector<reference::microbatch> const& step, options const& o)
{
    auto const info = state_of(model);
    host_backend host{o.threads};
    compute_backend& backend = o.backend != nullptr ? *o.backend : host;
    std::vector<std::unique_ptr<resident_state>> states;
    std::vector<std::unique_ptr<stage>> stages;
    auto const microbatches = static_cast<int>(step.size());
    microbatch_shape const shape{batch.sequences, batch.tokens, o.slices};
    auto const slices = static_cast<std::size_t>(o.slices);
    for (std::size_t s = 0; s + 1 < o.cuts.size(); ++s) {
        layer_id const first{o.cuts[s]};
        layer_id const last{o.cuts[s + 1]};
        auto state = std::make_unique<resident_state>(info, backend);
        std::fill(state->scales.begin(), state->scales.end(), first_scale);
        initialise_layers(*state, first, last, seed);
        if (o.prepare != nullptr) {
            o.prepare(*state);
        }
        std::span const layers{model.layers};
        stages.push_back(backend.make_stage(
            layers.subspan(at(first), at(last) - at(first)), first, shape, microbatches, *state,
            o.recompute_levels.empty() ? std::span<recompute_level const>{} : std::span{o.recompute_levels}.subspan(at(first), at(last) - at(first)), o.group));
        states.push_back(std::move(state));
    }
    step_result result;
    for (int time = 0; time < o.times; ++time) {
        result.loss = {};
        for (auto& state : states) {
            if (o.chooses && time > 0) {
                state->choose_scales(largest_of(*state), microbatches * o.slices);
            }
            state->clear_accumulators();
        }
        auto const items = step.size() * slices;
        std::vector<std::vector<activation>> kept(items);            // item, stage
        std::vector<std::vector<array<std::byte>>> gradient(items);  // item, stage: of the stage's input
        array<std::byte> above{backend.own()};
        for (std::size_t i = 0; i < items; ++i) {
            for (auto const& s : stages) {
                kept[i].emplace_back(s->layout());
                gradient[i].emplace_back(backend.own(), s->input_bytes());
            }
        }
        auto const item_of = [&](std::size_t i) {
            return stage_item{.seed = 5,
                              .step = step_id{8},
                              .microbatch = microbatch_id{static_cast<int>(i / slices)},
                              .training = o.training,
                              .slice = static_cast<int>(i % slices),
                              .exchange = o.exchange};
        };
        auto const lowest_of = [&](std::size_t i) { return o.lowest.empty() ? layer_id{0} : o.lowest[i / slices]; };
        auto const adds = [&](std::size_t i, std::size_t s) {
            return [&, lowest = lowest_of(i), s](use_id use) { return stages[s]->above(use, lowest) && o.only.value_or(use) == use; };
        };
        // Calls f(item, stage) for a microbatch: slices and stages up, or both down.
        auto const for_each_stage = [&](std::size_t m, bool up, auto const& f) {
            auto const n = stages.size();
            for (std::size_t k = 0; k < slices * n; ++k) {
                auto const slice = o.stage_by_stage ? k % slices : k / n;
                auto const s = o.stage_by_stage ? k / slices : k % n;
                f(m * slices + (up ? slice : slices - 1 - slice), up ? s : n - 1 - s);
            }
        };
        auto const forward = [&](std::size_t m) {
            for_each_stage(m, true, [&](std::size_t i, std::size_t s) {
                auto& a = kept[i][s];
                a.tokens = slice_of(step[m].tokens, shape, i % slices);
                a.targets = slice_of(step[m].targets, shape, i % slices);
                a.before.clear();
                for (auto k = i - i % slices; k < i; ++k) {
                    a.before.push_back(&kept[k][s]);
                }
                if (s > 0) {
                    backend.copy(stages[s]->input(a), stages[s - 1]->output(kept[i][s - 1]), stages[s]->input_bytes());
                }
                stages[s]->forward(a, item_of(i), result.loss);
                backend.wait();
            });
            result.logits.clear();
            for (std::int64_t row = 0; row < rows(shape) && (o.recompute_levels.empty() || o.recompute_levels.back() != recompute_level::full);
                 ++row) {  // which leaves none
                auto const logits = stages.back()->logits(kept[(m + 1) * slices - 1].back(), row);
                result.logits.insert(result.logits.end(), logits.begin(), logits.end());
            }
        };
        auto const backward_through = [&](std::size_t m, auto const& through) {
            for_each_stage(m, false, [&](std::size_t i, std::size_t s) {
                if (o.backward && stages[s]->last_layer() > lowest_of(i)) {
                    bool const top = s + 1 == stages.size();
                    if (!top) {  // a copy, which may be written over
                        above.resize(gradient[i][s + 1].size());
                        backend.copy(above.data(), gradient[i][s + 1].data(), above.size());
                    }
                    through(i, s, top ? nullptr : above.data(), gradient[i][s].data());
                    backend.wait();
                }
            });
        };
        auto const whole_backward = [&](std::size_t m) {
            backward_through(m, [&](std::size_t i, std::size_t s, void* from, void* to) {
                stages[s]->backward(kept[i][s], item_of(i), lowest_of(i), from, to, adds(i, s));
            });
        };
        auto const input_gradient = [&](std::size_t m) {
            backward_through(
                m, [&](std::size_t i, std::size_t s, void* from, void* to) { stages[s]->input_gradient(kept[i][s], item_of(i), lowest_of(i), from, to); });
        };
        auto const weight_gradient = [&](std::size_t m) {
            for_each_stage(m, true, [&](std::size_t i, std::size_t s) {
                if (o.backward && stages[s]->last_layer() > lowest_of(i)) {
                    stages[s]->weight_gradient(kept[i][s], item_of(i), lowest_of(i), adds(i, s));
                    backend.wait();
                }
            });
        };
        bool const evicts = o.how == backwards::recomputed || o.how == backwards::recomputed_split;
        bool const late = o.how == backwards::split_late || o.how == backwards::recomputed_split;
        for (std::size_t m = 0; m < step.size(); ++m) {
            forward(m);
            if (o.how == backwards::whole) {
                whole_backward(m);
            } else if (o.how == backwards::split) {
                input_gradient(m);
                weight_gradient(m);
            } else if (evicts) {
                for_each_stage(m, true, [&](std::size_t i, std::size_t s) { stages[s]->evict(kept[i][s]); });
            }
        }
        for (std::size_t m = 0; m < step.size() && (late || evicts); ++m) {
            if (evicts) {
                for_each_stage(m, true, [&](std::size_t i, std::size_t s) { stages[s]->recompute(kept[i][s], item_of(i)); });
            }
            if (late) {
                input_gradient(m);
            } else {
                whole_backward(m);
            }
        }
        for (std::size_t m = step.size(); m-- > 0 && late;) {
            weight_gradient(m);
        }
        for (std::size_t s = 0; s < stages.size(); ++s) {
            for (auto& of_item : kept) {
                stages[s]->release(of_item[s]);
            }
            expects(stages[s]->meter().held() == bytes{}, "a stage whose items are done holds nothing");
        }
        result.input_gradients.assign(items, {});
        for (std::size_t i = 0; i < items; ++i) {
            for (auto const& of_stage : gradient[i]) {
                result.input_gradients[i].push_back(
                    floats_from(backend, of_stage.data(), of_stage.size() / static_cast<std::size_t>(size_of(backend.policy().storage))));
            }
        }
    }
    for (auto const& s : stages) {
        result.peaks.push_back(s->meter().peak());
    }
    for (std::size_t u = 0; u < info.uses.size(); ++u) {
        use_id const use{static_cast<int>(u)};
        auto const& layer = info.uses[u].layer;
        for (std::size_t s = 0; s < stages.size(); ++s) {
            auto const run = o.group.run(grid_of(model));
            bool const mine = info.uses[u].shard >= run.begin && info.uses[u].shard < run.end;
            if (mine && layer >= stages[s]->first_layer() && layer < stages[s]->last_layer() && info.uses[u].parameter >= 0) {
                result.uses.push_back(result_of(*states[s], use));
            }
        }
    }
    return result;
}

inline options whole(model_description const& model) { return {.cuts = {0, static_cast<int>(model.layers.size())}}; }

/// x W V: W and V are one parameter, or two.
inline layer_description two_products(bool shared)
{
    layer_description layer{.name = "two products", .prefix = "", .in_width = 24, .out_width = 24};
    auto const x = add_slot(layer, 24);
    auto const y = add_slot(layer, 24);
    auto const z = add_slot(layer, 24);
    auto const w = add_parameter(layer, {"first", {24, 24}, {0, 0.2}, true});
    auto const v = shared ? w : add_parameter(layer, {"second", {24, 24}, {0, 0.2}, true});
    add_op(layer, {.kind = op_kind::linear, .x = {x, no_slot}, .z = {y, no_slot}, .parameters = {w, no_parameter}, .in_width = 24, .out_width = 24});
    add_op(layer, {.kind = op_kind::linear, .x = {y, no_slot}, .z = {z, no_slot}, .parameters = {v, no_parameter}, .in_width = 24, .out_width = 24});
    layer.output = z;
    return layer;
}

}  // namespace stage_steps
