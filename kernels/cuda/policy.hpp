#pragma once
// SPDX-License-Identifier: Apache-2.0

// Kernels are templates over the type that is stored, not over the policy: nvcc cannot name a value of a class type as
// the argument of a kernel's template. This is the way back to the policy.

#include <type_traits>

#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0::cuda {

/// The policy of the device whose storage type is T.
template <class T>
inline constexpr dtype_policy policy_storing = std::is_same_v<T, float> ? fp32 : bf16;

}  // namespace rheo::inline v0::cuda
