// SPDX-License-Identifier: Apache-2.0
// Shards of a layer on the host: products with a cut inner dimension or rows that lie apart, rows of a token table, a vocabulary in parts.
#include <tuple>

#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/linear/linear.hpp"
#include "support.hpp"

using namespace rheo;
using namespace support;

TEST_CASE("shards: partial products of a cut inner dimension add up")
{
    tile_pool pool{2};
    std::int64_t const rows = 70, in = 100, out = 33, cut = 48;
    auto const x = normal(rows * in, 1);
    auto const w = normal(in * out, 2);
    doubles forward(size(rows * out)), bound(forward.size());
    auto const xd = wide(x), wd = wide(w), xa = magnitudes(wide(x)), wa = magnitudes(wide(w));
    definition::linear_forward<fp64>({.rows = rows, .in = in, .out = out, .input = xd.data(), .weight = wd.data(), .output = forward.data()});
    definition::linear_forward<fp64>({.rows = rows, .in = in, .out = out, .input = xa.data(), .weight = wa.data(), .output = bound.data()});
    for (auto& e : bound) {
        e *= static_cast<double>(in + 2) * u;
    }
    auto sum = floats(size(rows * out));
    auto back = poison(rows * out);
    for (auto const& part : {shard_range{0, cut}, shard_range{cut, in}}) {
        floats own_x(size(rows * part.count()));
        for (std::int64_t r = 0; r < rows; ++r) {
            std::copy_n(x.begin() + r * in + part.begin, part.count(), own_x.begin() + r * part.count());
        }
        auto partial = poison(rows * out);
        host::linear_forward(
            pool, {.rows = rows, .in = part.count(), .out = out, .input = own_x.data(), .weight = w.data() + part.begin * out, .partial = partial.data()});
        for (std::size_t i = 0; i < sum.size(); ++i) {
            sum[i] += partial[i];
        }
        // the input gradient of the transposed weight is the same product: here the parts are added by the kernel
        host::linear_backward_input(pool, {.rows = rows,
                                           .in = out,
                                           .out = part.count(),
                                           .order = weight_order::out_in,
                                           .weight = w.data() + part.begin * out,
                                           .output_gradient = x.data() + part.begin,
                                           .accumulate = part.begin > 0,
                                           .partial = back.data(),
                                           .output_gradient_row = in});
    }
    check_within(sum, forward, bound);
    check_within(back, forward, bound);
}

TEST_CASE("shards: two products side by side in one slot")
{
    // columns 0 .. 19 by one weight, 20 .. 52 by another; beside them a column of no shard
    std::int64_t const rows = 70, in = 40, left = 20, right = 33, row = 54;
    auto const x = normal(rows * in, 1);
    auto const w_left = normal(in * left, 2);
    auto const w_right = normal(in * right, 3);
    auto const b = normal(right, 4);
    auto const dy = normal(rows * row, 5);
    check_threads_change_no_bit([&](tile_pool& pool) {
        auto slot = poison(rows * row);
        auto apart_left = poison(rows * left);
        auto apart_right = poison(rows * right);
        linear_forward_arguments<> a{.rows = rows, .in = in, .out = left, .input = x.data(), .weight = w_left.data(), .output = slot.data(), .output_row = row};
        host::linear_forward(pool, a);
        a.output = apart_left.data();
        a.output_row = 0;
        host::linear_forward(pool, a);
        a = {.rows = rows,
             .in = in,
             .out = right,
             .input = x.data(),
             .weight = w_right.data(),
             .bias = b.data(),
             .output = slot.data() + left,
             .output_row = row};
        host::linear_forward(pool, a);
        a.output = apart_right.data();
        a.output_row = 0;
        host::linear_forward(pool, a);
        exact_buffer dw{in * right}, db{right}, dw_apart{in * right}, db_apart{right};
        auto dx = poison(rows * in), dx_apart = poison(rows * in);
        floats dy_right;
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t c = 0; c < row; ++c) {
                float const got = slot[size(r * row + c)];
                float const wanted = c < left ? apart_left[size(r * left + c)] : c < left + right ? apart_right[size(r * right + c - left)] : 0.0F;
                // the same sums; a BLAS may take another way through rows that lie apart
                REQUIRE((c == row - 1 ? std::isnan(got) : std::fabs(got - wanted) <= 1e-4F));
            }
            dy_right.insert(dy_right.end(), dy.begin() + r * row + left, dy.begin() + r * row + left + right);
        }
        for (bool const strided : {false, true}) {
            auto const* gradient = strided ? dy.data() + left : dy_right.data();
            std::int64_t const step = strided ? row : 0;
            host::linear_backward_input(pool, {.rows = rows,
                                               .in = in,
                                               .out = right,
                                               .weight = w_right.data(),
                                               .output_gradient = gradient,
                                               .input_gradient = (strided ? dx : dx_apart).data(),
                                               .output_gradient_row = step});
            host::linear_backward_weight(pool, {.rows = rows,
                                                .in = in,
                                                .out = right,
                                                .input = x.data(),
                                                .output_gradient = gradient,
                                                .weight_gradient = (strided ? dw : dw_apart).target(),
                                                .output_gradient_row = step});
            host::linear_backward_bias(
                pool,
                {.rows = rows, .out = right, .output_gradient = gradient, .bias_gradient = (strided ? db : db_apart).target(), .output_gradient_row = step});
        }
        check_within(dx, wide(dx_apart), 1e-4);
        check_within(dw.values(), wide(dw_apart.values()), 1e-4);
        CHECK(db == db_apart);
        return std::tuple{bits(slot), bits(dx), dw.sums, db.sums};
    });
    tile_pool pool{1};
    floats one(4);
    CHECK_THROWS_AS(
        host::linear_forward(pool, {.rows = 1, .in = 1, .out = 2, .input = one.data(), .weight = one.data(), .output = one.data(), .output_row = 1}),
        precondition_error);
    CHECK_THROWS_AS(host::linear_forward(pool, {.rows = 1, .in = 1, .out = 1, .input = one.data(), .weight = one.data()}), precondition_error);
    CHECK_THROWS_AS(
        host::linear_forward(pool, {.rows = 1, .in = 1, .out = 1, .input = one.data(), .weight = one.data(), .bias = one.data(), .partial = one.data()}),
        precondition_error);
    CHECK_THROWS_AS(host::linear_backward_input(pool, {.rows = 1, .in = 1, .out = 1, .weight = one.data(), .output_gradient = one.data()}), precondition_error);
}

TEST_CASE("shards: rows of the token table make the embedding together")
{
    std::int64_t const batch = 2, length = 13, first = 3, width = 20, vocabulary = 50;
    auto const ids = tokens(batch * length, static_cast<std::int32_t>(vocabulary), 7);
    auto const table = normal(vocabulary * width, 1);
    auto const positions = normal((first + length) * width, 2);
    auto const dy = normal(batch * length * width, 3);
    dropout const drop{.probability = 0.2, .key = {.seed = 5, .step = step_id{1}}};
    tile_pool pool{2};
    embedding_forward_arguments<> forward{.batch = batch,
                                          .length = length,
                                          .first = first,
                                          .width = width,
                                          .vocabulary = vocabulary,
                                          .tokens = ids.data(),
                                          .token_table = table.data(),
                                          .position_table = positions.data(),
                                          .drop = drop,
                                          .output = nullptr};
    auto whole = poison(batch * length * width);
    forward.output = whole.data();
    host::embedding_forward(pool, forward);
    exact_buffer whole_tokens{vocabulary * width}, whole_positions{(first + length) * width};
    embedding_backward_weight_arguments<> backward{.batch = batch,
                                                   .length = length,
                                                   .first = first,
                                                   .width = width,
                                                   .vocabulary = vocabulary,
                                                   .tokens = ids.data(),
                                                   .output_gradient = dy.data(),
                                                   .drop = drop,
                                                   .token_gradient = whole_tokens.target(),
                                                   .position_gradient = whole_positions.target()};
    host::embedding_backward_weight(pool, backward);
    for (int const grid : {1, 2, 3}) {
        auto together = poison(batch * length * width), defined = together;
        std::vector<std::int64_t> token_sums;
        exact_buffer position_sums{(first + length) * width};
        for (int shard = 0; shard < grid; ++shard) {
            auto const range = cut_in_units(vocabulary, 16, grid, shard);
            auto const rows = cut_evenly(first + length, grid, shard);
            forward.token_table = table.data() + range.begin * width;
            forward.token_begin = range.begin;
            forward.token_end = range.end;
            forward.output = together.data();
            host::embedding_forward(pool, forward);
            forward.output = defined.data();
            definition::embedding_forward(forward);
            exact_buffer own{range.count() * width}, defined_own{range.count() * width}, defined_positions{(first + length) * width},
                own_positions{(first + length) * width};
            backward.token_begin = range.begin;
            backward.token_end = range.end;
            backward.position_begin = rows.begin;
            backward.position_end = rows.end;
            backward.token_gradient = own.target();
            backward.position_gradient = own_positions.target();
            host::embedding_backward_weight(pool, backward);
            backward.token_gradient = defined_own.target();
            backward.position_gradient = defined_positions.target();
            definition::embedding_backward_weight(backward);
            CHECK((own == defined_own && own_positions == defined_positions));
            token_sums.insert(token_sums.end(), own.sums.begin(), own.sums.end());
            for (std::size_t i = 0; i < position_sums.sums.size(); ++i) {
                position_sums.sums[i] += own_positions.sums[i];
                CHECK((own_positions.sums[i] == 0 || (i >= size(rows.begin * width) && i < size(rows.end * width))));
            }
        }
        CHECK(bits(together) == bits(whole));
        CHECK(bits(defined) == bits(whole));
        CHECK(token_sums == whole_tokens.sums);
        CHECK(position_sums.sums == whole_positions.sums);
    }
    forward.token_end = vocabulary + 1;
    CHECK_THROWS_AS(host::embedding_forward(pool, forward), precondition_error);
}

namespace {

struct losses {
    floats log_sum, gradient;
    loss_sum loss;
};

/// The loss over a vocabulary in `grid` parts, each of which has its logits alone.
losses in_shards(tile_pool& pool, floats const& logits, std::int64_t rows, std::int64_t vocabulary, int32s const& targets, int grid, bool in_place)
{
    std::vector<row_statistics> statistics(size(grid * rows));
    std::vector<floats> own;
    losses result{poison(rows), poison(rows * vocabulary), {}};
    for (int j = 0; j < grid; ++j) {
        auto const part = cut_in_units(vocabulary, 16, grid, j);
        auto& x = own.emplace_back();
        for (std::int64_t r = 0; r < rows; ++r) {
            x.insert(x.end(), logits.begin() + r * vocabulary + part.begin, logits.begin() + r * vocabulary + part.end);
        }
        host::cross_entropy_statistics(pool, {.rows = rows, .vocabulary = part.count(), .logits = x.data(), .statistics = statistics.data() + j * rows});
    }
    for (int j = 0; j < grid; ++j) {
        auto const part = cut_in_units(vocabulary, 16, grid, j);
        auto& x = own[size(j)];
        auto gradient = in_place ? floats{} : poison(rows * part.count());
        host::cross_entropy_finish(pool, {.rows = rows,
                                          .vocabulary = part.count(),
                                          .first_token = part.begin,
                                          .all_tokens = vocabulary,
                                          .shards = grid,
                                          .statistics = statistics.data(),
                                          .logits = x.data(),
                                          .targets = targets.data(),
                                          .log_sum_exp = result.log_sum.data(),
                                          .logits_gradient = in_place ? x.data() : gradient.data(),
                                          .loss = &result.loss});
        for (std::int64_t r = 0; r < rows; ++r) {
            std::copy_n((in_place ? x : gradient).begin() + r * part.count(), part.count(), result.gradient.begin() + r * vocabulary + part.begin);
        }
    }
    return result;
}

}  // namespace

TEST_CASE("shards: one of a vocabulary has the bits of the whole loss")
{
    tile_pool pool{2};
    for (auto const& [rows, vocabulary] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 50}, {5, 5003}}) {
        auto x = normal(rows * vocabulary, 1, 3.0F);
        auto targets = tokens(rows, static_cast<std::int32_t>(vocabulary), 3);
        targets.back() = rows > 1 ? ignored_target : targets.back();
        auto const parts = in_shards(pool, x, rows, vocabulary, targets, 1, true);
        auto log_sum = poison(rows);
        loss_sum loss, forward_loss;
        host::cross_entropy_forward(
            pool,
            {.rows = rows, .vocabulary = vocabulary, .logits = x.data(), .targets = targets.data(), .log_sum_exp = log_sum.data(), .loss = &forward_loss});
        host::cross_entropy_fused(pool, {.rows = rows, .vocabulary = vocabulary, .logits = x.data(), .targets = targets.data(), .loss = &loss});
        CHECK(bits(parts.gradient) == bits(x));
        CHECK(bits(parts.log_sum) == bits(log_sum));
        CHECK((parts.loss == loss && loss == forward_loss));
    }
}

TEST_CASE("shards: a vocabulary in parts has the loss of the whole")
{
    std::int64_t const rows = 9, vocabulary = 203;
    auto const x = normal(rows * vocabulary, 1, 3.0F);
    auto targets = tokens(rows, static_cast<std::int32_t>(vocabulary), 3);
    targets[4] = ignored_target;
    auto const xd = wide(x);
    doubles log_sum(size(rows)), expected(x.size());
    loss_sum loss;
    definition::cross_entropy_forward<fp64>(
        {.rows = rows, .vocabulary = vocabulary, .logits = xd.data(), .targets = targets.data(), .log_sum_exp = log_sum.data(), .loss = &loss});
    definition::cross_entropy_backward<fp64>({.rows = rows,
                                              .vocabulary = vocabulary,
                                              .logits = xd.data(),
                                              .targets = targets.data(),
                                              .log_sum_exp = log_sum.data(),
                                              .logits_gradient = expected.data()});
    for (int const grid : {2, 3, 5}) {
        check_threads_change_no_bit([&](tile_pool& pool) {
            auto const parts = in_shards(pool, x, rows, vocabulary, targets, grid, false);
            CHECK(bits(in_shards(pool, x, rows, vocabulary, targets, grid, true).gradient) == bits(parts.gradient));
            // as the host's whole loss (tests/unit/kernels/cross_entropy.cpp); a shard's exponential of l - L is within 3e-7 besides
            check_within(parts.log_sum, log_sum, 2e-6);
            CHECK((parts.loss.targets == loss.targets && !parts.loss.not_finite));
            CHECK(std::fabs(static_cast<double>(parts.loss.fixed - loss.fixed)) <= static_cast<double>(rows) * (2e-6 * loss_units_per_nat + 1));
            check_within(parts.gradient, expected, 6e-6);
            return std::tuple{bits(parts.gradient), bits(parts.log_sum), parts.loss.fixed};
        });
    }
    tile_pool pool{1};
    auto broken = x;
    broken[5] = std::numeric_limits<float>::quiet_NaN();  // in the first part of the first row, whose target may be in another
    targets[0] = static_cast<std::int32_t>(vocabulary - 1);
    auto const parts = in_shards(pool, broken, rows, vocabulary, targets, 3, true);
    CHECK((parts.loss.not_finite && parts.loss.targets == rows - 1));
    targets[0] = static_cast<std::int32_t>(vocabulary);
    CHECK_THROWS_AS(in_shards(pool, x, rows, vocabulary, targets, 3, true), precondition_error);
}

TEST_CASE("shards: defined loss in parts is that of the whole")
{
    std::int64_t const rows = 4, vocabulary = 40;
    auto const x = wide(normal(rows * vocabulary, 1, 2.0F));
    int32s const targets{0, 39, ignored_target, 17};
    doubles log_sum(size(rows)), expected(x.size());
    loss_sum loss, of_parts;
    definition::cross_entropy_forward<fp64>(
        {.rows = rows, .vocabulary = vocabulary, .logits = x.data(), .targets = targets.data(), .log_sum_exp = log_sum.data(), .loss = &loss});
    definition::cross_entropy_backward<fp64>({.rows = rows,
                                              .vocabulary = vocabulary,
                                              .logits = x.data(),
                                              .targets = targets.data(),
                                              .log_sum_exp = log_sum.data(),
                                              .logits_gradient = expected.data()});
    std::vector<row_statistics> statistics(size(2 * rows));
    for (std::int64_t const j : {0, 1}) {
        doubles own;
        for (std::int64_t r = 0; r < rows; ++r) {
            own.insert(own.end(), x.begin() + r * vocabulary + 20 * j, x.begin() + r * vocabulary + 20 * (j + 1));
        }
        definition::cross_entropy_statistics<fp64>({.rows = rows, .vocabulary = 20, .logits = own.data(), .statistics = statistics.data() + j * rows});
    }
    for (std::int64_t const j : {0, 1}) {
        doubles own;
        for (std::int64_t r = 0; r < rows; ++r) {
            own.insert(own.end(), x.begin() + r * vocabulary + 20 * j, x.begin() + r * vocabulary + 20 * (j + 1));
        }
        definition::cross_entropy_finish<fp64>({.rows = rows,
                                                .vocabulary = 20,
                                                .first_token = 20 * j,
                                                .all_tokens = vocabulary,
                                                .shards = 2,
                                                .statistics = statistics.data(),
                                                .logits = own.data(),
                                                .targets = targets.data(),
                                                .logits_gradient = own.data(),
                                                .loss = &of_parts});
        for (std::int64_t r = 0; r < rows; ++r) {
            for (std::int64_t v = 0; v < 20; ++v) {
                CHECK(std::fabs(own[size(r * 20 + v)] - expected[size(r * vocabulary + 20 * j + v)]) < 1e-12);
            }
        }
    }
    CHECK((of_parts.targets == loss.targets && std::abs(of_parts.fixed - loss.fixed) <= 1));
}
