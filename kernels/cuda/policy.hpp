#pragma once
// SPDX-License-Identifier: Apache-2.0

// Kernels are templates over the type that is stored, not over the policy: nvcc cannot name a value of a class type as
// the argument of a kernel's template. This is the way back to the policy.

#include <cstdint>
#include <type_traits>

#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0::cuda {

/// The policy of the device whose storage type is T.
template <class T>
inline constexpr dtype_policy policy_storing = std::is_same_v<T, float> ? fp32 : bf16;

/// The one whose sums of gradients are of type Sum besides.
template <class T, class Sum>
inline constexpr dtype_policy policy_of = std::is_same_v<Sum, std::int64_t> ? policy_storing<T>
                                          : std::is_same_v<T, float>        ? fp32_i32
                                                                            : bf16_i32;

}  // namespace rheo::inline v0::cuda
