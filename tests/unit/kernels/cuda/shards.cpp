// SPDX-License-Identifier: Apache-2.0
// Shards of a layer on the device: products with rows that lie apart or a partial result, rows of a token table, a vocabulary in parts.
#include <memory>
#include <tuple>

#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/linear/linear.hpp"
#include "laws.hpp"

using namespace rheo;
using namespace laws;

TEMPLATE_TEST_CASE("cuda shards: products in a slot of two have the bits of one", "", float, bfloat16)
{
    using T = TestType;
    std::int64_t const rows = 40, in = 32, out = 24, row = 64, left = 16;
    cuda::products products;
    auto const gradient = stored<T>(normal(rows * row, 3));
    std::vector<T> packed_gradient;
    for (std::int64_t r = 0; r < rows; ++r) {
        packed_gradient.insert(packed_gradient.end(), gradient.begin() + r * row + left, gradient.begin() + r * row + left + out);
    }
    device::array<T> const x{stored<T>(normal(rows * in, 1))}, w{stored<T>(normal(in * out, 2))}, b{stored<T>(normal(out, 4))};
    device::scratch const scratch{cuda::linear_backward_parameters_workspace_bytes(rows, in, out)};
    auto const q = device::queue();
    auto const run = [&](bool strided) {
        device::array<T> const y{rows * (strided ? row : out)}, dy{strided ? gradient : packed_gradient}, dx{rows * in};
        device_sums const dw{exact_buffer{in * out}}, db{exact_buffer{out}}, both_w{exact_buffer{in * out}}, both_b{exact_buffer{out}};
        std::int64_t const step = strided ? row : 0, at = strided ? left : 0;
        cuda::linear_forward<policy<T>>(
            q, scratch, products,
            {.rows = rows, .in = in, .out = out, .input = x.data(), .weight = w.data(), .bias = b.data(), .output = y.data() + at, .output_row = step});
        cuda::linear_backward_input<policy<T>>(q, scratch, products,
                                               {.rows = rows,
                                                .in = in,
                                                .out = out,
                                                .weight = w.data(),
                                                .output_gradient = dy.data() + at,
                                                .input_gradient = dx.data(),
                                                .output_gradient_row = step});
        linear_backward_weight_arguments<policy<T>> const weight{.rows = rows,
                                                                 .in = in,
                                                                 .out = out,
                                                                 .input = x.data(),
                                                                 .output_gradient = dy.data() + at,
                                                                 .weight_gradient = dw.target(),
                                                                 .output_gradient_row = step};
        cuda::linear_backward_weight(q, scratch, products, weight);
        cuda::linear_backward_bias<policy<T>>(
            q, scratch, {.rows = rows, .out = out, .output_gradient = dy.data() + at, .bias_gradient = db.target(), .output_gradient_row = step});
        auto both = weight;
        both.weight_gradient = both_w.target();
        cuda::linear_backward_parameters(q, scratch, products, both, both_b.target());
        CHECK((both_w.host() == dw.host() && both_b.host() == db.host()));
        CHECK((y.margins_kept() && dx.margins_kept() && scratch.counters_are_zero()));
        std::vector<T> written;
        auto const all = y.host();
        for (std::int64_t r = 0; r < rows; ++r) {
            auto const from = all.begin() + r * (strided ? row : out) + at;
            written.insert(written.end(), from, from + out);
            for (std::int64_t c = 0; c < row && strided; ++c) {  // what lies beside is untouched
                CHECK(std::isnan(static_cast<float>(all[size(r * row + c)])) == (c < left || c >= left + out));
            }
        }
        return std::tuple{all_bits(written, dx.host()), dw.host(), db.host()};
    };
    CHECK(run(true) == run(false));
}

TEMPLATE_TEST_CASE("cuda shards: partial input gradients stay in float", "", float, bfloat16)
{
    using T = TestType;
    std::int64_t const rows = 40, in = 24, out = 64;
    cuda::products products;
    auto const w = stored<T>(normal(in * out, 2)), dy = stored<T>(normal(rows * out, 3));
    auto const wd = widened(w), dyd = widened(dy), wa = magnitudes(wd), dya = magnitudes(dyd);
    doubles expected(size(rows * in)), bound(expected.size());
    definition::linear_backward_input<fp64>(
        {.rows = rows, .in = in, .out = out, .weight = wd.data(), .output_gradient = dyd.data(), .input_gradient = expected.data()});
    definition::linear_backward_input<fp64>(
        {.rows = rows, .in = in, .out = out, .weight = wa.data(), .output_gradient = dya.data(), .input_gradient = bound.data()});
    for (auto& e : bound) {
        e *= static_cast<double>(out + 2) * u;
    }
    device::array<T> const weight{w}, gradient{dy};
    device::array<float> const partial{rows * in};
    device::scratch const scratch{cuda::workspace::counter_bytes + cuda::products::workspace_bytes};
    linear_backward_input_arguments<policy<T>> a{
        .rows = rows, .in = in, .out = out, .weight = weight.data(), .output_gradient = gradient.data(), .partial = partial.data()};
    cuda::linear_backward_input(device::queue(), scratch, products, a);
    check_within(partial.host(), expected, bound);
    a.accumulate = true;
    cuda::linear_backward_input(device::queue(), scratch, products, a);
    for (std::size_t i = 0; i < expected.size(); ++i) {
        expected[i] *= 2;
        bound[i] *= 2;
    }
    check_within(partial.host(), expected, bound);
    CHECK(partial.margins_kept());
}

TEMPLATE_TEST_CASE("cuda shards: rows of the token table make the embedding", "", float, bfloat16)
{
    using T = TestType;
    std::int64_t const batch = 2, length = 9, first = 3, width = 40, vocabulary = 50;
    auto const ids = tokens(batch * length, static_cast<std::int32_t>(vocabulary), 7);
    auto const table = stored<T>(normal(vocabulary * width, 1)), positions = stored<T>(normal((first + length) * width, 2)),
               dy = stored<T>(normal(batch * length * width, 3));
    dropout const drop{.probability = 0.2, .key = {.seed = 5, .step = step_id{1}}};
    device::array<std::int32_t> const token{ids};
    device::array<T> const places{positions}, gradient{dy};
    std::vector<T> whole(size(batch * length * width));
    embedding_forward_arguments<policy<T>> const defined{.batch = batch,
                                                         .length = length,
                                                         .first = first,
                                                         .width = width,
                                                         .vocabulary = vocabulary,
                                                         .tokens = ids.data(),
                                                         .token_table = table.data(),
                                                         .position_table = positions.data(),
                                                         .drop = drop,
                                                         .output = whole.data()};
    definition::embedding_forward(defined);
    auto const together = same_in_every_order([&] {
        device::array<T> const output{batch * length * width};
        for (int shard = 0; shard < 3; ++shard) {
            auto const range = cut_in_units(vocabulary, 16, 3, shard);
            device::array<T> const rows{std::vector<T>(table.begin() + range.begin * width, table.begin() + range.end * width)};
            auto a = defined;
            a.tokens = token.data();
            a.token_table = rows.data();
            a.position_table = places.data();
            a.output = output.data();
            a.token_begin = range.begin;
            a.token_end = range.end;
            cuda::embedding_forward(device::queue(), a);
            auto const at = cut_evenly(first + length, 3, shard);
            embedding_backward_weight_arguments<policy<T>> b{.batch = batch,
                                                             .length = length,
                                                             .first = first,
                                                             .width = width,
                                                             .vocabulary = vocabulary,
                                                             .tokens = ids.data(),
                                                             .output_gradient = dy.data(),
                                                             .drop = drop,
                                                             .token_begin = range.begin,
                                                             .token_end = range.end,
                                                             .position_begin = at.begin,
                                                             .position_end = at.end};
            exact_buffer token_sums{range.count() * width}, position_sums{(first + length) * width, 28};
            device_sums const to_tokens{token_sums}, to_positions{position_sums};
            b.token_gradient = token_sums.target();
            b.position_gradient = position_sums.target();
            definition::embedding_backward_weight(b);
            auto const order = order_of(ids, vocabulary);
            device::array<std::int32_t> const of{order.rows}, begin{order.first}, segment{order.tokens};
            b.output_gradient = gradient.data();
            b.token_gradient = to_tokens.target();
            b.position_gradient = to_positions.target();
            cuda::embedding_backward_weight(device::queue(),
                                            {.segments = std::ssize(order.tokens), .rows = of.data(), .first = begin.data(), .tokens = segment.data()}, b);
            CHECK((to_tokens.host() == token_sums && to_positions.host() == position_sums && output.margins_kept()));
        }
        return all_bits(output.host());
    });
    CHECK(together == all_bits(whole));
}

namespace {

struct outputs {
    floats log_sum, gradient;
    loss_sum loss;
    friend bool operator==(outputs const& a, outputs const& b)
    {
        return all_bits(a.log_sum, a.gradient) == all_bits(b.log_sum, b.gradient) && a.loss == b.loss;
    }
};

/// The loss over a vocabulary in `grid` parts, each of which has its logits alone.
template <class T>
outputs in_shards(std::vector<T> const& logits, std::int64_t rows, std::int64_t vocabulary, int32s const& targets, int grid, bool in_place)
{
    device::array<row_statistics> const statistics{std::vector<row_statistics>(size(grid * rows))};
    device::array<std::int32_t> const target{targets};
    device::array<float> const log_sum{rows};
    device::array<loss_sum> const loss{std::vector<loss_sum>(1)};
    std::vector<std::unique_ptr<device::array<T>>> own;
    outputs result{{}, floats(size(rows * vocabulary)), {}};
    for (int j = 0; j < grid; ++j) {
        auto const part = cut_in_units(vocabulary, 16, grid, j);
        std::vector<T> x;
        for (std::int64_t r = 0; r < rows; ++r) {
            x.insert(x.end(), logits.begin() + r * vocabulary + part.begin, logits.begin() + r * vocabulary + part.end);
        }
        own.push_back(std::make_unique<device::array<T>>(x));
        cuda::cross_entropy_statistics<policy<T>>(
            device::queue(), {.rows = rows, .vocabulary = part.count(), .logits = own.back()->data(), .statistics = statistics.data() + j * rows});
    }
    for (int j = 0; j < grid; ++j) {
        auto const part = cut_in_units(vocabulary, 16, grid, j);
        device::array<T> const apart{rows * part.count()};
        auto const& to = in_place ? *own[size(j)] : apart;
        cuda::cross_entropy_finish<policy<T>>(device::queue(), {.rows = rows,
                                                                .vocabulary = part.count(),
                                                                .first_token = part.begin,
                                                                .all_tokens = vocabulary,
                                                                .shards = grid,
                                                                .statistics = statistics.data(),
                                                                .logits = own[size(j)]->data(),
                                                                .targets = target.data(),
                                                                .log_sum_exp = log_sum.data(),
                                                                .logits_gradient = to.data(),
                                                                .loss = loss.data()});
        auto const values = single(to.host());
        for (std::int64_t r = 0; r < rows; ++r) {
            std::copy_n(values.begin() + r * part.count(), part.count(), result.gradient.begin() + r * vocabulary + part.begin);
        }
        CHECK((to.margins_kept() && statistics.margins_kept() && log_sum.margins_kept() && loss.margins_kept()));
    }
    result.log_sum = log_sum.host();
    result.loss = loss.host()[0];
    return result;
}

}  // namespace

TEMPLATE_TEST_CASE("cuda shards: a vocabulary in parts has the loss of the whole", "", float, bfloat16)
{
    using T = TestType;
    std::int64_t const rows = 5;
    for (std::int64_t const vocabulary : {200, 1003}) {
        auto const x = stored<T>(normal(rows * vocabulary, 1, 4.0F));
        auto targets = tokens(rows, static_cast<std::int32_t>(vocabulary), 3);
        targets[3] = ignored_target;
        // one part: the bits of the whole
        device::array<T> const logits{x}, fused{x};
        device::array<std::int32_t> const target{targets};
        device::array<float> const log_sum{rows};
        device::array<loss_sum> const loss{std::vector<loss_sum>(2)};
        cuda::cross_entropy_forward<policy<T>>(
            device::queue(),
            {.rows = rows, .vocabulary = vocabulary, .logits = logits.data(), .targets = target.data(), .log_sum_exp = log_sum.data(), .loss = loss.data()});
        cuda::cross_entropy_fused<policy<T>>(
            device::queue(), {.rows = rows, .vocabulary = vocabulary, .logits = fused.data(), .targets = target.data(), .loss = loss.data() + 1});
        outputs const whole{log_sum.host(), single(fused.host()), loss.host()[1]};
        CHECK(in_shards(x, rows, vocabulary, targets, 1, false) == whole);
        CHECK(same_in_every_order([&] { return in_shards(x, rows, vocabulary, targets, 1, true); }) == whole);
        for (int const grid : {2, 3}) {
            auto const parts = same_in_every_order([&] { return in_shards(x, rows, vocabulary, targets, grid, true); });
            CHECK(in_shards(x, rows, vocabulary, targets, grid, false) == parts);
            // both are within 3e-5 of double (tests/unit/kernels/cuda/cross_entropy.cpp): a row adds up in other groups, no more
            check_within(parts.log_sum, wide(whole.log_sum), 6e-5);
            check_within(parts.gradient, wide(whole.gradient), 6e-5 + roundoff<T>);
            CHECK((parts.loss.targets == whole.loss.targets && !parts.loss.not_finite));
            CHECK(std::fabs(static_cast<double>(parts.loss.fixed - whole.loss.fixed)) <= static_cast<double>(rows) * (6e-5 * loss_units_per_nat + 1));
        }
    }
}
