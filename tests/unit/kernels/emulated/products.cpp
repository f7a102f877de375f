// SPDX-License-Identifier: Apache-2.0
// Products of the emulated tensor cores, of warps and of warpgroups, and what is wrong before and after them.
#include <vector>

#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matrix.cuh"
#include "kernels/cuda/vector.cuh"
#include "kernels/cuda/warpgroup.cuh"
#include "support/catch.hpp"

using namespace rheo::cuda;
using Catch::Matchers::ContainsSubstring;
using rheo::bfloat16;

namespace {

constexpr int tile_width = 64;

/// left [16, terms] by rows; the products with the transposed of right [16, terms], and with right itself, of its first 16 rows as terms.
struct tile_operands {
    bfloat16 const* left;
    bfloat16 const* right;
    int rows;  ///< of both that there are
    int columns;
    float* transposed;  // [16, 16]
    float* plain;       // [16, tile_width]
};

void tile_products(tile_operands a)
{
    auto* const memory = shared_memory<bfloat16>();
    shared_rows<tile_width> const left{memory};
    shared_rows<tile_width> const right{memory + 16 * tile_width};
    int const thread = static_cast<int>(threadIdx.x);
    left.fill<16, 32>(a.left, a.columns, a.rows, a.columns, thread);
    right.fill<16, 32>(a.right, a.columns, a.rows, a.columns, thread);
    end_group();
    await_groups<0>();
    __syncthreads();
    auto const put = [&](sum_tile const& sum, float* to, int step, int column) {
        for (int c = 0; c < 4; ++c) {
            to[(thread / 4 + c / 2 * 8) * step + column + thread % 4 * 2 + c % 2] = sum.at[c];
        }
    };
    sum_tile sums[2] = {};
    for (int term = 0; term < tile_width; term += 16) {
        auto const rows = left.left(0, term, thread);
        right_tile columns[2];
        right.right_transposed(columns, 0, term, thread);
        multiply_add(sums[0], rows, columns[0]);
        multiply_add(sums[1], rows, columns[1]);
    }
    put(sums[0], a.transposed, 16, 0);
    put(sums[1], a.transposed, 16, 8);
    auto const rows = left.left(0, 16, thread);
    for (int column = 0; column < tile_width; column += 16) {
        right_tile columns[2];
        right.right(columns, 0, column, thread);
        for (int i = 0; i < 2; ++i) {
            sum_tile sum{};
            multiply_add(sum, rows, columns[i]);
            put(sum, a.plain, tile_width, column + 8 * i);
        }
    }
}

/// Small whole numbers, whose products and sums are exact in any order.
std::vector<bfloat16> whole_numbers(std::size_t count, int seed)
{
    std::vector<bfloat16> values;
    for (std::size_t i = 0; i < count; ++i) {
        values.emplace_back(static_cast<float>(static_cast<int>(i * i * 7 + i * static_cast<std::size_t>(seed)) % 17 - 8));
    }
    return values;
}

constexpr int group_width = 128;
constexpr int group_terms = 64;  // rows of the right matrix

/// left and right are [64, 128].
struct group_operands {
    bfloat16 const* left;
    bfloat16 const* right;
    float* transposed;  // [64, 64] = left right^T
    float* plain;       // [64, 128] = that, which has to be small whole numbers, times right
};

enum class left_out { nothing, wait_for_copies, show, begin, wait_for_products };

template <left_out What>
void group_products(group_operands a)
{
    auto* const memory = shared_memory<bfloat16>();
    group_rows<64, group_width> const left{memory};
    group_rows<group_terms, group_width> const right{memory + 64 * group_width};
    int const thread = static_cast<int>(threadIdx.x);
    left.fill<64, 128>(a.left, group_width, 64, group_width, thread);
    right.fill<group_terms, 128>(a.right, group_width, group_terms, group_width, thread);
    end_group();
    if constexpr (What != left_out::wait_for_copies) {
        await_groups<0>();
    }
    if constexpr (What != left_out::show) {
        show_copies_to_products();
    }
    __syncthreads();
    auto const put = [&]<int Tiles>(sum_tile const(&sums)[Tiles], float* to) {
        for (int n = 0; n < Tiles; ++n) {
            for (int c = 0; c < 4; ++c) {
                to[(thread / 32 * 16 + thread % 32 / 4 + c / 2 * 8) * Tiles * 8 + n * 8 + thread % 4 * 2 + c % 2] = sums[n].at[c];
            }
        }
    };
    sum_tile sums[group_terms / 8] = {};
    if constexpr (What != left_out::begin) {
        begin_products();
    }
    for (int term = 0; term < group_width; term += 16) {
        multiply_across(sums, left.terms_across(0, term), right.terms_across(0, term), term > 0);
    }
    if constexpr (What != left_out::wait_for_products) {
        await_products(sums);
    }
    put(sums, a.transposed);
    sum_tile products[group_width / 8] = {};
    begin_products();
    for (int k = 0; k < group_terms / 8; k += 2) {
        left_tile weights;
        for (int at = 0; at < 4; ++at) {
            weights.at[at] = two_bfloat16(sums[k + at / 2].at[at % 2 * 2], sums[k + at / 2].at[at % 2 * 2 + 1]);
        }
        multiply_down(products, weights, right.terms_down(k * 8));
    }
    await_products(products);
    put(products, a.plain);
}

/// Whether both products come out in every order of the threads. @throws emulated::fault
template <left_out What>
bool multiplies_in_groups()
{
    std::vector<bfloat16> left, right;
    for (int i = 0; i < 64 * group_width; ++i) {
        left.emplace_back(i % 29 == 3 ? 1.0F : 0.0F);  // few ones: the sums are exact in bfloat16
        right.emplace_back(static_cast<float>(i * 5 % 7 + i / 128 % 3 - 4));
    }
    auto const at = [](std::vector<bfloat16> const& m, int row, int column) {
        return static_cast<float>(m[static_cast<std::size_t>(row * group_width + column)]);
    };
    std::vector<float> expected_transposed(64 * 64), expected_plain(64 * group_width);
    for (int r = 0; r < 64; ++r) {
        for (int c = 0; c < group_terms; ++c) {
            float& sum = expected_transposed[static_cast<std::size_t>(r * 64 + c)];
            for (int k = 0; k < group_width; ++k) {
                sum += at(left, r, k) * at(right, c, k);
            }
            for (int column = 0; column < group_width; ++column) {
                expected_plain[static_cast<std::size_t>(r * group_width + column)] += sum * at(right, c, column);
            }
        }
    }
    bool result = true;
    for (unsigned order = 0; order < 5; ++order) {
        std::vector<float> transposed(expected_transposed.size()), plain(expected_plain.size());
        emulated::set_order(order);
        try {
            launch({}, {.grid = 1, .block = 128, .shared_bytes = 2 * 2 * 64 * group_width}, group_products<What>,
                   group_operands{left.data(), right.data(), transposed.data(), plain.data()});
        } catch (...) {
            emulated::set_order(0);
            throw;
        }
        emulated::set_order(0);
        result = result && transposed == expected_transposed && plain == expected_plain;
    }
    return result;
}

}  // namespace

TEST_CASE("emulated: tile products match loops, padded with zero")
{
    for (auto const& [rows, columns] : {std::pair{16, 64}, std::pair{13, 40}}) {
        auto const left = whole_numbers(static_cast<std::size_t>(rows * columns), 3);
        auto const right = whole_numbers(static_cast<std::size_t>(rows * columns), 5);
        auto const at = [&](std::vector<bfloat16> const& m, int row, int column) {
            return row < rows && column < columns ? static_cast<float>(m[static_cast<std::size_t>(row * columns + column)]) : 0.0F;
        };
        std::vector<float> transposed(16 * 16), plain(16 * tile_width), expected_transposed(transposed.size()), expected_plain(plain.size());
        for (int r = 0; r < 16; ++r) {
            for (int c = 0; c < 16; ++c) {
                for (int k = 0; k < tile_width; ++k) {
                    expected_transposed[static_cast<std::size_t>(r * 16 + c)] += at(left, r, k) * at(right, c, k);
                }
            }
            for (int c = 0; c < tile_width; ++c) {
                for (int k = 0; k < 16; ++k) {
                    expected_plain[static_cast<std::size_t>(r * tile_width + c)] += at(left, r, 16 + k) * at(right, k, c);
                }
            }
        }
        for (unsigned order = 0; order < 5; ++order) {
            emulated::set_order(order);
            tile_operands const all{left.data(), right.data(), rows, columns, transposed.data(), plain.data()};
            launch({}, {.grid = 1, .block = 32, .shared_bytes = 2 * 2 * 16 * tile_width}, tile_products, all);
            CHECK(transposed == expected_transposed);
            CHECK(plain == expected_plain);
        }
        emulated::set_order(0);
    }
}

TEST_CASE("emulated: warpgroup products match; missing fences show")
{
    CHECK(multiplies_in_groups<left_out::nothing>());
    CHECK_FALSE(multiplies_in_groups<left_out::wait_for_copies>());
    CHECK_FALSE(multiplies_in_groups<left_out::wait_for_products>());
    CHECK_THROWS_WITH(multiplies_in_groups<left_out::begin>(), ContainsSubstring("not after wgmma.fence"));
    CHECK_THROWS_WITH(multiplies_in_groups<left_out::show>(), ContainsSubstring("128 threads have copied and not shown"));
}
