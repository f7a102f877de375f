// SPDX-License-Identifier: Apache-2.0
// Sums over shards: the bits of a tree that is built another way, for any runs of ranks; with one shard those of the product with its bias.
#include "kernels/shard_sum/shard_sum.hpp"

#include "kernels/linear/linear.hpp"
#include "shard_tree.hpp"

using namespace rheo;
using namespace support;

namespace {

void sum_on_host(shard_sum_arguments<> const& a)
{
    tile_pool pool{2};
    host::shard_sum(pool, a);
}

/// What ranks with runs of the shards make together: each adds up its nodes, one adds those.
floats by_ranks(partials const& in, int ranks, floats const& bias)
{
    std::vector<floats> sums;
    shard_sum_arguments<> all{.rows = in.rows, .width = in.width, .count = 0, .nodes = {}, .bias = bias.empty() ? nullptr : bias.data()};
    sums.reserve(16);
    for (int rank = 0; rank < ranks; ++rank) {
        for (auto const& node : nodes_within(in.grid(), cut_evenly(in.grid(), ranks, rank))) {
            auto a = in.arguments<fp32>(node);
            a.node = sums.emplace_back(poison(in.rows * in.width)).data();
            sum_on_host(a);
            all.nodes[size(all.count++)] = {.shards = node.count(), .values = sums.back().data()};
        }
    }
    auto result = poison(in.rows * in.width);
    all.output = result.data();
    sum_on_host(all);
    return result;
}

}  // namespace

TEST_CASE("shard sum: bits of the tree for any owners of shards")
{
    for (int const grid : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16}) {
        partials const in{grid, 19, 37};
        auto const bias = normal(in.width, 99);
        for (auto const& b : {floats{}, bias}) {
            auto const expected = bits(in.from_leaves(b));
            for (int ranks = 1; ranks <= grid; ++ranks) {
                INFO(grid << " shards of " << ranks << " ranks");
                CHECK(bits(by_ranks(in, ranks, b)) == expected);
            }
            auto defined = poison(in.rows * in.width);
            auto a = in.arguments<fp32>({0, grid});
            a.bias = b.empty() ? nullptr : b.data();
            a.output = defined.data();
            definition::shard_sum(a);
            CHECK(bits(defined) == expected);
            check_threads_change_no_bit([&](tile_pool& pool) {
                auto result = poison(in.rows * in.width);
                a.output = result.data();
                host::shard_sum(pool, a);
                CHECK(bits(result) == expected);
                return bits(result);
            });
        }
        // a node takes the place of its first shard
        auto copy = in;
        auto a = copy.arguments<fp32>({0, grid});
        a.node = copy.values.front().data();
        sum_on_host(a);
        CHECK(bits(copy.values.front()) == bits(in.from_leaves({})));
    }
}

TEST_CASE("shard sum: one shard is the product with its bias")
{
    tile_pool pool{2};
    std::int64_t const rows = 300, in = 65, out = 401;
    auto const x = normal(rows * in, 1);
    auto const w = normal(in * out, 2);
    auto const b = normal(out, 3);
    for (auto const* bias : {b.data(), static_cast<float const*>(nullptr)}) {
        auto whole = poison(rows * out);
        auto partial = poison(rows * out);
        auto sum = poison(rows * out);
        host::linear_forward(pool, {.rows = rows, .in = in, .out = out, .input = x.data(), .weight = w.data(), .bias = bias, .output = whole.data()});
        host::linear_forward(pool, {.rows = rows, .in = in, .out = out, .input = x.data(), .weight = w.data(), .partial = partial.data()});
        host::shard_sum(pool, {.rows = rows, .width = out, .count = 1, .nodes = {{{.values = partial.data()}}}, .bias = bias, .output = sum.data()});
        CHECK(bits(sum) == bits(whole));
    }
}

TEST_CASE("shard sum: is the sum, with a rounding each")
{
    partials const in{7, 3, 5};
    doubles expected(size(in.rows * in.width));
    doubles whole(expected.size());
    for (auto const& one : in.values) {
        for (std::size_t i = 0; i < expected.size(); ++i) {
            expected[i] += static_cast<double>(one[i]);
            whole[i] += std::fabs(static_cast<double>(one[i]));
        }
    }
    for (auto& e : whole) {
        e *= 3 * u;  // a leaf is in three sums
    }
    check_within(in.from_leaves({}), expected, whole);
    check_within(by_ranks(in, 3, {}), expected, whole);
}

TEST_CASE("shard sum: what is no node, or for nothing, is refused")
{
    partials const in{4, 2, 3};
    auto result = poison(6);
    auto a = in.arguments<fp32>({0, 4});
    CHECK_THROWS_AS(sum_on_host(a), precondition_error);  // nowhere to put it
    a.output = result.data();
    a.nodes[1].shards = 2;
    CHECK_THROWS_AS(sum_on_host(a), precondition_error);
    a = in.arguments<fp32>({0, 4});
    a.node = result.data();
    a.bias = in.values[0].data();
    CHECK_THROWS_AS(sum_on_host(a), precondition_error);
    a.count = 0;
    CHECK_THROWS_AS(definition::shard_sum(a), precondition_error);
}
