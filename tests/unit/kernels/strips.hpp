#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a grid of shards rests on: a kernel that works row by row gives a row the same bits in any strip of rows. One check for the host
// and for the device: `By` has arrays in its memory and calls the kernels of the policy that it names.

#include "kernels/embedding/embedding.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"
#include "support.hpp"

namespace support {

using rheo::dropout, rheo::fill_rope_table;

struct strip_shape {
    std::int64_t rows;
    std::int64_t width;
};

/// Where strips begin, and the end: a row alone, strips of unequal size, and as even as rows can be cut by 4.
inline std::vector<std::vector<std::int64_t>> strips_of(std::int64_t rows)
{
    return {{0, 1, rows / 3, rows - 2, rows}, {0, rows / 4, rows * 2 / 4, rows * 3 / 4, rows}};
}

/// The inputs of all kernels, and what they write.
template <class By>
class strip_check {
public:
    using T = typename By::stored;
    template <class Value>
    using array = typename By::template array<Value>;

    strip_check(By& by, strip_shape s)
        : by_{by},
          s_{s},
          x_{values(2 * n(), 1)},
          other_{values(n(), 2)},
          dy_{values(2 * n(), 3)},
          bypass_{values(n(), 4)},
          gamma_{values(s.width, 5)},
          beta_{values(s.width, 6)},
          mean_{normal(s.rows, 7, 0.1F)},
          rstd_{normal(s.rows, 8, 0.1F, 1.0F)}
    {
    }

    void norms() const
    {
        by_strips("layer_norm", [&](std::int64_t r, std::int64_t count, outputs const& to) {
            auto const at = r * s_.width;
            by_.layer_norm_forward({.rows = count,
                                    .width = s_.width,
                                    .input = x_.data() + at,
                                    .gamma = gamma_.data(),
                                    .beta = beta_.data(),
                                    .output = to.first.data() + at,
                                    .mean = to.mean.data() + r,
                                    .rstd = to.rstd.data() + r});
            by_.layer_norm_backward_input({.rows = count,
                                           .width = s_.width,
                                           .input = x_.data() + at,
                                           .gamma = gamma_.data(),
                                           .mean = mean_.data() + r,
                                           .rstd = rstd_.data() + r,
                                           .output_gradient = dy_.data() + at,
                                           .bypass_gradient = bypass_.data() + at,
                                           .input_gradient = to.second.data() + at});
        });
        by_strips("rms_norm", [&](std::int64_t r, std::int64_t count, outputs const& to) {
            auto const at = r * s_.width;
            by_.rms_norm_forward({.rows = count,
                                  .width = s_.width,
                                  .input = x_.data() + at,
                                  .gamma = gamma_.data(),
                                  .output = to.first.data() + at,
                                  .rstd = to.rstd.data() + r});
            by_.rms_norm_backward_input({.rows = count,
                                         .width = s_.width,
                                         .input = x_.data() + at,
                                         .gamma = gamma_.data(),
                                         .rstd = rstd_.data() + r,
                                         .output_gradient = dy_.data() + at,
                                         .bypass_gradient = bypass_.data() + at,
                                         .input_gradient = to.second.data() + at});
        });
    }

    void residual_sums(dropout const& drop) const
    {
        by_strips("residual_add", [&](std::int64_t r, std::int64_t count, outputs const& to) {
            auto const at = r * s_.width;
            by_.residual_add_forward({.rows = count,
                                      .width = s_.width,
                                      .stream = x_.data() + at,
                                      .branch = other_.data() + at,
                                      .drop = from_row(drop, r),
                                      .output = to.first.data() + at});
            by_.residual_add_backward(
                {.rows = count, .width = s_.width, .output_gradient = dy_.data() + at, .drop = from_row(drop, r), .branch_gradient = to.second.data() + at});
        });
        by_strips("residual_norm forward", [&](std::int64_t r, std::int64_t count, outputs const& to) {
            auto const at = r * s_.width;
            by_.residual_norm_forward({.rows = count,
                                       .width = s_.width,
                                       .stream = x_.data() + at,
                                       .branch = other_.data() + at,
                                       .drop = from_row(drop, r),
                                       .gamma = gamma_.data(),
                                       .beta = beta_.data(),
                                       .residual = to.first.data() + at,
                                       .output = to.second.data() + at,
                                       .mean = to.mean.data() + r,
                                       .rstd = to.rstd.data() + r});
        });
        by_strips("residual_norm backward", [&](std::int64_t r, std::int64_t count, outputs const& to) {
            auto const at = r * s_.width;
            by_.residual_norm_backward({.rows = count,
                                        .width = s_.width,
                                        .residual = x_.data() + at,
                                        .gamma = gamma_.data(),
                                        .mean = mean_.data() + r,
                                        .rstd = rstd_.data() + r,
                                        .output_gradient = dy_.data() + at,
                                        .bypass_gradient = bypass_.data() + at,
                                        .drop = from_row(drop, r),
                                        .stream_gradient = to.first.data() + at,
                                        .branch_gradient = to.second.data() + at});
        });
        by_strips("residual_rms_norm forward", [&](std::int64_t r, std::int64_t count, outputs const& to) {
            auto const at = r * s_.width;
            by_.residual_rms_norm_forward({.rows = count,
                                           .width = s_.width,
                                           .stream = x_.data() + at,
                                           .branch = other_.data() + at,
                                           .drop = from_row(drop, r),
                                           .gamma = gamma_.data(),
                                           .residual = to.first.data() + at,
                                           .output = to.second.data() + at,
                                           .rstd = to.rstd.data() + r});
        });
        by_strips("residual_rms_norm backward", [&](std::int64_t r, std::int64_t count, outputs const& to) {
            auto const at = r * s_.width;
            by_.residual_rms_norm_backward({.rows = count,
                                            .width = s_.width,
                                            .residual = x_.data() + at,
                                            .gamma = gamma_.data(),
                                            .rstd = rstd_.data() + r,
                                            .output_gradient = dy_.data() + at,
                                            .bypass_gradient = bypass_.data() + at,
                                            .drop = from_row(drop, r),
                                            .stream_gradient = to.first.data() + at,
                                            .branch_gradient = to.second.data() + at});
        });
    }

    void activations() const
    {
        by_strips("gelu", [&](std::int64_t r, std::int64_t count, outputs const& to) {
            auto const at = r * s_.width;
            by_.gelu_forward({.count = count * s_.width, .input = x_.data() + at, .output = to.first.data() + at});
            by_.gelu_backward(
                {.count = count * s_.width, .input = x_.data() + at, .output_gradient = dy_.data() + at, .input_gradient = to.second.data() + at});
        });
        by_strips("swiglu", [&](std::int64_t r, std::int64_t count, outputs const& to) {
            auto const at = r * s_.width;
            by_.swiglu_forward({.rows = count, .width = s_.width, .input = x_.data() + 2 * at, .output = to.first.data() + at});
            by_.swiglu_backward({.rows = count,
                                 .width = s_.width,
                                 .input = x_.data() + 2 * at,
                                 .output_gradient = dy_.data() + at,
                                 .input_gradient = to.second.data() + 2 * at});
        });
    }

    /// A strip of one sequence, whose first token has position r.
    void rope(std::int64_t head_width) const
    {
        floats turns(size(s_.rows * head_width));
        fill_rope_table(s_.rows, head_width, 10000, turns.data());
        array<float> const table{turns};
        auto const heads = s_.width / head_width;
        for (bool const back : {false, true}) {
            by_strips("rope", [&](std::int64_t r, std::int64_t count, outputs const& to) {
                by_.rope({.rows = count,
                          .length = count,
                          .first = r,
                          .turned = heads - 1,
                          .kept = 1,
                          .head_width = head_width,
                          .table = table.data(),
                          .input = x_.data() + r * s_.width,
                          .output = to.first.data() + r * s_.width,
                          .back = back});
            });
        }
    }

    void embedding(dropout const& drop) const
    {
        std::int32_t const vocabulary = 19;
        array<std::int32_t> const ids{tokens(s_.rows, vocabulary, 9)};
        array<T> const table{values(vocabulary * s_.width, 10)};
        by_strips("embedding", [&](std::int64_t r, std::int64_t count, outputs const& to) {
            by_.embedding_forward({.batch = 1,
                                   .length = count,
                                   .first = r,
                                   .width = s_.width,
                                   .vocabulary = vocabulary,
                                   .tokens = ids.data() + r,
                                   .token_table = table.data(),
                                   .position_table = other_.data(),
                                   .drop = from_row(drop, r),
                                   .output = to.first.data() + r * s_.width});
        });
    }

private:
    struct outputs {
        array<T> first, second;
        array<float> mean, rstd;

        explicit outputs(strip_shape s) : first{s.rows * s.width}, second{2 * s.rows * s.width}, mean{s.rows}, rstd{s.rows} {}
        auto values() const { return std::vector{all(first), all(second), all(mean), all(rstd)}; }

        template <class Value>
        static std::vector<std::uint32_t> all(array<Value> const& some)
        {
            CHECK(some.margins_kept());
            floats result;
            for (auto const v : some.host()) {
                result.push_back(static_cast<float>(v));
            }
            return bits(result);
        }
    };

    std::int64_t n() const { return s_.rows * s_.width; }

    static std::vector<T> values(std::int64_t count, unsigned seed)
    {
        std::vector<T> result;
        for (auto const v : normal(count, seed)) {
            result.push_back(static_cast<T>(v));
        }
        return result;
    }

    static dropout from_row(dropout drop, std::int64_t row)
    {
        drop.rows.begin = row;
        return drop;
    }

    /// call(first row, rows, outputs) for all rows at once and for strips of them gives the same bits.
    template <class Call>
    void by_strips(char const* kernel, Call call) const
    {
        INFO(kernel << ", " << s_.rows << " x " << s_.width);
        outputs const at_once{s_};
        call(0, s_.rows, at_once);
        for (auto const& begin : strips_of(s_.rows)) {
            outputs const in_strips{s_};
            for (std::size_t i = 0; i + 1 < begin.size(); ++i) {
                call(begin[i], begin[i + 1] - begin[i], in_strips);
            }
            CHECK(in_strips.values() == at_once.values());
        }
    }

    By& by_;
    strip_shape s_;
    array<T> x_, other_, dy_, bypass_, gamma_, beta_;
    array<float> mean_, rstd_;
};

/// All of it, without dropout, with it, and of a slice's rows: tokens 2 .. 4 of sequences of 7.
template <class By>
void check_strips(By& by, strip_shape s, std::int64_t head_width)
{
    strip_check<By> const check{by, s};
    dropout const some{.probability = 0.3, .key = {.seed = 5, .step = rheo::step_id{3}, .layer = rheo::layer_id{2}, .op = rheo::op_id{4}}};
    auto of_slice = some;
    of_slice.rows = {.length = 3, .first = 2, .whole = 7};
    check.norms();
    check.activations();
    check.rope(head_width);
    for (auto const& drop : {dropout{}, some, of_slice}) {
        check.residual_sums(drop);
        check.embedding(drop);
    }
}

}  // namespace support
