// SPDX-License-Identifier: Apache-2.0
#include "executor/train/fingerprint.hpp"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/config/learning_rate.hpp"
#include "rheo/model/grid.hpp"

namespace rheo::inline v0 {

namespace {

/// What a layer computes, with a slot for every result: that an operation writes in place changes no bits.
struct written_apart {
    std::vector<int> widths;
    std::vector<op> ops;

    explicit written_apart(layer_description const& layer) : widths(layer.slot_widths.begin(), layer.slot_widths.end()), ops(layer.ops.begin(), layer.ops.end())
    {
        for (std::size_t o = 0; o < ops.size(); ++o) {
            if (!is_in_place(ops[o])) {
                continue;
            }
            auto const slot = ops[o].z[0];
            widths.insert(widths.begin() + slot + 1, widths[static_cast<std::size_t>(slot)]);
            for (std::size_t i = 0; i < ops.size(); ++i) {
                for (auto& x : ops[i].x) {
                    x += x > slot || (x == slot && i > o) ? 1 : 0;
                }
                for (auto& z : ops[i].z) {
                    z += z > slot || (z == slot && i >= o) ? 1 : 0;
                }
            }
        }
    }
};

}  // namespace

std::string operations_of(model_description const& model)
{
    std::uint64_t hash = 0;
    auto const mix = [&](std::int64_t value) { hash = mix_bits(hash ^ mix_bits(static_cast<std::uint64_t>(value) + 1)); };
    for (auto const& layer : model.layers) {
        mix(static_cast<std::int64_t>(hash_text(layer.name)));
        written_apart const all{layer};
        for (auto const width : all.widths) {
            mix(width);
        }
        for (auto const& p : layer.parameters) {
            mix(static_cast<std::int64_t>(hash_text(full_name(layer, p))));
            mix(p.shape.rows);
            mix(p.shape.columns);
            mix(p.decays ? 1 : 0);
        }
        for (auto const& o : all.ops) {
            for (std::int64_t const value : {static_cast<int>(o.kind), o.id.value, o.x[0], o.x[1], o.z[0], o.z[1], o.parameters[0], o.parameters[1], o.in_width,
                                             o.out_width, o.heads, o.dropout_per_mille}) {
                mix(value);
            }
            if (o.kv_heads != 0 || o.rope_base != 0) {
                mix(o.kv_heads);
                mix(o.rope_base);
            }
            if (o.scaling != rope_scaling{}) {
                auto const& s = o.scaling;
                for (auto const value :
                     {static_cast<int>(s.kind), s.factor_per_mille, s.low_freq_factor_per_mille, s.high_freq_factor_per_mille, s.original_context}) {
                    mix(value);
                }
            }
            if (o.epsilon_e9 != op{}.epsilon_e9) {
                mix(o.epsilon_e9);
            }
        }
    }
    return fmt::format("{} layers, {:016x}{}", model.layers.size(), hash, grid_of(model) > 1 ? fmt::format(" on a grid of {} shards", grid_of(model)) : "");
}

std::vector<fingerprint_line> fingerprint_of(model_description const& model, run_config const& config, dataset const& data, compute_backend& backend)
{
    auto const& train = config.train;
    auto const& optimizer = config.optimizer;
    std::vector<fingerprint_line> lines{
        {"seed", std::to_string(train.seed)},
        {"data", to_string(data.digest())},
        {"operations", operations_of(model)},
        {"microbatches per step", std::to_string(train.microbatches)},
        {"microbatch", fmt::format("{} sequences of {} tokens{}", train.microbatch.sequences, train.microbatch.tokens,
                                   train.microbatch.slices > 1 ? fmt::format(" in {} slices", train.microbatch.slices) : "")},
        {"optimizer", fmt::format("AdamW {}, betas {} {}, epsilon {}, decay {}, clip {}", rates_text(optimizer, train.steps), optimizer.beta1, optimizer.beta2,
                                  optimizer.epsilon, optimizer.weight_decay, optimizer.clip_norm)},
        {"steps that are not finite", train.skip_not_finite ? "skipped" : "an error"},
        {"dtypes",
         fmt::format("{}{}, exact {} sums{}", backend.policy().storage == dtype::f32 ? "fp32" : "bf16",
                     backend.policy().master == dtype::bf16 ? " with a state in bf16" : "", backend.policy().accumulate == dtype::i32 ? "int32" : "int64",
                     backend.policy().accumulate == dtype::i32 ? " with a scale per row" : "")},
        {"BLAS", backend.products()},
        {"kernels", backend.kernels()},
    };
    if (auto order = data.order(); !order.empty()) {
        lines.push_back({"data order", std::move(order)});
    }
    if (auto by = backend.attention(); !by.empty()) {
        lines.push_back({std::string{attention_line}, std::move(by)});
    }
    if (auto chosen = backend.choose_algorithms(model.layers, config.train.microbatch); !chosen.empty()) {
        lines.push_back({std::string{algorithms_line}, std::move(chosen)});
    }
    return lines;
}

}  // namespace rheo::inline v0
