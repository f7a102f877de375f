// SPDX-License-Identifier: Apache-2.0
// A stage at work: against the reference in double within a derived bound, and the same bits however the model is
// cut, whoever takes the tiles, and how often it is done.
#include "runtime/stage.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <random>

#include "catch.hpp"
#include "reference_gpt.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"

using namespace rheo;

namespace {

constexpr gpt_shape small{.vocabulary = 37, .context = 12, .width = 24, .heads = 3, .blocks = 2};
constexpr microbatch_shape batch{.sequences = 2, .tokens = 9};
constexpr std::uint64_t seed = 20;
constexpr int first_scale = 34;  // of all sums: gradients here stay far below 2^(51 - 34)

std::vector<reference::microbatch> random_step(gpt_shape shape, int count)
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
    std::vector<std::int64_t> sums;
    accumulator_state state;

    friend bool operator==(use_result const&, use_result const&) = default;
};

/// All that a step leaves: what each use has summed, the loss, and the logits of the last microbatch.
struct step_result {
    std::vector<use_result> uses;
    loss_sum loss;
    std::vector<float> logits;

    friend bool operator==(step_result const&, step_result const&) = default;
};

struct options {
    std::vector<int> cuts;
    int threads = 1;
    bool training = true;
    std::vector<layer_id> lowest{};  ///< per microbatch; empty: all of the backward
    std::optional<use_id> only{};    ///< the one use that contributes; none: all
    bool backward = true;
    int times = 1;                   ///< the whole step again, on cleared accumulators
    void (*prepare)(resident_state&) = nullptr;  ///< changes what each stage begins with
};

/// Runs a step's microbatches through the stages between the cuts, each with memory of its own, as ranks have it.
step_result run_step(model_description const& model, std::vector<reference::microbatch> const& step, options const& o)
{
    auto const info = state_of(model);
    tile_pool pool{o.threads};
    std::vector<std::unique_ptr<resident_state>> states;
    std::vector<std::unique_ptr<stage>> stages;
    auto const microbatches = static_cast<int>(step.size());
    for (std::size_t s = 0; s + 1 < o.cuts.size(); ++s) {
        layer_id const first{o.cuts[s]};
        layer_id const last{o.cuts[s + 1]};
        auto state = std::make_unique<resident_state>(info);
        std::fill(state->scales.begin(), state->scales.end(), first_scale);
        for (auto const t : tensors_of(info, first, last)) {
            if (info.tensors[at(t)].is_parameter) {
                initialise(*state, t, seed, pool);
            }
        }
        if (o.prepare != nullptr) {
            o.prepare(*state);
        }
        std::span const layers{model.layers};
        stages.push_back(std::make_unique<stage>(layers.subspan(at(first), at(last) - at(first)), first, batch, microbatches, *state, pool));
        states.push_back(std::move(state));
    }
    step_result result;
    for (int time = 0; time < o.times; ++time) {
        result.loss = {};
        for (auto& state : states) {
            state->clear_accumulators(pool);
        }
        for (std::size_t m = 0; m < step.size(); ++m) {
            stage_item const item{.seed = 5, .step = step_id{8}, .microbatch = microbatch_id{static_cast<int>(m)}, .training = o.training};
            std::vector<activation> kept;
            for (std::size_t s = 0; s < stages.size(); ++s) {
                auto& a = kept.emplace_back(stages[s]->layout());
                a.tokens = step[m].tokens;
                a.targets = step[m].targets;
                if (s > 0) {
                    std::memcpy(stages[s]->input(a), stages[s - 1]->output(kept[s - 1]), stages[s]->input_floats() * sizeof(float));
                }
                stages[s]->forward(a, item, result.loss);
            }
            auto const* logits = stages.back()->logits(kept.back());
            result.logits.assign(logits, logits + rows(batch) * model.layers.back().slot_widths.end()[-1]);
            auto const lowest = o.lowest.empty() ? layer_id{0} : o.lowest[m];
            std::vector<float> above;
            for (std::size_t s = stages.size(); s-- > 0 && o.backward && stages[s]->last_layer() > lowest;) {
                std::vector<float> below(stages[s]->input_floats());
                stages[s]->backward(kept[s], item, lowest, above.empty() ? nullptr : above.data(), below.empty() ? nullptr : below.data(),
                                    [&](use_id use) { return stages[s]->above(use, lowest) && o.only.value_or(use) == use; });
                above = std::move(below);
            }
        }
    }
    for (std::size_t u = 0; u < info.uses.size(); ++u) {
        use_id const use{static_cast<int>(u)};
        auto const& layer = info.uses[u].layer;
        for (std::size_t s = 0; s < stages.size(); ++s) {
            if (layer >= stages[s]->first_layer() && layer < stages[s]->last_layer() && info.uses[u].parameter >= 0) {
                auto const& accumulator = states[s]->accumulator(use);
                result.uses.push_back({accumulator.sums, accumulator.state});
            }
        }
    }
    return result;
}

options whole(model_description const& model) { return {.cuts = {0, static_cast<int>(model.layers.size())}}; }

/// The gradient of a tensor: the exact sum over its uses, made float once.
std::vector<float> gradient(collection const& info, step_result const& step, std::size_t t)
{
    std::vector<std::int64_t> sums(static_cast<std::size_t>(elements(info.tensors[t].shape)));
    for (auto const use : info.tensors[t].uses) {
        for (std::size_t i = 0; i < sums.size(); ++i) {
            sums[i] += step.uses[at(use)].sums[i];
        }
    }
    std::vector<float> result;
    for (auto const s : sums) {
        result.push_back(value_of(s, first_scale));
    }
    return result;
}

/// Per tensor, |g - g_reference| in Euclidean norm: what float may do (reference::float_error), half a unit of the
/// exact sum per contribution and element, and the rounding of the sum to float.
void check_against_reference(gpt_shape shape, model_description const& model)
{
    auto const step = random_step(shape, 3);
    auto const info = state_of(model);
    reference::gpt const exact{shape, batch, seed};
    REQUIRE(exact.info() == info);
    auto const expected = exact.sums(step);
    auto const allowed = reference::float_error(exact, step);
    auto const actual = run_step(model, step, whole(model));
    double const unit = std::ldexp(1.0, -first_scale);
    for (std::size_t t = 0; t < info.tensors.size(); ++t) {
        if (!info.tensors[t].is_parameter) {
            continue;
        }
        auto const g = gradient(info, actual, t);
        double const contributions = static_cast<double>(step.size() * info.tensors[t].uses.size());
        double const size = reference::distance(expected.gradients[t], reference::values(g.size()));
        double const bound = allowed.gradients[t] + 0.5 * unit * contributions * std::sqrt(static_cast<double>(g.size())) + 0x1p-24 * size;
        double const distance = reference::distance(g, expected.gradients[t]);
        INFO(info.tensors[t].name << ": distance " << distance << ", bound " << bound << ", size " << size);
        CHECK(distance <= bound);
        CHECK((size == 0 || bound <= 1e-4 * size));  // else the bound would say nothing
    }
    double const rows_counted = static_cast<double>(expected.targets);
    CHECK(actual.loss.targets == expected.targets);
    CHECK(std::fabs(mean_loss(actual.loss) * rows_counted - expected.loss) <= allowed.loss + 0.5 * rows_counted / loss_units_per_nat);
    CHECK_FALSE(actual.loss.not_finite);
}

}  // namespace

TEST_CASE("gradients and loss of a stage are the reference's within what float allows, fused or not, tied or not")
{
    for (bool const tied : {true, false}) {
        auto shape = small;
        shape.tied = tied;
        SECTION(tied ? "tied" : "untied")
        {
            check_against_reference(shape, gpt_model(shape));
            check_against_reference(shape, fused(gpt_model(shape)));
        }
    }
}

TEST_CASE("however the model is cut, a step leaves the same bits")
{
    for (int const dropout : {0, 150}) {
        auto shape = small;
        shape.dropout_per_mille = dropout;
        for (auto const& model : {gpt_model(shape), fused(gpt_model(shape))}) {
            auto const step = random_step(shape, 2);
            auto const expected = run_step(model, step, whole(model));
            REQUIRE(expected.uses.size() == state_of(model).uses.size() - 1);
            for (auto const& cuts : {std::vector{0, 1, 4}, {0, 2, 4}, {0, 3, 4}, {0, 1, 2, 4}, {0, 2, 3, 4}, {0, 1, 2, 3, 4}}) {
                CHECK(run_step(model, step, {.cuts = cuts}) == expected);
            }
        }
    }
}

TEST_CASE("one, two or three threads leave the same bits, and so does doing it again")
{
    auto shape = small;
    shape.dropout_per_mille = 100;
    for (auto const& model : {gpt_model(shape), fused(gpt_model(shape))}) {
        auto const step = random_step(shape, 2);
        auto const expected = run_step(model, step, whole(model));
        for (int const threads : {2, 3}) {
            CHECK(run_step(model, step, {.cuts = {0, 4}, .threads = threads}) == expected);
        }
        CHECK(run_step(model, step, {.cuts = {0, 2, 4}, .threads = 2, .times = 2}) == expected);
    }
}

TEST_CASE("a microbatch done in part contributes to the layers from the top down to where it stopped, with the same bits")
{
    auto const model = fused(gpt_model(small));
    auto const info = state_of(model);
    auto const step = random_step(small, 1);
    auto const all = run_step(model, step, whole(model));
    for (int lowest = 0; lowest < 4; ++lowest) {
        for (auto const& cuts : {std::vector{0, 4}, {0, 2, 4}, {0, 1, 3, 4}}) {
            auto const part = run_step(model, step, {.cuts = cuts, .lowest = {layer_id{lowest}}});
            CHECK(part.loss == all.loss);
            for (std::size_t u = 0; u < part.uses.size(); ++u) {
                if (info.uses[u].layer.value >= lowest) {
                    CHECK(part.uses[u] == all.uses[u]);
                } else {
                    CHECK(std::all_of(part.uses[u].sums.begin(), part.uses[u].sums.end(), [](auto s) { return s == 0; }));
                    CHECK(part.uses[u].state == accumulator_state{.scale_log2 = first_scale});
                }
            }
        }
    }
}

TEST_CASE("each use can be the only one that contributes, with the same bits")
{
    for (auto const& model : {gpt_model(small), fused(gpt_model(small))}) {
        auto const step = random_step(small, 1);
        auto const all = run_step(model, step, whole(model));
        for (std::size_t only = 0; only < all.uses.size(); ++only) {
            auto alone = whole(model);
            alone.only = use_id{static_cast<int>(only)};
            auto const part = run_step(model, step, alone);
            CHECK(part.uses[only] == all.uses[only]);
            for (std::size_t u = 0; u < part.uses.size(); ++u) {
                CHECK((u == only || std::all_of(part.uses[u].sums.begin(), part.uses[u].sums.end(), [](auto s) { return s == 0; })));
            }
        }
    }
}

TEST_CASE("gradients of microbatches add up exactly: a step is the sum of its parts")
{
    auto const model = fused(gpt_model(small));
    auto const step = random_step(small, 2);
    auto const both = run_step(model, step, whole(model));
    // The same two microbatches, the first one with nothing of its backward and then the second one.
    layer_id const none{4};
    auto const first = run_step(model, step, {.cuts = {0, 4}, .lowest = {layer_id{0}, none}});
    auto const second = run_step(model, step, {.cuts = {0, 4}, .lowest = {none, layer_id{0}}});
    for (std::size_t u = 0; u < both.uses.size(); ++u) {
        bool same = true;
        for (std::size_t i = 0; i < both.uses[u].sums.size(); ++i) {
            same = same && both.uses[u].sums[i] == first.uses[u].sums[i] + second.uses[u].sums[i];
        }
        CHECK(same);
        CHECK(both.uses[u].state == joined(first.uses[u].state, second.uses[u].state));
    }
}

TEST_CASE("dropout acts in training and nowhere else")
{
    auto with = small;
    with.dropout_per_mille = 200;
    auto const step = random_step(small, 2);
    for (bool const fuse : {false, true}) {
        auto const plain = fuse ? fused(gpt_model(small)) : gpt_model(small);
        auto const dropping = fuse ? fused(gpt_model(with)) : gpt_model(with);
        options evaluation = whole(plain);
        evaluation.training = false;
        evaluation.backward = false;
        auto const expected = run_step(plain, step, evaluation);
        CHECK(run_step(dropping, step, evaluation) == expected);
        CHECK(expected.loss == run_step(plain, step, whole(plain)).loss);
        CHECK(run_step(dropping, step, whole(dropping)).loss != run_step(plain, step, whole(plain)).loss);
    }
}

TEST_CASE("each microbatch and each operation draws its own dropout")
{
    auto with = small;
    with.dropout_per_mille = 200;
    auto const model = gpt_model(with);
    auto step = random_step(with, 2);
    step[0].targets[3] = 1;
    step[1] = step[0];
    auto const first = run_step(model, std::vector{step[0]}, whole(model)).loss.fixed;
    auto const both = run_step(model, step, whole(model)).loss.fixed;
    CHECK(both - first != first);
}

namespace {

/// x W V: W and V are one parameter, or two.
layer_description two_products(bool shared)
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

}  // namespace

TEST_CASE("two operations of a layer on one parameter are two uses, each with the gradient it would have alone")
{
    auto const step = random_step(small, 2);
    model_description const shared{{embedding_layer(small), two_products(true), classifier_layer(small)}};
    model_description const apart{{embedding_layer(small), two_products(false), classifier_layer(small)}};
    auto const expected = run_step(apart, step, {.cuts = {0, 3}, .prepare = [](resident_state& state) {
        state.tensor(tensor_id{3}).parameter = state.tensor(tensor_id{2}).parameter;
    }});
    auto const actual = run_step(shared, step, {.cuts = {0, 3}});
    REQUIRE(state_of(apart).tensors[3].name == "second");
    CHECK(actual == expected);
    CHECK(run_step(shared, step, {.cuts = {0, 1, 2, 3}}) == expected);
    CHECK_FALSE(actual.uses[2].sums == actual.uses[3].sums);
}

TEST_CASE("a stage says what it holds: uses, sizes of its messages, the loss")
{
    auto const model = gpt_model(small);
    auto const info = state_of(model);
    resident_state state{info};
    tile_pool pool{1};
    std::span const layers{model.layers};
    stage const first{layers.first(2), layer_id{0}, batch, 4, state, pool};
    stage const last{layers.last(2), layer_id{2}, batch, 4, state, pool};
    CHECK(first.input_floats() == 0);
    CHECK(first.output_floats() == 18 * 24);
    CHECK(last.input_floats() == first.output_floats());
    CHECK(last.output_floats() == 0);
    CHECK_FALSE(first.has_loss());
    CHECK(last.has_loss());
    CHECK(last.loss_use() == use_id{static_cast<int>(info.uses.size()) - 1});
    CHECK(first.uses().size() == 2 + 12);
    CHECK(last.uses().size() == 12 + 3);
    auto all = first.uses();
    all.insert(all.end(), last.uses().begin(), last.uses().end());
    for (std::size_t u = 0; u < all.size(); ++u) {
        CHECK(all[u] == use_id{static_cast<int>(u)});
    }
}

TEST_CASE("a stage allocates for a microbatch what the library plans: every slot and saved value, shared ones once")
{
    for (auto const& model : {gpt_model(small), fused(gpt_model(small))}) {
        std::span const layers{model.layers};
        for (std::size_t first = 0; first < layers.size(); ++first) {
            for (std::size_t last = first + 1; last <= layers.size(); ++last) {
                auto const part = layers.subspan(first, last - first);
                std::int64_t planned = 0;
                std::int64_t rounded_up = 0;  // to 16 floats, once per slot and per operation
                for (std::size_t l = 0; l < part.size(); ++l) {
                    planned += activation_bytes(part[l], batch).count - (l == 0 ? 0 : part[l].in_width * rows(batch) * 4);
                    rounded_up += 64 * static_cast<std::int64_t>(part[l].slot_widths.size() + part[l].ops.size());
                }
                auto const allocated = static_cast<std::int64_t>(activation_layout{part, batch}.floats * sizeof(float));
                CHECK(allocated >= planned);
                CHECK(allocated <= planned + rounded_up);
            }
        }
    }
}
