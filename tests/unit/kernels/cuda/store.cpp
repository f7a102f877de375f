// SPDX-License-Identifier: Apache-2.0
#include "kernels/store/store.hpp"

#include <bit>

#include "laws.hpp"
#include "rheo/tensor/digest.hpp"

using namespace rheo;
using namespace laws;

TEST_CASE("cuda store: has the bits of the definition, any alignment")
{
    for (std::int64_t const count : {1, 7, 8, 9, 255, 4096, 4097}) {
        for (std::size_t const offset : {0U, 1U}) {
            std::vector<float> master(static_cast<std::size_t>(count));
            for (std::size_t i = 0; i < master.size(); ++i) {
                master[i] = std::bit_cast<float>(static_cast<std::uint32_t>(mix_bits(i + 1)) & 0xbfffffffU);  // of any size below 2
            }
            master[0] = 1.00390625F;  // half way between two: to the even one
            std::vector<bfloat16> expected(master.size());
            definition::store({.count = count, .master = master.data(), .stored = expected.data()});
            device::array<float> const from{master, offset};
            for (unsigned order = 0; order < device::orders; ++order) {
                device::set_order(order);
                device::array<bfloat16> const to{count, offset};
                cuda::store(device::queue(), {.count = count, .master = from.data(), .stored = to.data()});
                CHECK(all_bits(to.host()) == all_bits(expected));
                CHECK(to.margins_kept());
            }
        }
    }
}
