#pragma once
// SPDX-License-Identifier: Apache-2.0

// A GPT in plain double precision: an independent reference. Forward and backward are written here by hand for
// the whole model, from the papers and not from the kernels' definitions; nothing is fused, cut
// or exact. Dropout is off. It shares with the library only the collection (names, shapes, initial values).
//
// It can also tell how far a run in float may be from it. To first order the error of a gradient is the sum over
// all stored intermediate values v of (d gradient / d v) e(v), where e(v) is the local error of computing v in
// float from exact operands. For a sum of n terms t, e(v) is about u (2 + sqrt(n)) sum |t| with u = 2^-24, the
// errors of single operations having independent signs (Higham, Mary: "A new approach to probabilistic rounding
// error analysis", SISC 2019; the 2 is for the rounding of a factor and of the store). Given a `rounding`, the
// reference adds to every stored value that error with a random sign: the result is a draw of what float may do,
// propagated through the real model, amplification included. `float_error` measures several draws.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/initialise/initialise.hpp"
#include "reference_arithmetic.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"

namespace reference {

/// Tokens and targets of a microbatch, [sequences * tokens]; a target of -1 does not count.
struct microbatch {
    std::vector<std::int32_t> tokens;
    std::vector<std::int32_t> targets;
};

/// Plain sums over a step: gradients per tensor as in the collection (empty for the loss), loss in nats, targets.
struct step_sums {
    std::vector<values> gradients;
    double loss = 0;
    std::int64_t targets = 0;

    double mean_loss() const { return loss / static_cast<double>(targets); }
};

class gpt {
public:
    gpt(rheo::gpt_shape shape, rheo::microbatch_shape microbatch, std::uint64_t seed)
        : shape_{shape}, sequences_{microbatch.sequences}, length_{microbatch.tokens}, state_{rheo::state_of(rheo::gpt_model(shape))}
    {
        for (std::size_t t = 0; t < state_.tensors.size(); ++t) {
            auto const& tensor = state_.tensors[t];
            auto const count = tensor.is_parameter ? elements(tensor.shape) : 0;
            std::vector<float> initial(static_cast<std::size_t>(count), static_cast<float>(tensor.initial.mean));
            if (count != 0 && tensor.initial.deviation != 0) {
                rheo::definition::initialise_normal<rheo::fp32>({.seed = seed,
                                                                 .tensor = rheo::tensor_id{static_cast<int>(t)},
                                                                 .count = count,
                                                                 .mean = tensor.initial.mean,
                                                                 .deviation = tensor.initial.deviation,
                                                                 .values = initial.data()});
            }
            parameters.emplace_back(initial.begin(), initial.end());
        }
    }

    std::vector<values> parameters;  ///< tensor -> elements, row-major

    rheo::collection const& info() const { return state_; }

    /// The sums of a step's microbatches; with `noise`, one draw of what float would make of them.
    step_sums sums(std::span<microbatch const> step, rounding* noise = nullptr) const
    {
        step_sums result;
        for (auto const& p : parameters) {
            result.gradients.emplace_back(p.size());
        }
        for (auto const& m : step) {
            pass{{noise, shape_.width, shape_.heads, sequences_, length_}, *this, m, result}.run();
        }
        return result;
    }

private:
    std::size_t tensor(std::string const& name) const
    {
        for (std::size_t t = 0; t < state_.tensors.size(); ++t) {
            if (state_.tensors[t].name == name) {
                return t;
            }
        }
        throw std::logic_error{"the reference knows no tensor " + name};
    }

    struct block_values {
        std::string prefix;
        values x, middle, before, after;
        normed n1, n2;
        attended mix;
    };

    /// One microbatch, forward and backward.
    struct pass : arithmetic {
        gpt const& self;
        microbatch const& data;
        step_sums& out;

        double const* parameter(std::string const& name) const { return self.parameters[self.tensor(name)].data(); }
        double* gradient(std::string const& name) const { return out.gradients[self.tensor(name)].data(); }

        values linear(values const& x, int in, int columns, std::string const& name) const
        {
            return product(rows, in, columns, {x.data(), in, 1}, {parameter(name + ".weight"), columns, 1}, parameter(name + ".bias"));
        }

        /// Adds the gradients of weight and bias, returns the input's.
        values linear_back(values const& x, values const& dy, int in, int columns, std::string const& name) const
        {
            auto const dw = product(in, rows, columns, {x.data(), 1, in}, {dy.data(), columns, 1});
            double const one = 1;
            auto const db = product(1, rows, columns, {&one, 0, 0}, {dy.data(), columns, 1});
            add(gradient(name + ".weight"), dw);
            add(gradient(name + ".bias"), db);
            return product(rows, columns, in, {dy.data(), columns, 1}, {parameter(name + ".weight"), 1, columns});
        }

        normed normalise(values const& x, std::string const& name) const { return norm(x, parameter(name + ".weight"), parameter(name + ".bias")); }

        values norm_gradients(normed const& n, values const& dy, std::string const& name) const
        {
            return norm_back(n, dy, parameter(name + ".weight"), gradient(name + ".weight"), gradient(name + ".bias"));
        }

        block_values block(std::string prefix, values x) const
        {
            block_values b{.prefix = std::move(prefix), .x = std::move(x), .middle = {}, .before = {}, .after = {}, .n1 = {}, .n2 = {}, .mix = {}};
            b.n1 = normalise(b.x, b.prefix + "ln_1");
            b.mix = attend(linear(b.n1.y, width, 3 * width, b.prefix + "attn.c_attn"));
            b.middle = sum(b.x, linear(b.mix.mixed, width, width, b.prefix + "attn.c_proj"));
            b.n2 = normalise(b.middle, b.prefix + "ln_2");
            b.before = linear(b.n2.y, width, 4 * width, b.prefix + "mlp.c_fc");
            b.after = activate(b.before);
            return b;
        }

        values block_output(block_values const& b) const { return sum(b.middle, linear(b.after, 4 * width, width, b.prefix + "mlp.c_proj")); }

        values block_back(block_values const& b, values const& dout) const
        {
            auto const dafter = linear_back(b.after, dout, 4 * width, width, b.prefix + "mlp.c_proj");
            auto const dn2 = linear_back(b.n2.y, activate_back(b.before, dafter), width, 4 * width, b.prefix + "mlp.c_fc");
            auto const dmiddle = sum(dout, norm_gradients(b.n2, dn2, b.prefix + "ln_2"));
            auto const dmixed = linear_back(b.mix.mixed, dmiddle, width, width, b.prefix + "attn.c_proj");
            auto const dn1 = linear_back(b.n1.y, attend_back(b.mix, dmixed), width, 3 * width, b.prefix + "attn.c_attn");
            return sum(dmiddle, norm_gradients(b.n1, dn1, b.prefix + "ln_1"));
        }

        void run() const
        {
            values x(size(rows * width));
            for (int i = 0; i < rows * width; ++i) {
                double const v =
                    parameter("wte.weight")[data.tokens[size(i / width)] * width + i % width] + parameter("wpe.weight")[i / width % length * width + i % width];
                x[size(i)] = stored(v, std::fabs(v));
            }
            std::vector<block_values> blocks;
            for (int l = 0; l < self.shape_.blocks; ++l) {
                blocks.push_back(block("h." + std::to_string(l) + ".", std::move(x)));
                x = block_output(blocks.back());
            }
            auto const last = normalise(x, "ln_f");
            auto dx = norm_gradients(last, classify(last.y), "ln_f");
            for (int l = self.shape_.blocks; l-- > 0;) {
                dx = block_back(blocks[size(l)], dx);
            }
            embed_back(dx);
        }

        /// Logits, loss and their gradients; returns the gradient of `x`.
        values classify(values const& x) const
        {
            int const n = self.shape_.vocabulary;
            std::string const name = self.shape_.tied ? "wte.weight" : "lm_head.weight";
            auto logits = product(rows, width, n, {x.data(), width, 1}, {parameter(name), 1, width});
            for (int r = 0; r < rows; ++r) {
                double* l = logits.data() + r * n;
                auto const target = data.targets[size(r)];
                double total = 0;
                for (int v = 0; v < n; ++v) {
                    total += std::exp(l[v]);
                }
                double const log_sum = std::log(total);
                if (target >= 0) {
                    out.loss += stored(log_sum - l[target], std::fabs(log_sum) + std::fabs(l[target]), 4);
                    ++out.targets;
                }
                for (int v = 0; v < n; ++v) {
                    double const p = std::exp(l[v] - log_sum);
                    double const magnitude = p * (2 + std::fabs(l[v]) + std::fabs(log_sum));
                    l[v] = target < 0 ? 0 : stored(p - (v == target ? 1 : 0), magnitude + (v == target ? 1 : 0), 4);
                }
            }
            add(gradient(name), product(n, rows, width, {logits.data(), 1, n}, {x.data(), width, 1}));
            return product(rows, n, width, {logits.data(), n, 1}, {parameter(name), width, 1});
        }

        void embed_back(values const& dx) const
        {
            scatter(dx, gradient("wte.weight"), self.shape_.vocabulary, [&](int r) { return data.tokens[size(r)]; });
            scatter(dx, gradient("wpe.weight"), length, [&](int r) { return r % length; });
        }

        template <class Place>
        void scatter(values const& dx, double* target, int places, Place place) const
        {
            values sum(size(places * width)), magnitude(size(places * width)), terms(size(places * width));
            for (int i = 0; i < rows * width; ++i) {
                auto const e = size(place(i / width) * width + i % width);
                sum[e] += dx[size(i)];
                magnitude[e] += std::fabs(dx[size(i)]);
                ++terms[e];
            }
            for (std::size_t e = 0; e < sum.size(); ++e) {
                target[e] += stored(sum[e], magnitude[e], terms[e]);
            }
        }
    };

    rheo::gpt_shape shape_;
    int sequences_;
    int length_;
    rheo::collection state_;
};

/// The Euclidean distance of two tensors.
template <class A, class B>
double distance(A const& a, B const& b)
{
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        squares += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    }
    return std::sqrt(squares);
}

/// How far a step in float may be from the reference: per tensor in Euclidean norm, and for the summed loss.
struct float_distance {
    values gradients;
    double loss = 0;
};

/// Four times the largest of several draws. A draw is a sum of many independent errors, so its norm is near its expectation; the
/// factor covers what the model leaves out (operations that round twice, second order, signs that are not quite independent).
/// Rounding to exact sums is not included: half a unit per contribution and element.
inline float_distance float_error(gpt const& model, std::span<microbatch const> step, int draws = 6)
{
    auto const exact = model.sums(step);
    float_distance result{values(exact.gradients.size()), 0};
    for (int d = 0; d < draws; ++d) {
        rounding noise{static_cast<unsigned>(d) + 1};
        auto const drawn = model.sums(step, &noise);
        for (std::size_t t = 0; t < exact.gradients.size(); ++t) {
            result.gradients[t] = std::max(result.gradients[t], 4 * distance(exact.gradients[t], drawn.gradients[t]));
        }
        result.loss = std::max(result.loss, 4 * std::fabs(drawn.loss - exact.loss));
    }
    return result;
}

}  // namespace reference
