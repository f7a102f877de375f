// SPDX-License-Identifier: Apache-2.0
// Parts of parameters: their runs cover each element of the tensor once, in order, at its place in the parameter.
#include "rheo/tensor/parameter_part.hpp"

#include <algorithm>
#include <vector>

#include "rheo/tensor/collection.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

parameter_part part_of(tensor_shape whole, std::vector<index_box> const& boxes)
{
    parameter_part part{.parameter = "p", .whole = whole};
    for (auto const& box : boxes) {
        part.pieces.push_back(box);
    }
    return part;
}

/// Element by element: where in the parameter each element of the tensor lies.
std::vector<std::int64_t> places(parameter_part const& part, tensor_shape shape)
{
    std::vector<std::int64_t> all;
    if (shape.columns == part.whole.columns) {
        for (auto const& box : part.pieces) {
            for (auto r = box.row_begin; r < box.row_end; ++r) {
                for (std::int64_t c = 0; c < shape.columns; ++c) {
                    all.push_back(r * part.whole.columns + c);
                }
            }
        }
        return all;
    }
    for (std::int64_t r = 0; r < shape.rows; ++r) {
        for (auto const& box : part.pieces) {
            for (auto c = box.column_begin; c < box.column_end; ++c) {
                all.push_back((box.row_begin + r) * part.whole.columns + c);
            }
        }
    }
    return all;
}

void check_runs(parameter_part const& part, tensor_shape shape)
{
    auto const expected = places(part, shape);
    REQUIRE(std::ssize(expected) == elements(shape));
    std::int64_t next = 0;
    for_each_run(part, shape, [&](element_run const& run) {
        CHECK(run.own == next);
        for (std::int64_t i = 0; i < run.count; ++i) {
            CHECK(run.in_parameter + i == expected[static_cast<std::size_t>(run.own + i)]);
        }
        next += run.count;
    });
    CHECK(next == elements(shape));
    std::vector<int> covered(expected.size());
    for (auto const& all : strided_runs_of(part, shape)) {
        for (std::int64_t run = 0; run < all.runs; ++run) {
            for (std::int64_t i = 0; i < all.first.count; ++i) {
                auto const own = static_cast<std::size_t>(all.first.own + run * all.own_stride + i);
                CHECK(all.first.in_parameter + run * all.stride_in_parameter + i == expected[own]);
                ++covered[own];
            }
        }
    }
    CHECK(std::count(covered.begin(), covered.end(), 1) == std::ssize(covered));
}

}  // namespace

TEST_CASE("parameter_part: runs cover a part once, at its places")
{
    check_runs(part_of({5, 12}, {{0, 5, 1, 3}, {0, 5, 5, 7}, {0, 5, 9, 11}}), {5, 6});  // columns of queries, keys and values
    check_runs(part_of({1, 12}, {{0, 1, 2, 4}, {0, 1, 8, 10}}), {1, 4});                // of a bias
    check_runs(part_of({12, 5}, {{3, 6, 0, 5}}), {3, 5});                               // rows
    check_runs(part_of({12, 5}, {{0, 2, 0, 5}, {7, 8, 0, 5}}), {3, 5});
    check_runs(part_of({4, 4}, {{0, 4, 0, 4}}), {4, 4});
}

TEST_CASE("parameter_part: rows as wide as the parameter are one run")
{
    int runs = 0;
    for_each_run(part_of({1000, 5}, {{16, 512, 0, 5}}), {496, 5}, [&](element_run const& run) {
        ++runs;
        CHECK(run == element_run{0, 80, 2480});
    });
    CHECK(runs == 1);
}

TEST_CASE("parameter_part: a whole parameter is one run of its own")
{
    tensor_info const tensor{"w", {3, 4}, {}, false, true, {}, {}, {}};
    for_each_run(tensor, [](element_run const& run) { CHECK(run == element_run{0, 0, 12}); });
    CHECK(strided_runs_of(tensor)[0] == strided_runs{.first = {0, 0, 12}});
    CHECK(parameter_name(tensor) == "w");
    CHECK(parameter_shape(tensor) == tensor_shape{3, 4});
}
