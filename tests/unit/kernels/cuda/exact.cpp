// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact/exact.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

template <class T>
void define(std::vector<T> const& g, exact_buffer& sums)
{
    if constexpr (sizeof(T) == 4) {
        definition::exact_accumulate({.count = std::ssize(g), .gradient = g.data(), .target = sums.target()});
    } else {
        definition::exact_accumulate_bf16({.count = std::ssize(g), .gradient = g.data(), .target = sums.target()});
    }
}

template <class T>
void compute(device::array<T> const& g, std::int64_t count, device_sums const& sums)
{
    if constexpr (sizeof(T) == 4) {
        cuda::exact_accumulate(device::queue(), {.count = count, .gradient = g.data(), .target = sums.target()});
    } else {
        cuda::exact_accumulate_bf16(device::queue(), {.count = count, .gradient = g.data(), .target = sums.target()});
    }
}

std::vector<std::int64_t> integers(std::int64_t count, unsigned seed)
{
    std::mt19937_64 random{seed};
    std::vector<std::int64_t> values(size(count));
    for (auto& v : values) {
        v = static_cast<std::int64_t>(random() >> 8) - (std::int64_t{1} << 55);
    }
    return values;
}

}  // namespace

TEMPLATE_TEST_CASE("cuda exact: accumulation and flags match the definition", "", float, bfloat16)
{
    using T = TestType;
    for (std::int64_t const n : {1, 2, 7, 1000, 9001, 9002}) {
        for (int const trouble : {0, 1, 2, 3}) {
            INFO(n << " elements, trouble " << trouble);
            auto values = normal(n, 1, 100.0F);
            if ((trouble & 1) != 0) {
                values[size(n / 2)] = -3e20F;
            }
            if ((trouble & 2) != 0) {
                values[size(n - 1)] = std::numeric_limits<float>::quiet_NaN();
            }
            auto const g = stored<T>(values);
            exact_buffer expected{n, 35};
            define(g, expected);
            define(g, expected);
            for (std::size_t const offset : {0U, 1U}) {
                auto const d = same_in_every_order([&] {
                    device::array<T> const gradient{g, offset};
                    device_sums const sums{exact_buffer{n, 35}};
                    compute(gradient, n, sums);
                    compute(gradient, n, sums);
                    return sums.host();
                });
                CHECK(d == expected);
            }
        }
    }
}

TEST_CASE("cuda exact: add, convert and zero match the definition")
{
    for (std::int64_t const n : {1, 2, 33, 9000}) {
        for (std::size_t const offset : {0U, 1U}) {
            auto const a = integers(n, 1);
            auto const b = integers(n, 2);
            auto added = b;
            definition::exact_add({.count = n, .source = a.data(), .target = added.data()});
            floats converted(size(n));
            definition::exact_convert({.count = n, .sums = a.data(), .scale_log2 = 47, .gradient = converted.data()});
            same_in_every_order([&] {
                device::array<std::int64_t> const source{a, offset}, target{b}, zeros{b, offset};
                device::array<float> const gradient{n};
                cuda::exact_add(device::queue(), {.count = n, .source = source.data(), .target = target.data()});
                cuda::exact_convert(device::queue(), {.count = n, .sums = source.data(), .scale_log2 = 47, .gradient = gradient.data()});
                cuda::exact_zero(device::queue(), n, zeros.data());
                CHECK(target.host() == added);
                CHECK(bits(gradient.host()) == bits(converted));
                CHECK(zeros.host() == std::vector<std::int64_t>(size(n), 0));
                CHECK((source.margins_kept() && target.margins_kept() && zeros.margins_kept() && gradient.margins_kept()));
                return 0;
            });
        }
    }
}
