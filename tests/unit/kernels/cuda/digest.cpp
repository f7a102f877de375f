// SPDX-License-Identifier: Apache-2.0
// The digest by a device is that of its definition, of runs at any distance.
#include "kernels/digest/digest.hpp"

#include <bit>

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

state_digest by_definition(std::vector<float> const& values, strided_runs const& where)
{
    state_digest sum;
    for (std::int64_t run = 0; run < where.runs; ++run) {
        for (std::int64_t i = 0; i < where.first.count; ++i) {
            auto const bits = std::bit_cast<std::uint32_t>(values[static_cast<std::size_t>(where.first.own + run * where.own_stride + i)]);
            sum += digest_of("wte.weight", tensor_role::first_moment, where.first.in_parameter + run * where.stride_in_parameter + i, {&bits, 1});
        }
    }
    return sum;
}

/// The same in every order.
state_digest on_device(digest_arguments const& asked)
{
    state_digest result;
    auto const blocks = cuda::digest_blocks(asked);
    for (unsigned order = 0; order < device::orders; ++order) {
        device::set_order(order);
        device::array<state_digest> const sums{blocks};
        cuda::digest_by_block(device::queue(), asked, sums.data());
        state_digest sum;
        for (auto const& one : sums.host()) {
            sum += one;
        }
        CHECK((order == 0 || sum == result));
        CHECK(sums.margins_kept());
        result = sum;
    }
    return result;
}

}  // namespace

TEST_CASE("cuda digest: has the bits of the definition")
{
    strided_runs const cases[] = {{.first = {0, 0, 1}},
                                  {.first = {5, std::int64_t{1} << 40, 300}},
                                  {.first = {0, 0, 300'000}},  // more than a turn of all threads
                                  {.first = {2, 7, 3}, .runs = 50, .own_stride = 5, .stride_in_parameter = 64},
                                  {.first = {0, 3, 33}, .runs = 900, .own_stride = 33, .stride_in_parameter = 70}};
    for (auto const& where : cases) {
        std::vector<float> values(static_cast<std::size_t>(where.first.own + (where.runs - 1) * where.own_stride + where.first.count));
        for (std::size_t i = 0; i < values.size(); ++i) {
            values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(mix_bits(i + 1)));
        }
        auto const expected = by_definition(values, where);
        device::array<float> const from{values};
        digest_arguments asked{.key = digest_key("wte.weight", tensor_role::first_moment), .where = where, .values = from.data()};
        CHECK(on_device(asked) == expected);
        CHECK(host::digest({.key = asked.key, .where = where, .values = values.data()}) == expected);

        std::vector<bfloat16> shorter;
        for (auto& value : values) {
            value = shorter.emplace_back(bfloat16::from_bits(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16)));
        }
        device::array<bfloat16> const from_shorter{shorter};
        asked.values = from_shorter.data();
        asked.type = dtype::bf16;
        CHECK(on_device(asked) == by_definition(values, where));
    }
}
