#pragma once
// SPDX-License-Identifier: Apache-2.0

// A CUDA call that fails is an error with code, call, sentence and place; no other ending is known here. A kernel's own failure
// comes out of a later call, as CUDA has it.

#include <source_location>
#include <stdexcept>
#include <string>

namespace rheo::inline v0::cuda {

/// A CUDA call failed. Kernels serve programs that have no exit codes, so this is no exit_error; in rheo it ends as `environment`, as any other exception.
struct error : std::runtime_error {
    error(int error_code, std::string const& message) : std::runtime_error{message}, code{error_code} {}
    int code;
};

/// Returns when the cudaError_t `code` is success. @throws error
void check(int code, char const* call, std::source_location place = std::source_location::current());

}  // namespace rheo::inline v0::cuda
