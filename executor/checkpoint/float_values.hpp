#pragma once
// SPDX-License-Identifier: Apache-2.0

// Floats as files of weights have them: F32, or rounded to F16 or BF16. Reading any of them is exact.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rheo::inline v0 {

/// Whether widen and narrow know the safetensors dtype: F32, F16, BF16.
bool is_float_dtype(std::string_view dtype);

/// Values of a dtype as floats. The bytes may be the last ones of the floats' own memory. @pre is_float_dtype, as many values as floats
void widen(std::string_view dtype, std::span<std::byte const> stored, std::span<float> values);

/// Floats rounded to a dtype, ties to even. @pre is_float_dtype
/// @throws exit_error where a finite value becomes infinite. @param name of the tensor, for the sentence
std::vector<std::byte> narrow(std::string_view dtype, std::span<float const> values, std::string const& name);

}  // namespace rheo::inline v0
