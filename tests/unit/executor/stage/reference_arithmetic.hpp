#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the reference computes with, in double: products, layer norm, attention, GELU and their gradients, each written
// from its paper. Whatever float would store goes through `stored`, which can add the error that float makes.

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace reference {

using values = std::vector<double>;

/// Errors as float makes them, with random signs.
class rounding {
public:
    explicit rounding(unsigned seed) : draw_{seed} {}

    double operator()(double value, double magnitude, double terms)
    {
        double const sign = (draw_() & 1U) != 0 ? 1.0 : -1.0;
        return value + sign * 0x1p-24 * (2 + std::sqrt(terms)) * magnitude;
    }

private:
    std::mt19937 draw_;
};

inline std::size_t size(int count) { return static_cast<std::size_t>(count); }

/// A matrix by strides, so that a transposed one is one, too.
struct view {
    double const* data;
    int row;
    int column;
    double operator()(int r, int c) const { return data[r * row + c * column]; }
};

struct normed {
    values unit;  ///< (x - mean) / deviation
    values size;  ///< (|x| + mean of |x|) / deviation: what float rounds relative to
    values rate;  ///< row -> 1 / deviation
    values y;
};

/// Attention's input and what its backward needs of forward.
struct attended {
    values qkv, probability, log_sum, mixed;
};

/// On the rows of one microbatch.
struct arithmetic {
    rounding* noise;
    int width, heads, sequences, length;
    int rows = sequences * length;

    double stored(double value, double magnitude, double terms = 0) const { return noise == nullptr ? value : (*noise)(value, magnitude, terms); }

    /// a [m, k] times b [k, n], plus bias [n].
    values product(int m, int k, int n, view a, view b, double const* bias = nullptr) const
    {
        values result(size(m * n));
        for (int i = 0; i < m; ++i) {
            for (int j = 0; j < n; ++j) {
                double sum = bias == nullptr ? 0 : bias[j];
                double magnitude = std::fabs(sum);
                for (int l = 0; l < k; ++l) {
                    double const term = a(i, l) * b(l, j);
                    sum += term;
                    magnitude += std::fabs(term);
                }
                result[size(i * n + j)] = stored(sum, magnitude, k);
            }
        }
        return result;
    }

    static void add(double* target, values const& v)
    {
        for (std::size_t i = 0; i < v.size(); ++i) {
            target[i] += v[i];
        }
    }

    values sum(values const& a, values const& b) const
    {
        values result(a.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
            result[i] = stored(a[i] + b[i], std::fabs(a[i] + b[i]));
        }
        return result;
    }

    normed norm(values const& x, double const* gamma, double const* beta) const
    {
        normed n{values(x.size()), values(x.size()), values(size(rows)), values(x.size())};
        for (int r = 0; r < rows; ++r) {
            double mean = 0, mean_size = 0, variance = 0;
            for (int c = 0; c < width; ++c) {
                mean += x[size(r * width + c)] / width;
                mean_size += std::fabs(x[size(r * width + c)]) / width;
            }
            for (int c = 0; c < width; ++c) {
                variance += std::pow(x[size(r * width + c)] - mean, 2) / width;
            }
            double const rate = 1 / std::sqrt(variance + 1e-5);
            n.rate[size(r)] = rate;
            for (int c = 0; c < width; ++c) {
                auto const i = size(r * width + c);
                n.unit[i] = (x[i] - mean) * rate;
                n.size[i] = (std::fabs(x[i]) + mean_size) * rate;
                n.y[i] = stored(n.unit[i] * gamma[c] + beta[c], n.size[i] * std::fabs(gamma[c]) + std::fabs(beta[c]), width);
            }
        }
        return n;
    }

    /// Adds the gradients of gamma and beta, returns the input's.
    values norm_back(normed const& n, values const& dy, double const* gamma, double* dgamma, double* dbeta) const
    {
        for (int c = 0; c < width; ++c) {
            double dg = 0, dg_size = 0, db = 0, db_size = 0;
            for (int r = 0; r < rows; ++r) {
                auto const i = size(r * width + c);
                dg += dy[i] * n.unit[i];
                dg_size += std::fabs(dy[i]) * n.size[i];
                db += dy[i];
                db_size += std::fabs(dy[i]);
            }
            dgamma[c] += stored(dg, dg_size, rows + width);
            dbeta[c] += stored(db, db_size, rows);
        }
        values dx(dy.size());
        for (int r = 0; r < rows; ++r) {
            double along_one = 0, along_unit = 0, one_size = 0, unit_size = 0;  // projections of gamma dy, divided by the width
            for (int c = 0; c < width; ++c) {
                auto const i = size(r * width + c);
                double const g = gamma[c] * dy[i] / width;
                along_one += g;
                along_unit += g * n.unit[i];
                one_size += std::fabs(g);
                unit_size += std::fabs(g) * n.size[i];
            }
            for (int c = 0; c < width; ++c) {
                auto const i = size(r * width + c);
                double const g = gamma[c] * dy[i];
                dx[i] = stored((g - along_one - n.unit[i] * along_unit) * n.rate[size(r)], (std::fabs(g) + one_size + n.size[i] * unit_size) * n.rate[size(r)],
                               width);
            }
        }
        return dx;
    }

    attended attend(values const& qkv) const
    {
        int const d = width / heads;
        attended b{qkv, {}, {}, {}};
        b.probability.assign(size(sequences * heads * length * length), 0);
        b.log_sum.assign(size(sequences * heads * length), 0);
        b.mixed.assign(size(rows * width), 0);
        for (int sh = 0; sh < sequences * heads; ++sh) {
            int const first = sh / heads * length, at = sh % heads * d;
            double const* q = b.qkv.data() + first * 3 * width + at;
            auto const scores = product(length, d, length, {q, 3 * width, 1}, {q + width, 1, 3 * width});
            for (int i = 0; i < length; ++i) {
                double* p = b.probability.data() + (sh * length + i) * length;
                double total = 0;
                for (int j = 0; j <= i; ++j) {
                    total += std::exp(scores[size(i * length + j)] / std::sqrt(d));
                }
                double const log_sum = std::log(total);
                b.log_sum[size(sh * length + i)] = log_sum;
                for (int j = 0; j <= i; ++j) {
                    double const s = scores[size(i * length + j)] / std::sqrt(d);
                    p[j] = std::exp(s - log_sum);
                    p[j] = stored(p[j], p[j] * (2 + std::fabs(s) + std::fabs(log_sum)), i + 1);
                }
            }
            auto const o = product(length, length, d, {b.probability.data() + sh * length * length, length, 1}, {q + 2 * width, 3 * width, 1});
            for (int i = 0; i < length * d; ++i) {
                b.mixed[size((first + i / d) * width + at + i % d)] = o[size(i)];
            }
        }
        return b;
    }

    values attend_back(attended const& b, values const& dmixed) const
    {
        int const d = width / heads;
        values dqkv(size(rows * 3 * width));
        for (int sh = 0; sh < sequences * heads; ++sh) {
            int const first = sh / heads * length, at = sh % heads * d;
            double const* q = b.qkv.data() + first * 3 * width + at;
            double const* dout = dmixed.data() + first * width + at;
            double const* p = b.probability.data() + sh * length * length;
            auto const dp = product(length, d, length, {dout, width, 1}, {q + 2 * width, 1, 3 * width});
            values ds(dp.size());  // of the scores before the division by sqrt(d)
            for (int i = 0; i < length; ++i) {
                double mean = 0, mean_size = 0;
                for (int j = 0; j <= i; ++j) {
                    mean += p[i * length + j] * dp[size(i * length + j)];
                    mean_size += p[i * length + j] * std::fabs(dp[size(i * length + j)]);
                }
                for (int j = 0; j <= i; ++j) {
                    auto const e = size(i * length + j);
                    double const log_size = 2 + std::fabs(b.log_sum[size(sh * length + i)]);
                    ds[e] = stored(p[e] * (dp[e] - mean) / std::sqrt(d), p[e] * (std::fabs(dp[e]) + mean_size) * log_size / std::sqrt(d), d + i);
                }
            }
            auto const dq = product(length, length, d, {ds.data(), length, 1}, {q + width, 3 * width, 1});
            auto const dk = product(length, length, d, {ds.data(), 1, length}, {q, 3 * width, 1});
            auto const dv = product(length, length, d, {p, 1, length}, {dout, width, 1});
            for (int i = 0; i < length * d; ++i) {
                auto* row = dqkv.data() + (first + i / d) * 3 * width + at + i % d;
                row[0] = dq[size(i)];
                row[width] = dk[size(i)];
                row[2 * width] = dv[size(i)];
            }
        }
        return dqkv;
    }

    static constexpr double slope = 0.79788456080286535588;  // sqrt(2 / pi)

    values activate(values const& x) const
    {
        values y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            y[i] = stored(x[i] / (1 + std::exp(-2 * slope * (x[i] + 0.044715 * std::pow(x[i], 3)))), std::fabs(x[i]), 4);
        }
        return y;
    }

    values activate_back(values const& x, values const& dy) const
    {
        values dx(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) {
            double const gate = 1 / (1 + std::exp(-2 * slope * (x[i] + 0.044715 * std::pow(x[i], 3))));
            double const inner = 2 * slope * (1 + 3 * 0.044715 * x[i] * x[i]);
            dx[i] = stored(dy[i] * gate * (1 + x[i] * (1 - gate) * inner), std::fabs(dy[i]) * (1 + std::fabs(x[i])), 4);
        }
        return dx;
    }
};

}  // namespace reference
