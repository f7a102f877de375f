// SPDX-License-Identifier: Apache-2.0
#include "executor/train/measured/measured_layers.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <utility>

#include "executor/stage/stage.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/model/footprint.hpp"
#include "rheo/model/state.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

/// How long it takes until what a call begins is done. @pre the backend is idle
template <class Call>
double seconds_of(compute_backend& backend, Call const& call)
{
    auto const begin = std::chrono::steady_clock::now();
    call();
    backend.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// The least of the times but the first, which also pays for memory that is touched for the first time.
seconds least(std::vector<double> const& times) { return {*std::min_element(times.begin() + 1, times.end())}; }

}  // namespace

std::vector<layer_profile> measured_layers(model_description const& model, run_config const& config, compute_backend& backend, int repeats)
{
    expects(repeats >= 1, "a measurement takes at least one microbatch");
    auto shape = config.train.microbatch;
    shape.slices = 1;
    auto const info = state_of(model);
    resident_state state{info, backend};
    initialise_layers(state, layer_id{0}, layer_id{static_cast<int>(model.layers.size())}, config.train.seed);
    std::vector<std::unique_ptr<stage>> stages;
    std::vector<activation> kept;
    for (std::size_t l = 0; l < model.layers.size(); ++l) {
        auto& made = *stages.emplace_back(backend.make_stage(std::span{model.layers}.subspan(l, 1), layer_id{static_cast<int>(l)}, shape, repeats + 1, state));
        auto& a = kept.emplace_back(made.layout());
        for (std::size_t r = 0; r < a.tokens.size(); ++r) {
            auto const drawn = [&](std::uint64_t which) {
                return static_cast<std::int32_t>((r * 2654435761U + which * 40503U) % static_cast<std::uint64_t>(config.model.vocabulary));
            };
            a.tokens[r] = drawn(1);
            a.targets[r] = drawn(2);
        }
    }
    std::vector<std::vector<double>> forward(stages.size());
    std::vector<std::vector<double>> backward(stages.size());
    for (int m = 0; m <= repeats; ++m) {
        stage_item const item{.seed = config.train.seed, .step = step_id{0}, .microbatch = microbatch_id{m}};
        loss_sum loss{};
        for (std::size_t l = 0; l < stages.size(); ++l) {
            if (l > 0) {
                backend.copy(stages[l]->input(kept[l]), stages[l - 1]->output(kept[l - 1]), stages[l]->input_bytes());
                backend.wait();
            }
            forward[l].push_back(seconds_of(backend, [&] { stages[l]->forward(kept[l], item, loss); }));
        }
        array<std::byte> above{backend.own()};
        for (std::size_t l = stages.size(); l-- > 0;) {
            array<std::byte> below{backend.own(), stages[l]->input_bytes()};
            backward[l].push_back(seconds_of(backend, [&] {
                stages[l]->backward(kept[l], item, stages[l]->first_layer(), above.empty() ? nullptr : above.data(), below.empty() ? nullptr : below.data(),
                                    [](use_id) { return true; });
            }));
            above = std::move(below);
        }
    }
    std::vector<layer_profile> result;
    for (std::size_t l = 0; l < stages.size(); ++l) {
        result.push_back({least(forward[l]),
                          least(backward[l]),
                          persistent_bytes(model.layers[l], backend.policy()),
                          activation_bytes(model.layers[l], shape, backend.policy()),
                          boundary_bytes(model.layers[l], shape, backend.policy()),
                          {}});
    }
    return result;
}

}  // namespace rheo::inline v0
