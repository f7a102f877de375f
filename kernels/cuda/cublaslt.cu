// SPDX-License-Identifier: Apache-2.0
// cuBLASLt, opened at its first use: the functions that product.cu calls, each of which passes its arguments on.
#include <cublasLt.h>

#include <string>

#include "kernels/cuda/library.hpp"

namespace {

void* library()
{
#ifdef RHEO_CUBLASLT_FILE
    constexpr auto const* file = RHEO_CUBLASLT_FILE;
#else
    constexpr char const* file = nullptr;
#endif
    static auto* const opened = rheo::cuda::opened_library("libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR), file, "products on a device are computed by");
    return opened;
}

/// The library's function of that name, called.
template <class Result, class... Parameters, class... Arguments>
Result pass_on(Result (*)(Parameters...), char const* name, Arguments... arguments)
{
    auto* const found = dlsym(library(), name);
    if (found == nullptr) {
        throw rheo::cuda::error{-1, std::string{"the cuBLASLt that was found has no "} + name};
    }
    return reinterpret_cast<Result (*)(Parameters...)>(found)(arguments...);
}

}  // namespace

#pragma GCC visibility push(hidden)  // cuBLASLt itself, opened beside these, must not find them
extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return pass_on(cublasLtCreate, "cublasLtCreate", handle); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return pass_on(cublasLtDestroy, "cublasLtDestroy", handle); }
char const* cublasLtGetStatusString(cublasStatus_t status) { return pass_on(cublasLtGetStatusString, "cublasLtGetStatusString", status); }
std::size_t cublasLtGetVersion() { return pass_on(cublasLtGetVersion, "cublasLtGetVersion"); }

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t compute, cudaDataType_t scale)
{
    return pass_on(cublasLtMatmulDescCreate, "cublasLtMatmulDescCreate", description, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description)
{
    return pass_on(cublasLtMatmulDescDestroy, "cublasLtMatmulDescDestroy", description);
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t what, void const* value, std::size_t size)
{
    return pass_on(cublasLtMatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute", description, what, value, size);
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, std::uint64_t rows, std::uint64_t columns, std::int64_t stride)
{
    return pass_on(cublasLtMatrixLayoutCreate, "cublasLtMatrixLayoutCreate", layout, type, rows, columns, stride);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return pass_on(cublasLtMatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy", layout);
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference)
{
    return pass_on(cublasLtMatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate", preference);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return pass_on(cublasLtMatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy", preference);
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t what, void const* value,
                                                    std::size_t size)
{
    return pass_on(cublasLtMatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute", preference, what, value, size);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int* found)
{
    return pass_on(cublasLtMatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic", handle, description, a, b, c, d, preference, wanted, results, found);
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(cublasLtMatmulAlgo_t const* algorithm, cublasLtMatmulAlgoConfigAttributes_t what, void* value,
                                                    std::size_t size, std::size_t* written)
{
    return pass_on(cublasLtMatmulAlgoConfigGetAttribute, "cublasLtMatmulAlgoConfigGetAttribute", algorithm, what, value, size, written);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, void const* alpha, void const* a, cublasLtMatrixLayout_t a_layout,
                              void const* b, cublasLtMatrixLayout_t b_layout, void const* beta, void const* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, cublasLtMatmulAlgo_t const* algorithm, void* scratch, std::size_t scratch_bytes,
                              cudaStream_t queue)
{
    return pass_on(cublasLtMatmul, "cublasLtMatmul", handle, description, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout, algorithm, scratch,
                   scratch_bytes, queue);
}

}  // extern "C"
#pragma GCC visibility pop
