#pragma once
// SPDX-License-Identifier: Apache-2.0

// The one BLAS routine that the host kernels use, taken from OpenBLAS at run time. OpenBLAS is opened at
// first use and not linked, because its kernel type must be chosen in the environment before it is loaded:
// left alone it does not know newer processors and its bits differ per type. It runs at one thread; the
// threads are ours (tiles.hpp). An OPENBLAS_CORETYPE that the user has set is respected.

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rheo::inline v0 {

/// OpenBLAS is missing or unusable; the message says what to install or set. No exit_error, for the reason of cuda::error.
struct blas_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The OpenBLAS kernel type for this processor by its flags ("SkylakeX" for AVX-512 F, DQ, BW and VL,
/// "Haswell" for AVX2 and FMA); empty where OpenBLAS shall choose by itself.
std::string_view blas_core_type_for_this_cpu();

/// Opens OpenBLAS with kernel type `core_type` (empty: its own choice), or, when it was opened before, checks
/// that this type is in use. Without this call the first product opens it with blas_core_type_for_this_cpu().
/// @throws blas_error
void open_blas(std::string_view core_type);

/// The kernel type in use, as OpenBLAS names it; it belongs to the numerics fingerprint. Opens OpenBLAS.
/// @throws blas_error
std::string blas_core_type();

/// One line for people: version, options and kernel type, or the sentence that says why there is none.
std::string blas_description();

enum class transposed : bool { no, yes };

/// c = op(a) op(b) + beta c, row-major, on the calling thread.
struct sgemm_arguments {
    std::int64_t m, n, k;
    transposed a_is = transposed::no;
    transposed b_is = transposed::no;
    float const* a;      // [m, k], or [k, m] when transposed
    std::int64_t a_row;  // elements from row to row
    float const* b;      // [k, n], or [n, k] when transposed
    std::int64_t b_row;
    float beta = 0;
    float* c;  // [m, n]
    std::int64_t c_row;
    float alpha = 1;
};

/// @throws blas_error when OpenBLAS cannot be opened
void sgemm(sgemm_arguments const& product);

}  // namespace rheo::inline v0
