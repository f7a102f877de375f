// SPDX-License-Identifier: Apache-2.0
#include "kernels/shard_sum/shard_sum.hpp"

#include <memory>

#include "../shard_tree.hpp"
#include "kernels/linear/linear.hpp"
#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

/// The sum by ranks with runs of the shards, on one device: nodes first, then of these what is stored.
template <class T>
std::vector<T> by_ranks(partials const& in, int ranks, std::vector<T> const& bias, std::size_t offset)
{
    std::vector<std::unique_ptr<device::array<float>>> memory;
    device::array<T> const to_add{bias}, result{in.rows * in.width, offset};
    shard_sum_arguments<policy<T>> all{
        .rows = in.rows, .width = in.width, .count = 0, .nodes = {}, .bias = bias.empty() ? nullptr : to_add.data(), .output = result.data()};
    for (int rank = 0; rank < ranks; ++rank) {
        for (auto const& node : nodes_within(in.grid(), cut_evenly(in.grid(), ranks, rank))) {
            shard_sum_arguments<policy<T>> a{.rows = in.rows, .width = in.width, .count = node.count(), .nodes = {}};
            for (auto j = node.begin; j < node.end; ++j) {
                memory.push_back(std::make_unique<device::array<float>>(in.values[size(j)], offset));
                a.nodes[size(j - node.begin)].values = memory.back()->data();
            }
            memory.push_back(std::make_unique<device::array<float>>(in.rows * in.width, offset));
            a.node = memory.back()->data();
            cuda::shard_sum(device::queue(), a);
            all.nodes[size(all.count++)] = {.shards = node.count(), .values = a.node};
        }
    }
    cuda::shard_sum(device::queue(), all);
    for (auto const& some : memory) {
        CHECK(some->margins_kept());
    }
    CHECK((to_add.margins_kept() && result.margins_kept()));
    return result.host();
}

}  // namespace

TEMPLATE_TEST_CASE("cuda shard sum: bits of the tree for any owners of shards", "", float, bfloat16)
{
    using T = TestType;
    for (int const grid : {1, 2, 3, 7, 8, 16}) {
        for (std::int64_t const width : {5, 40, 1032}) {
            partials const in{grid, 3, width};
            auto const bias = stored<T>(normal(width, 99));
            for (auto const& b : {std::vector<T>{}, bias}) {
                auto const expected = all_bits(stored<T>(in.from_leaves(single(b))));
                for (int const ranks : {1, 2, 3, 5, 16}) {
                    if (ranks > grid || (ranks > 3 && width > 40)) {
                        continue;
                    }
                    INFO(grid << " shards of " << ranks << " ranks, " << width << " wide");
                    CHECK(all_bits(by_ranks(in, ranks, b, 1)) == expected);
                    CHECK(same_in_every_order([&] { return all_bits(by_ranks(in, ranks, b, 0)); }) == expected);
                }
            }
        }
    }
}

TEMPLATE_TEST_CASE("cuda shard sum: one shard is the product with its bias", "", float, bfloat16)
{
    using T = TestType;
    std::int64_t const rows = 40, in = 64, out = 104;
    cuda::products products;
    device::array<T> const x{stored<T>(normal(rows * in, 1))}, w{stored<T>(normal(in * out, 2))}, b{stored<T>(normal(out, 3))}, whole{rows * out},
        sum{rows * out};
    device::array<float> const partial{rows * out};
    device::scratch const scratch{cuda::workspace::counter_bytes + cuda::products::workspace_bytes};
    linear_forward_arguments<policy<T>> a{.rows = rows, .in = in, .out = out, .input = x.data(), .weight = w.data(), .bias = b.data(), .output = whole.data()};
    cuda::linear_forward(device::queue(), scratch, products, a);
    a.bias = nullptr;
    a.output = nullptr;
    a.partial = partial.data();
    cuda::linear_forward(device::queue(), scratch, products, a);
    cuda::shard_sum<policy<T>>(device::queue(),
                               {.rows = rows, .width = out, .count = 1, .nodes = {{{.values = partial.data()}}}, .bias = b.data(), .output = sum.data()});
    CHECK(all_bits(sum.host()) == all_bits(whole.host()));
    CHECK((partial.margins_kept() && sum.margins_kept() && whole.margins_kept()));
}
