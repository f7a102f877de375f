#pragma once
// SPDX-License-Identifier: Apache-2.0

// The rest of the reference: from the sums of a step to the next parameters, in double. Learning rate, clipping
// by the global norm of the mean gradient, AdamW with decoupled decay (Loshchilov, Hutter, 2019).

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "reference_gpt.hpp"

namespace reference {

struct optimizer_settings {
    double learning_rate = 1e-3;
    double final_learning_rate = 1e-4;
    std::int64_t warmup_steps = 10;
    std::int64_t steps = 100;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0.1;
    double clip_norm = 1;  ///< 0: none
};

/// The learning rate of a step counted from 0: a straight line up, then half a cosine down.
inline double learning_rate(optimizer_settings const& o, std::int64_t step)
{
    if (step < o.warmup_steps) {
        return o.learning_rate * static_cast<double>(step + 1) / static_cast<double>(o.warmup_steps);
    }
    double const t = static_cast<double>(step - o.warmup_steps) / static_cast<double>(o.steps - o.warmup_steps);
    return o.final_learning_rate + 0.5 * (o.learning_rate - o.final_learning_rate) * (1 + std::cos(std::numbers::pi * t));
}

class training {
public:
    explicit training(gpt begin) : model{std::move(begin)}
    {
        for (auto const& p : model.parameters) {
            first_moments_.emplace_back(p.size());
            second_moments_.emplace_back(p.size());
        }
    }

    gpt model;

    /// Updates parameters and moments; committed updates are counted from here.
    void update(step_sums const& sums, optimizer_settings const& o)
    {
        double const tokens = static_cast<double>(sums.targets);
        double squares = 0;
        for (auto const& tensor : sums.gradients) {
            for (double const g : tensor) {
                squares += g / tokens * (g / tokens);
            }
        }
        double const norm = std::sqrt(squares);
        double const clip = o.clip_norm > 0 && norm > o.clip_norm ? o.clip_norm / norm : 1.0;
        double const rate = learning_rate(o, updates_);
        ++updates_;
        double const unbias1 = 1 - std::pow(o.beta1, static_cast<double>(updates_));
        double const unbias2 = 1 - std::pow(o.beta2, static_cast<double>(updates_));
        for (std::size_t t = 0; t < model.parameters.size(); ++t) {
            double const decay = model.info().tensors[t].decays ? o.weight_decay : 0.0;
            for (std::size_t i = 0; i < model.parameters[t].size(); ++i) {
                double const g = sums.gradients[t][i] / tokens * clip;
                auto& m = first_moments_[t][i];
                auto& v = second_moments_[t][i];
                m += (1 - o.beta1) * (g - m);
                v += (1 - o.beta2) * (g * g - v);
                model.parameters[t][i] -= rate * (m / unbias1 / (std::sqrt(v / unbias2) + o.epsilon) + decay * model.parameters[t][i]);
            }
        }
    }

    /// One step; returns its mean loss before the update.
    double train(std::span<microbatch const> step, optimizer_settings const& o)
    {
        auto const s = model.sums(step);
        update(s, o);
        return s.mean_loss();
    }

private:
    std::vector<values> first_moments_;
    std::vector<values> second_moments_;
    std::int64_t updates_ = 0;
};

}  // namespace reference
