// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

struct shape {
    std::int64_t sequences, length, first, turned, kept, head_width;
};

template <dtype_policy Policy, class T, class Table>
rope_arguments<Policy> arguments(shape const& s, Table const* table, T const* input, T* output, bool back)
{
    return {.rows = s.sequences * s.length,
            .length = s.length,
            .first = s.first,
            .turned = s.turned,
            .kept = s.kept,
            .head_width = s.head_width,
            .table = table,
            .input = input,
            .output = output,
            .back = back};
}

}  // namespace

TEMPLATE_TEST_CASE("cuda rope: has the bits of the definition, in place too", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : {shape{1, 1, 0, 2, 1, 2}, shape{2, 3, 0, 3, 1, 6}, shape{2, 3, 5, 4, 2, 64}, shape{3, 5, 0, 5, 1, 32}, shape{1, 2, 1, 40, 8, 128}}) {
        INFO(s.head_width);
        std::int64_t const count = s.sequences * s.length * (s.turned + s.kept) * s.head_width;
        auto const x = stored<T>(normal(count, 1));
        floats table(size((s.first + s.length) * s.head_width));
        fill_rope_table(s.first + s.length, s.head_width, 10000, table.data());
        for (bool const back : {false, true}) {
            std::vector<T> expected(x);
            definition::rope(arguments<policy<T>, T>(s, table.data(), x.data(), expected.data(), back));
            for (std::size_t const offset : {0U, 1U}) {
                auto const d = same_in_every_order([&] {
                    device::array<T> const input{x, offset}, output{count}, both{x};
                    device::array<float> const turns{table};
                    cuda::rope(device::queue(), arguments<policy<T>, T>(s, turns.data(), input.data(), output.data(), back));
                    cuda::rope(device::queue(), arguments<policy<T>, T>(s, turns.data(), both.data(), both.data(), back));
                    CHECK((input.margins_kept() && output.margins_kept() && both.margins_kept() && turns.margins_kept()));
                    CHECK(all_bits(both.host()) == all_bits(output.host()));
                    return all_bits(output.host());
                });
                CHECK(d == all_bits(expected));
            }
        }
    }
}

TEST_CASE("cuda rope: odd head width is rejected as on the host")
{
    CHECK_THROWS_WITH(cuda::rope(device::queue(), arguments<fp32, float, float>({1, 1, 0, 1, 1, 3}, nullptr, nullptr, nullptr, false)),
                      Catch::Matchers::ContainsSubstring("the width of a head that is turned is even"));
}
