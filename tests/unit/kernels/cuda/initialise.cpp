// SPDX-License-Identifier: Apache-2.0
#include "kernels/initialise/initialise.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

TEST_CASE("cuda initialise: any range has the bits of the host")
{
    tile_pool pool{1};
    for (auto const& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {0, 3000}, {1, 7}, {4711, 300}}) {
        INFO(first << " + " << count);
        auto expected = poison(count);
        host::initialise_normal(pool,
                                {.seed = 3, .tensor = tensor_id{7}, .first = first, .count = count, .mean = 0.5, .deviation = 2.0, .values = expected.data()});
        auto const d = same_in_every_order([&, from = first, n = count] {
            device::array<float> const values{n};
            cuda::initialise_normal(device::queue(),
                                    {.seed = 3, .tensor = tensor_id{7}, .first = from, .count = n, .mean = 0.5, .deviation = 2.0, .values = values.data()});
            CHECK(values.margins_kept());
            return bits(values.host());
        });
        CHECK(d == bits(expected));
    }
}

TEST_CASE("cuda initial values: constants are constant")
{
    for (std::int64_t const count : {1, 257}) {
        device::array<float> const values{count};
        cuda::initialise_constant(device::queue(), {.count = count, .value = 0.1, .values = values.data()});
        CHECK(values.host() == floats(size(count), 0.1F));
        CHECK(values.margins_kept());
    }
}
