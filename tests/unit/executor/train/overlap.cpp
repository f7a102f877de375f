// SPDX-License-Identifier: Apache-2.0
// A forward and a backward of different microbatches at once, on a stage's two pools: the bits of one after the other.
#include <future>

#include "support/catch.hpp"
#include "unit/executor/stage/stage_steps.hpp"

using namespace rheo;
using namespace stage_steps;

namespace {

/// The step's microbatches through one stage of all layers: a forward with the backward of the microbatch before it, at once or not.
std::vector<use_result> steps_of_pairs(model_description const& model, std::vector<reference::microbatch> const& step, int threads, bool at_once)
{
    auto const info = state_of(model);
    host_backend up{threads};
    tile_pool down{threads};
    resident_state state{info, up};
    std::fill(state.scales.begin(), state.scales.end(), first_scale);
    initialise_layers(state, layer_id{0}, layer_id{static_cast<int>(model.layers.size())}, seed);
    host_stage all{model.layers, layer_id{0}, batch, static_cast<int>(step.size()), state, up};
    state.clear_accumulators();
    std::vector<activation> kept;
    for (auto const& m : step) {
        auto& a = kept.emplace_back(all.layout());
        a.tokens = m.tokens;
        a.targets = m.targets;
    }
    loss_sum loss;
    auto const item_of = [](std::size_t m) { return stage_item{.seed = 5, .step = step_id{8}, .microbatch = microbatch_id{static_cast<int>(m)}}; };
    auto const forward = [&](std::size_t m) { all.forward(kept[m], item_of(m), loss); };
    auto const backward = [&](std::size_t m) {
        auto item = item_of(m);
        item.pool = &down;
        all.backward(kept[m], item, layer_id{0}, nullptr, nullptr, [](use_id) { return true; });
    };
    forward(0);
    for (std::size_t m = 1; m < step.size(); ++m) {
        if (at_once) {
            auto other = std::async(std::launch::async, [&] { backward(m - 1); });
            forward(m);
            other.get();
        } else {
            forward(m);
            backward(m - 1);
        }
    }
    backward(step.size() - 1);
    expects(all.meter().held() == bytes{}, "a stage whose items are done holds nothing");
    std::vector<use_result> result;
    for (auto const use : all.uses()) {
        result.push_back(result_of(state, use));
    }
    return result;
}

}  // namespace

TEST_CASE("overlap: overlapped pair gives the sequential bits")
{
    auto shape = small;
    shape.dropout_per_mille = 100;
    auto const step = random_step(shape, 6);
    for (auto const& model : {gpt_model(shape), fused(gpt_model(shape))}) {
        auto const expected = steps_of_pairs(model, step, 1, false);
        CHECK(expected == run_step(model, step, whole(model)).uses);
        for (int const threads : {1, 2}) {
            CHECK(steps_of_pairs(model, step, threads, false) == expected);
            for (int time = 0; time < 10; ++time) {
                CHECK(steps_of_pairs(model, step, threads, true) == expected);
            }
        }
    }
}
