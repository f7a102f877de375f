// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding/embedding.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

struct shape {
    std::int64_t batch, length, first, width, vocabulary;
    std::int64_t rows() const { return batch * length; }
};
constexpr shape shapes[] = {{1, 1, 0, 1, 1}, {2, 3, 0, 7, 5}, {3, 4, 2, 33, 4}, {2, 20, 0, 264, 6}, {1, 30, 1, 1040, 50}};

dropout drop_of(shape const& s, bool active)
{
    random_key const key{.seed = 7, .step = step_id{3}, .microbatch = microbatch_id{1}, .layer = layer_id{2}, .op = op_id{4}};
    return active ? dropout{.probability = 0.5, .key = key, .rows = {.length = s.length, .first = s.first, .whole = s.first + s.length}} : dropout{};
}

}  // namespace

TEST_CASE("token order: rows of a token are adjacent, in order")
{
    CHECK(order_of(int32s{3, 1, 3, 0, 1, 3}, 4) == token_order{.rows = {3, 1, 4, 0, 2, 5}, .first = {0, 1, 3, 6}, .tokens = {0, 1, 3}});
    CHECK(order_of({}, 4) == token_order{.rows = {}, .first = {0}, .tokens = {}});
    CHECK_THROWS_WITH(order_of(int32s{0, 4}, 4), Catch::Matchers::ContainsSubstring("a token is not in the vocabulary"));
    CHECK_THROWS_WITH(order_of(int32s{-1}, 4), Catch::Matchers::ContainsSubstring("a token is not in the vocabulary"));
}

TEMPLATE_TEST_CASE("cuda embedding: forward has the bits of the definition", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : shapes) {
        auto const ids = tokens(s.rows(), static_cast<std::int32_t>(s.vocabulary), 1);
        auto const table = stored<T>(normal(s.vocabulary * s.width, 2));
        auto const positions = stored<T>(normal((s.first + s.length) * s.width, 3));
        for (int const form : {0, 1, 2, 3}) {  // with positions, with dropout
            INFO(s.width << ", form " << form);
            auto const drop = drop_of(s, form >= 2);
            std::vector<T> expected(size(s.rows() * s.width));
            definition::embedding_forward<policy<T>>({.batch = s.batch,
                                                      .length = s.length,
                                                      .first = s.first,
                                                      .width = s.width,
                                                      .vocabulary = s.vocabulary,
                                                      .tokens = ids.data(),
                                                      .token_table = table.data(),
                                                      .position_table = form % 2 == 1 ? positions.data() : nullptr,
                                                      .drop = drop,
                                                      .output = expected.data()});
            for (std::size_t const offset : {0U, 1U}) {
                auto const d = same_in_every_order([&] {
                    device::array<std::int32_t> const token{ids};
                    device::array<T> const rows{table, offset}, places{positions}, output{s.rows() * s.width};
                    cuda::embedding_forward<policy<T>>(device::queue(), {.batch = s.batch,
                                                                         .length = s.length,
                                                                         .first = s.first,
                                                                         .width = s.width,
                                                                         .vocabulary = s.vocabulary,
                                                                         .tokens = token.data(),
                                                                         .token_table = rows.data(),
                                                                         .position_table = form % 2 == 1 ? places.data() : nullptr,
                                                                         .drop = drop,
                                                                         .output = output.data()});
                    CHECK((rows.margins_kept() && places.margins_kept() && output.margins_kept() && token.margins_kept()));
                    return all_bits(output.host());
                });
                CHECK(d == all_bits(expected));
            }
        }
    }
}

TEMPLATE_TEST_CASE("cuda embedding: backward has the bits of the definition", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : shapes) {
        auto const ids = tokens(s.rows(), static_cast<std::int32_t>(s.vocabulary), 1);
        auto const dy = stored<T>(normal(s.rows() * s.width, 2));
        auto const order = order_of(ids, s.vocabulary);
        for (bool const drops : {false, true}) {
            INFO(s.width << ", dropout " << drops);
            auto const drop = drop_of(s, drops);
            exact_buffer token_sums{s.vocabulary * s.width}, position_sums{(s.first + s.length) * s.width, 28};
            definition::embedding_backward_weight<policy<T>>({.batch = s.batch,
                                                              .length = s.length,
                                                              .first = s.first,
                                                              .width = s.width,
                                                              .vocabulary = s.vocabulary,
                                                              .tokens = ids.data(),
                                                              .output_gradient = dy.data(),
                                                              .drop = drop,
                                                              .token_gradient = token_sums.target(),
                                                              .position_gradient = position_sums.target()});
            for (std::size_t const offset : {0U, 1U}) {
                same_in_every_order([&] {
                    // at the second offset as a launch that serves any tokens and any key: with as many segments as there can be, and the stream in memory
                    auto segments = order;
                    auto way = drop;
                    device::array<random_stream> const stream{std::vector{stream_of(drop.key)}};
                    if (offset == 1) {
                        segments.first.resize(size(s.rows() + 1), static_cast<std::int32_t>(s.rows()));
                        segments.tokens.resize(size(s.rows()), 0);
                        way.key = {};
                        way.stream = drops ? stream.data() : nullptr;
                    }
                    device::array<std::int32_t> const rows{segments.rows}, first{segments.first}, segment_tokens{segments.tokens};
                    device::array<T> const gradient{dy, offset};
                    device_sums const to_tokens{exact_buffer{s.vocabulary * s.width}}, to_positions{exact_buffer{(s.first + s.length) * s.width, 28}};
                    cuda::token_order_on_device const on_device{
                        .segments = std::ssize(segments.tokens), .rows = rows.data(), .first = first.data(), .tokens = segment_tokens.data()};
                    cuda::embedding_backward_weight<policy<T>>(device::queue(), on_device,
                                                               {.batch = s.batch,
                                                                .length = s.length,
                                                                .first = s.first,
                                                                .width = s.width,
                                                                .vocabulary = s.vocabulary,
                                                                .tokens = nullptr,
                                                                .output_gradient = gradient.data(),
                                                                .drop = way,
                                                                .token_gradient = to_tokens.target(),
                                                                .position_gradient = to_positions.target()});
                    CHECK(to_tokens.host() == token_sums);
                    CHECK(to_positions.host() == position_sums);
                    CHECK(gradient.margins_kept());
                    return 0;
                });
            }
        }
    }
}
