// SPDX-License-Identifier: Apache-2.0
// What is kept per parameter, part by part, against the sums that people say. The compiler decides all of it.
#include "rheo/model/parameter_bytes.hpp"

using namespace rheo;

namespace {

constexpr tensor_shape matrix{30, 70};
constexpr std::int64_t n = 30 * 70;

// Host ranks: 4 + 8 committed, 8 + 4 in work.
static_assert(parameter_bytes_of(matrix) == parameter_bytes{{4 * n}, {8 * n}, {0}, {8 * n}, {4 * n}});
static_assert(total(parameter_bytes_of(matrix)) == bytes{n * (committed_bytes_per_parameter + working_bytes_per_parameter)});

// On a device: 26 bytes with int64 sums and a buffer, 22 without it; with sums in 32 bits 18, and 8 bytes a row.
static_assert(parameter_bytes_of(matrix, bf16) == parameter_bytes{{4 * n}, {8 * n}, {2 * n}, {8 * n}, {4 * n}});
static_assert(total(parameter_bytes_of(matrix, bf16)) == bytes{26 * n});
static_assert(total(parameter_bytes_of(matrix, bf16, gradient_buffer::none)) == bytes{22 * n});
static_assert(total(parameter_bytes_of(matrix, bf16_i32, gradient_buffer::none)) == bytes{18 * n + 8 * 30});
static_assert(total(parameter_bytes_of({1, n}, bf16_i32, gradient_buffer::none)) == bytes{18 * n + 8});

// A use more is an accumulator more and nothing else.
constexpr bool uses_add_accumulators(dtype_policy const& policy)
{
    auto const one = parameter_bytes_of(matrix, policy);
    auto const two = parameter_bytes_of(matrix, policy, gradient_buffer::reduced, 2);
    return total(two) - total(one) == one.accumulators && two.master == one.master && two.reduced == one.reduced;
}
static_assert(uses_add_accumulators(fp32) && uses_add_accumulators(bf16) && uses_add_accumulators(bf16_i32));

// Parts add up part by part.
constexpr bool parts_add_up()
{
    auto sum = parameter_bytes_of(matrix, bf16_i32);
    sum += parameter_bytes_of({5, 9}, bf16_i32);
    return total(sum) == total(parameter_bytes_of(matrix, bf16_i32)) + total(parameter_bytes_of({5, 9}, bf16_i32)) && sum.stored == bytes{2 * (n + 45)};
}
static_assert(parts_add_up());

static_assert(total(parameter_bytes_of(matrix, fp64)) == bytes{40 * n});

}  // namespace
