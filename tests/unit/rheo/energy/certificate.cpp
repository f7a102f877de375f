// SPDX-License-Identifier: Apache-2.0
// Whatever verify accepts is a least plan: of two operations one after the other, every plan with every flow, sound or not.
#include "rheo/energy/frontier/certificate.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

namespace {

activity_network two_in_a_row()
{
    activity_network p{};
    p.network.events = 3;
    p.network.rows = 1;
    p.network.stages = 1;
    p.network.arcs = {{0, 1, 0}, {1, 2, 1}};
    p.network.operations.resize(2);
    p.curves = {{{ticks{1}, ticks{2}, ticks{3}}, {nanojoules{4}, nanojoules{1}}, nanojoules{10}}};  // 10, 6, 5 nJ
    p.curve_of = {0, 0};
    p.unit = seconds{1.0};
    return p;
}

/// The least cost of any plan that takes so long.
std::int64_t least_cost(activity_network const& p, int time)
{
    auto least = std::numeric_limits<std::int64_t>::max();
    for (int first = 1; first < time; ++first) {
        least = std::min(least, (cost_at(p.curves[0], ticks{first}) + cost_at(p.curves[0], ticks{time - first})).count);
    }
    return least;
}

}  // namespace

TEST_CASE("certificate: wrong or costlier plans have no proof")
{
    auto const p = two_in_a_row();
    std::vector<int> proved(9, 0);
    for (std::int32_t end = 1; end < 9; ++end) {
        for (std::int32_t middle = -1; middle <= end + 1; ++middle) {
            for (std::int64_t in = -8; in < 12; ++in) {
                for (std::int64_t out = -8; out < 12; ++out) {
                    auto const said = verify(p, {{0, middle, end}, {in, out}});
                    if (!said) {
                        continue;
                    }
                    CAPTURE(end, middle, in, out);
                    REQUIRE((middle >= 1 && end - middle >= 1));
                    REQUIRE(said.cost.count == least_cost(p, end));
                    ++proved[static_cast<std::size_t>(end)];
                }
            }
        }
    }
    for (std::size_t end = 2; end < proved.size(); ++end) {
        CAPTURE(end);
        CHECK(proved[end] > 0);
    }
}
