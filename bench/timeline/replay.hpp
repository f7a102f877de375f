#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the operations of a rank take in the order of its program, without the other ranks: its row is run from the first instruction to the
// last, and a message is memory that is written where it would come and read where it would go. In this order an operation finds in the
// caches what it finds in a step, which operations that are repeated one kind after the other do not.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "executor/data/data.hpp"
#include "executor/stage/stage.hpp"
#include "rheo/schedule/core/instruction.hpp"

namespace bench {

/// What the operations of a stage took, by the kind of instruction: seconds, how many.
using times_of_stage = std::array<std::pair<double, double>, static_cast<std::size_t>(rheo::instruction_kind::recompute) + 1>;

/// One rank's stages, by their numbers in the program, with the items that they have in flight.
class replay {
public:
    /// @param slices of a microbatch; `data` and `seed` give the tokens
    replay(std::map<int, rheo::stage*> stages, rheo::dataset const& data, std::uint64_t seed, int slices)
        : stages_{std::move(stages)}, data_{&data}, seed_{seed}, slices_{slices}
    {
    }

    /// Runs a row. @param spent by stage: adds there what its operations take
    void run(std::vector<rheo::instruction> const& row, std::vector<times_of_stage>& spent)
    {
        using enum rheo::instruction_kind;
        for (auto const i : row) {
            auto& f = inflight_[{i.stage, i.item}];
            switch (i.kind) {
            case receive_activation: f.input.assign(stages_.at(i.stage)->input_bytes() / sizeof(float), 0.01F); break;
            case receive_gradient: f.above.assign(stages_.at(i.stage)->output_bytes() / sizeof(float), 0.01F); break;
            case send_activation: goes(static_cast<float const*>(stages_.at(i.stage)->output(*f.kept)), stages_.at(i.stage)->output_bytes()); break;
            case send_gradient: goes(f.below.data(), f.below.size() * sizeof(float)); break;
            case forward:
            case backward:
            case input_gradient:
            case weight_gradient: {
                f.below.resize(stages_.at(i.stage)->input_bytes() / sizeof(float));
                auto const begin = std::chrono::steady_clock::now();
                compute(i, f);
                auto& [seconds, count] = spent[static_cast<std::size_t>(i.stage)][static_cast<std::size_t>(i.kind)];
                seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
                ++count;
                break;
            }
            default: break;
            }
        }
    }

private:
    struct inflight_item {
        std::unique_ptr<rheo::activation> kept;
        std::vector<float> input;         ///< comes
        std::vector<float> above, below;  ///< gradients: what comes, what goes
    };

    void goes(float const* data, std::size_t size) { message_.assign(data, data + size / sizeof(float)); }

    /// As a worker does it; what a stage beside this one on the rank has made is handed over.
    void compute(rheo::instruction i, inflight_item& f)
    {
        using enum rheo::instruction_kind;
        auto& layers = *stages_.at(i.stage);
        rheo::stage_item const item{.seed = seed_, .step = rheo::step_id{1}, .microbatch = rheo::microbatch_id{i.item / slices_}, .slice = i.item % slices_};
        auto const all = [](rheo::use_id) { return true; };
        if (i.kind == forward) {
            if (f.kept == nullptr) {
                f.kept = std::make_unique<rheo::activation>(layers.layout());
            }
            f.kept->before.clear();
            for (int earlier = item.slice; earlier > 0; --earlier) {
                f.kept->before.push_back(inflight_.at({i.stage, i.item - earlier}).kept.get());
            }
            if (layers.input_bytes() > 0) {
                auto const* const from = f.input.empty() ? stages_.at(i.stage - 1)->output(*inflight_.at({i.stage - 1, i.item}).kept) : f.input.data();
                std::memcpy(layers.input(*f.kept), from, layers.input_bytes());
            }
            if (layers.input_bytes() == 0 || layers.has_loss()) {
                data_->training_microbatch(seed_, item.step, item.microbatch, f.kept->tokens, f.kept->targets, item.slice);
            }
            layers.forward(*f.kept, item, loss_);
            return;
        }
        if (i.kind == weight_gradient) {
            layers.weight_gradient(*f.kept, item, layers.first_layer(), all);
            return;
        }
        if (f.above.empty() && !layers.has_loss()) {
            std::swap(f.above, inflight_.at({i.stage + 1, i.item}).below);
        }
        auto* const above = layers.has_loss() ? nullptr : f.above.data();
        auto* const below = f.below.empty() ? nullptr : f.below.data();
        if (i.kind == backward) {
            layers.backward(*f.kept, item, layers.first_layer(), above, below, all);
        } else {
            layers.input_gradient(*f.kept, item, layers.first_layer(), above, below);
        }
        f.above.clear();
    }

    std::map<int, rheo::stage*> stages_;
    rheo::dataset const* data_;
    std::uint64_t seed_;
    int slices_;
    std::map<std::pair<int, int>, inflight_item> inflight_;  ///< stage, item
    std::vector<float> message_;
    rheo::loss_sum loss_;
};

}  // namespace bench
