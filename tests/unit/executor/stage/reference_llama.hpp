#pragma once
// SPDX-License-Identifier: Apache-2.0

// The loss of a Llama in plain double precision, forward alone, written from the papers and not from the kernels: its gradient is
// taken by differences. It shares with the library only the collection (names, shapes).

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference_gpt.hpp"
#include "rheo/model/llama.hpp"
#include "rheo/tensor/collection.hpp"
#include "support/rope_frequency.hpp"

namespace reference {

class llama {
public:
    llama(rheo::llama_shape shape, rheo::collection const& state, int length) : s_{shape}, state_{&state}, length_{static_cast<std::size_t>(length)} {}

    std::vector<values> parameters;  ///< tensor -> elements, row-major

    /// Of all microbatches, in nats, each target counted once.
    double loss(std::span<microbatch const> step) const
    {
        double sum = 0;
        for (auto const& m : step) {
            for (std::size_t begin = 0; begin < m.tokens.size(); begin += length_) {
                sum += of_sequence({m.tokens.data() + begin, length_}, {m.targets.data() + begin, length_});
            }
        }
        return sum;
    }

private:
    using rows = std::vector<values>;

    values const& tensor(std::string const& name) const
    {
        for (std::size_t t = 0; t < state_->tensors.size(); ++t) {
            if (state_->tensors[t].name == name) {
                return parameters[t];
            }
        }
        throw std::logic_error{"the reference knows no tensor " + name};
    }

    /// x W of one row, W [in, out].
    static values product(values const& x, values const& w)
    {
        values y(w.size() / x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            for (std::size_t o = 0; o < y.size(); ++o) {
                y[o] += x[i] * w[i * y.size() + o];
            }
        }
        return y;
    }

    values norm(values const& x, values const& gamma) const
    {
        double mean = 0;
        for (double const v : x) {
            mean += v * v / static_cast<double>(x.size());
        }
        values y(x.size());
        for (std::size_t c = 0; c < x.size(); ++c) {
            y[c] = x[c] / std::sqrt(mean + s_.norm_epsilon_e9 * 1e-9) * gamma[c];
        }
        return y;
    }

    std::size_t head_dim() const { return static_cast<std::size_t>(s_.head_dim == 0 ? s_.width / s_.heads : s_.head_dim); }

    /// What pair i turns by per position.
    double frequency(std::size_t i) const
    {
        return rope_frequency(1 / std::pow(s_.rope_base, 2.0 * static_cast<double>(i) / static_cast<double>(head_dim())), s_.scaling);
    }

    /// One head's query or key at its place, normed where the model does, then as complex numbers turned by the position.
    values turned(double const* from, std::size_t position, std::string const& gamma) const
    {
        auto const d = head_dim();
        values x(from, from + d);
        if (s_.qk_norm) {
            x = norm(x, tensor(gamma));
        }
        values y(d);
        for (std::size_t i = 0; i < d / 2; ++i) {
            double const angle = static_cast<double>(position) * frequency(i);
            y[i] = x[i] * std::cos(angle) - x[i + d / 2] * std::sin(angle);
            y[i + d / 2] = x[i] * std::sin(angle) + x[i + d / 2] * std::cos(angle);
        }
        return y;
    }

    /// Of the packed q, k, v of a sequence, all heads beside each other.
    rows attention(rows const& qkv, std::string const& at) const
    {
        auto const d = head_dim();
        auto const width = d * static_cast<std::size_t>(s_.heads);
        auto const keys = d * static_cast<std::size_t>(s_.kv_heads);
        rows out(qkv.size(), values(width));
        for (std::size_t h = 0; h < static_cast<std::size_t>(s_.heads); ++h) {
            auto const group = h / static_cast<std::size_t>(s_.heads / s_.kv_heads);
            for (std::size_t i = 0; i < qkv.size(); ++i) {
                auto const q = turned(qkv[i].data() + h * d, i, at + "self_attn.q_norm.weight");
                values weights;
                double sum = 0;
                for (std::size_t j = 0; j <= i; ++j) {
                    auto const k = turned(qkv[j].data() + width + group * d, j, at + "self_attn.k_norm.weight");
                    double score = 0;
                    for (std::size_t c = 0; c < d; ++c) {
                        score += q[c] * k[c];
                    }
                    weights.push_back(std::exp(score / std::sqrt(static_cast<double>(d))));
                    sum += weights.back();
                }
                for (std::size_t j = 0; j <= i; ++j) {
                    for (std::size_t c = 0; c < d; ++c) {
                        out[i][h * d + c] += weights[j] / sum * qkv[j][width + keys + group * d + c];
                    }
                }
            }
        }
        return out;
    }

    double of_sequence(std::span<std::int32_t const> tokens, std::span<std::int32_t const> targets) const
    {
        auto const width = static_cast<std::size_t>(s_.width);
        auto const add = [](values& x, values const& y) {
            for (std::size_t c = 0; c < x.size(); ++c) {
                x[c] += y[c];
            }
        };
        auto const& table = tensor("model.embed_tokens.weight");
        rows x;
        for (auto const token : tokens) {
            auto const row = table.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(token) * width);
            x.emplace_back(row, row + static_cast<std::ptrdiff_t>(width));
        }
        for (int b = 0; b < s_.blocks; ++b) {
            auto const at = "model.layers." + std::to_string(b) + ".";
            rows qkv;
            for (auto const& row : x) {
                qkv.push_back(product(norm(row, tensor(at + "input_layernorm.weight")), tensor(at + "self_attn.qkv_proj.weight")));
                if (s_.qkv_bias) {
                    add(qkv.back(), tensor(at + "self_attn.qkv_proj.bias"));
                }
            }
            auto const mixed = attention(qkv, at);
            for (std::size_t r = 0; r < x.size(); ++r) {
                add(x[r], product(mixed[r], tensor(at + "self_attn.o_proj.weight")));
                auto const gates = product(norm(x[r], tensor(at + "post_attention_layernorm.weight")), tensor(at + "mlp.gate_up_proj.weight"));
                values inner(gates.size() / 2);
                for (std::size_t c = 0; c < inner.size(); ++c) {
                    inner[c] = gates[c] / (1 + std::exp(-gates[c])) * gates[inner.size() + c];
                }
                add(x[r], product(inner, tensor(at + "mlp.down_proj.weight")));
            }
        }
        auto const& classifier = tensor(s_.tied ? "model.embed_tokens.weight" : "lm_head.weight");
        double loss = 0;
        for (std::size_t r = 0; r < x.size(); ++r) {
            if (targets[r] < 0) {
                continue;
            }
            auto const y = norm(x[r], tensor("model.norm.weight"));
            double sum = 0;
            double wanted = 0;
            for (std::size_t v = 0; v < static_cast<std::size_t>(s_.vocabulary); ++v) {
                double logit = 0;
                for (std::size_t c = 0; c < width; ++c) {
                    logit += y[c] * classifier[v * width + c];
                }
                sum += std::exp(logit);
                wanted = v == static_cast<std::size_t>(targets[r]) ? logit : wanted;
            }
            loss += std::log(sum) - wanted;
        }
        return loss;
    }

    rheo::llama_shape s_;
    rheo::collection const* state_;
    std::size_t length_;
};

}  // namespace reference
