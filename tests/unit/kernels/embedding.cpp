// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding/embedding.hpp"

#include "support.hpp"

using namespace rheo;
using namespace support;

namespace {

struct shape {
    std::int64_t batch;
    std::int64_t length;
    std::int64_t width;
    std::int32_t vocabulary;
};
constexpr shape shapes[] = {{1, 1, 1, 1}, {1, 7, 5, 3}, {2, 9, 65, 300}, {4, 33, 48, 11}};

dropout some_dropout(double p) { return {.probability = p, .key = {.seed = 5, .step = step_id{1}}}; }

}  // namespace

TEST_CASE("embedding: gradients are the derivatives")
{
    shape const s{2, 3, 4, 5};
    std::int64_t const n = s.batch * s.length * s.width;
    int32s const ids{1, 4, 1, 1, 0, 4};
    auto table = wide(normal(s.vocabulary * s.width, 1));
    auto positions = wide(normal(s.length * s.width, 2));
    auto const dy = wide(normal(n, 3));
    doubles y(size(n));
    doubles dtable(table.size());
    doubles dpositions(positions.size());
    definition::embedding_backward_weight<fp64>({.batch = s.batch,
                                                 .length = s.length,
                                                 .width = s.width,
                                                 .vocabulary = s.vocabulary,
                                                 .tokens = ids.data(),
                                                 .output_gradient = dy.data(),
                                                 .drop = some_dropout(0.3),
                                                 .token_gradient = {dtable.data()},
                                                 .position_gradient = {dpositions.data()}});
    auto const loss = [&] {
        definition::embedding_forward<fp64>({.batch = s.batch,
                                             .length = s.length,
                                             .width = s.width,
                                             .vocabulary = s.vocabulary,
                                             .tokens = ids.data(),
                                             .token_table = table.data(),
                                             .position_table = positions.data(),
                                             .drop = some_dropout(0.3),
                                             .output = y.data()});
        return dot(y, dy);
    };
    check_derivative(table, dtable, loss);
    check_derivative(positions, dpositions, loss);
}

TEST_CASE("embedding: host is the definition, bit for bit")
{
    // forward has one sum and one product; backward adds rows in the definition's order: every rounding is the same
    for (auto const& s : shapes) {
        for (double const p : {0.0, 0.2}) {
            std::int64_t const rows = s.batch * s.length;
            auto const ids = tokens(rows, s.vocabulary, 7);
            auto const table = normal(s.vocabulary * s.width, 1);
            auto const positions = normal(s.length * s.width, 2);
            auto const dy = normal(rows * s.width, 3);
            auto expected = poison(rows * s.width);
            exact_buffer expected_tokens{s.vocabulary * s.width};
            exact_buffer expected_positions{s.length * s.width};
            definition::embedding_forward<fp32>({.batch = s.batch,
                                                 .length = s.length,
                                                 .width = s.width,
                                                 .vocabulary = s.vocabulary,
                                                 .tokens = ids.data(),
                                                 .token_table = table.data(),
                                                 .position_table = positions.data(),
                                                 .drop = some_dropout(p),
                                                 .output = expected.data()});
            definition::embedding_backward_weight<fp32>({.batch = s.batch,
                                                         .length = s.length,
                                                         .width = s.width,
                                                         .vocabulary = s.vocabulary,
                                                         .tokens = ids.data(),
                                                         .output_gradient = dy.data(),
                                                         .drop = some_dropout(p),
                                                         .token_gradient = expected_tokens.target(),
                                                         .position_gradient = expected_positions.target()});
            check_threads_change_no_bit([&](tile_pool& pool) {
                auto y = poison(rows * s.width);
                exact_buffer dtokens{s.vocabulary * s.width};
                exact_buffer dpositions{s.length * s.width};
                host::embedding_forward(pool, {.batch = s.batch,
                                               .length = s.length,
                                               .width = s.width,
                                               .vocabulary = s.vocabulary,
                                               .tokens = ids.data(),
                                               .token_table = table.data(),
                                               .position_table = positions.data(),
                                               .drop = some_dropout(p),
                                               .output = y.data()});
                host::embedding_backward_weight(pool, {.batch = s.batch,
                                                       .length = s.length,
                                                       .width = s.width,
                                                       .vocabulary = s.vocabulary,
                                                       .tokens = ids.data(),
                                                       .output_gradient = dy.data(),
                                                       .drop = some_dropout(p),
                                                       .token_gradient = dtokens.target(),
                                                       .position_gradient = dpositions.target()});
                CHECK(bits(y) == bits(expected));
                CHECK(dtokens == expected_tokens);
                CHECK(dpositions == expected_positions);
                // one table at a time gives the same
                exact_buffer only{s.length * s.width};
                host::embedding_backward_weight(pool, {.batch = s.batch,
                                                       .length = s.length,
                                                       .width = s.width,
                                                       .vocabulary = s.vocabulary,
                                                       .tokens = ids.data(),
                                                       .output_gradient = dy.data(),
                                                       .drop = some_dropout(p),
                                                       .position_gradient = only.target()});
                CHECK(only == expected_positions);
                return std::pair{bits(y), dtokens.sums};
            });
        }
    }
}

TEST_CASE("embedding: without positions a row is that of its token")
{
    std::int64_t const width = 20;
    auto const ids = tokens(34, 5, 7);
    auto const table = normal(5 * width, 1);
    auto const nowhere = floats(size(17 * width));
    for (double const p : {0.0, 0.2}) {
        embedding_forward_arguments<fp32> a{.batch = 2,
                                            .length = 17,
                                            .width = width,
                                            .vocabulary = 5,
                                            .tokens = ids.data(),
                                            .token_table = table.data(),
                                            .position_table = nowhere.data(),
                                            .drop = some_dropout(p),
                                            .output = nullptr};
        auto expected = poison(34 * width);
        a.output = expected.data();
        definition::embedding_forward(a);
        a.position_table = nullptr;
        auto defined = poison(34 * width);
        a.output = defined.data();
        definition::embedding_forward(a);
        tile_pool pool{2};
        auto y = poison(34 * width);
        a.output = y.data();
        host::embedding_forward(pool, a);
        CHECK(y == expected);
        CHECK(defined == expected);
    }
}

TEST_CASE("embedding: a token outside the vocabulary is refused")
{
    floats const table(12);
    floats y(12);
    exact_buffer sums{12};
    tile_pool pool{2};
    for (std::int32_t const bad : {-1, 3}) {
        int32s const ids{0, bad, 1};
        CHECK_THROWS_AS(host::embedding_forward(pool, {.batch = 1,
                                                       .length = 3,
                                                       .width = 4,
                                                       .vocabulary = 3,
                                                       .tokens = ids.data(),
                                                       .token_table = table.data(),
                                                       .position_table = table.data(),
                                                       .output = y.data()}),
                        precondition_error);
        CHECK_THROWS_AS(
            host::embedding_backward_weight(
                pool,
                {.batch = 1, .length = 3, .width = 4, .vocabulary = 3, .tokens = ids.data(), .output_gradient = table.data(), .token_gradient = sums.target()}),
            precondition_error);
    }
}
