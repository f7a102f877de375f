// SPDX-License-Identifier: Apache-2.0
#include "rheo/tensor/dtype.hpp"

#include <type_traits>

using namespace rheo;

static_assert(size_of(dtype::f64) == 8 && size_of(dtype::f32) == 4 && size_of(dtype::bf16) == 2 && size_of(dtype::f16) == 2);
static_assert(size_of(dtype::i64) == 8 && size_of(dtype::i32) == 4);
static_assert(sizeof(element_t<dtype::f32>) == size_of(dtype::f32) && sizeof(element_t<dtype::i64>) == size_of(dtype::i64));
static_assert(name_of(dtype::bf16) == "bf16");
static_assert(std::is_same_v<storage_t<fp32>, float> && std::is_same_v<accumulate_t<fp32>, std::int64_t>);
static_assert(std::is_same_v<accumulate_t<fp64>, double> && fp32 != fp64 && fp32 == dtype_policy{});
static_assert(std::is_same_v<storage_t<bf16>, bfloat16> && std::is_same_v<compute_t<bf16>, float> && std::is_same_v<master_t<bf16>, float>);
static_assert(std::is_same_v<storage_t<bf16_state>, master_t<bf16_state>> && std::is_same_v<compute_t<bf16_state>, float>);
