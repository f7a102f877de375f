// SPDX-License-Identifier: Apache-2.0
#include "cublasLt.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "kernels/gelu/gelu.hpp"
#include "rheo/tensor/bfloat16.hpp"

using rheo::bfloat16;

struct cublasLtContext {};
struct cublasLtMatmulDescription {
    cublasOperation_t a = CUBLAS_OP_N;
    cublasOperation_t b = CUBLAS_OP_N;
    cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    void const* bias = nullptr;
    std::optional<cudaDataType_t> bias_type;
    void* auxiliary = nullptr;
    std::int64_t auxiliary_step = 0;
};
struct cublasLtLayout {
    cudaDataType_t element;
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t step;
};
struct cublasLtPreferences {
    std::map<int, std::uint64_t> values;
};

namespace {

/// The terms of a sum from the first to the last, or, where RHEO_EMULATED_ALGORITHM is 2, from the last to the first: as another machine may choose.
constexpr cublasLtMatmulAlgo_t algorithms[] = {{{1}}, {{2}}};

cublasLtMatmulAlgo_t chosen()
{
    auto const* const preference = std::getenv("RHEO_EMULATED_ALGORITHM");
    return algorithms[preference != nullptr && std::string_view{preference} == "2" ? 1 : 0];
}

template <class T>
cublasStatus_t made(T** handle, T value)
{
    *handle = new T{std::move(value)};
    return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t unmade(T* handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

/// Takes over an attribute of exactly its size.
template <class T>
cublasStatus_t take(T& to, void const* value, std::size_t bytes)
{
    if (bytes != sizeof(T)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    std::memcpy(static_cast<void*>(&to), value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

float element_of(cudaDataType_t type, void const* matrix, std::int64_t i)
{
    return type == CUDA_R_16BF ? float{static_cast<bfloat16 const*>(matrix)[i]} : static_cast<float const*>(matrix)[i];
}

void put(cudaDataType_t type, void* matrix, std::int64_t i, float value)
{
    if (type == CUDA_R_16BF) {
        static_cast<bfloat16*>(matrix)[i] = bfloat16{value};
    } else {
        static_cast<float*>(matrix)[i] = value;
    }
}

bool aligned(void const* pointer) { return pointer != nullptr && reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

/// m, n and k of a product whose sizes meet.
struct extents {
    std::int64_t m, n, k;
};
std::optional<extents> extents_of(cublasLtMatmulDescription const& p, cublasLtLayout const& a, cublasLtLayout const& b, cublasLtLayout const& d)
{
    std::int64_t const k = p.a == CUBLAS_OP_N ? a.columns : a.rows;
    bool const meet = (p.a == CUBLAS_OP_N ? a.rows : a.columns) == d.rows && (p.b == CUBLAS_OP_N ? b.columns : b.rows) == d.columns &&
                      (p.b == CUBLAS_OP_N ? b.rows : b.columns) == k;
    bool const lie = a.step >= a.rows && b.step >= b.rows && d.step >= d.rows;
    return meet && lie && a.element == b.element ? std::optional{extents{d.rows, d.columns, k}} : std::nullopt;
}

bool has_bias(cublasLtEpilogue_t e) { return (e & CUBLASLT_EPILOGUE_BIAS) != 0; }
bool has_gelu(cublasLtEpilogue_t e) { return (e & CUBLASLT_EPILOGUE_GELU_AUX) == CUBLASLT_EPILOGUE_GELU_AUX; }
bool has_slope(cublasLtEpilogue_t e) { return (e & CUBLASLT_EPILOGUE_DGELU) == CUBLASLT_EPILOGUE_DGELU; }

/// What the library asks of an epilogue.
cublasStatus_t allowed(cublasLtMatmulDescription const& p, cublasLtLayout const& a, cublasLtLayout const& d)
{
    if (has_bias(p.epilogue) && (!aligned(p.bias) || p.bias_type.value_or(d.element) != a.element)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    if (has_gelu(p.epilogue) || has_slope(p.epilogue)) {
        if (p.auxiliary_step < d.rows || p.auxiliary_step % 8 != 0 || p.auxiliary == nullptr) {
            return CUBLAS_STATUS_INVALID_VALUE;
        }
        // who asks has to be ready for shapes that there is no algorithm for; which, a version of the library decides
        return d.rows >= 16 && aligned(p.auxiliary) && d.element == CUDA_R_16BF ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return CUBLAS_STATUS_SUCCESS;
}

/// A product that was asked for: descriptions may be gone when it is computed, operands may not.
struct product {
    cublasLtMatmulDescription how;
    cublasLtLayout a_layout, b_layout, c_layout, d_layout;
    extents size;
    void const* a;
    void const* b;
    void const* c;
    void* d;
    bool from_the_last = false;
    float scale = 0;
    float kept = 0;
};

void multiply(product const& x)
{
    auto const& how = x.how;
    auto const in_a = [&](std::int64_t row, std::int64_t column) {
        return element_of(x.a_layout.element, x.a, how.a == CUBLAS_OP_N ? row + column * x.a_layout.step : column + row * x.a_layout.step);
    };
    auto const in_b = [&](std::int64_t row, std::int64_t column) {
        return element_of(x.b_layout.element, x.b, how.b == CUBLAS_OP_N ? row + column * x.b_layout.step : column + row * x.b_layout.step);
    };
    for (std::int64_t column = 0; column < x.size.n; ++column) {
        for (std::int64_t row = 0; row < x.size.m; ++row) {
            float sum = 0;
            for (std::int64_t k = 0; k < x.size.k; ++k) {
                auto const term = x.from_the_last ? x.size.k - 1 - k : k;
                sum += in_a(row, term) * in_b(term, column);
            }
            sum *= x.scale;
            sum += x.kept != 0 ? x.kept * element_of(x.c_layout.element, x.c, row + column * x.c_layout.step) : 0.0F;
            sum += has_bias(how.epilogue) ? element_of(how.bias_type.value_or(x.d_layout.element), how.bias, row) : 0.0F;
            if (has_gelu(how.epilogue)) {
                put(x.d_layout.element, how.auxiliary, row + column * how.auxiliary_step, sum);
                sum = rheo::definition::gelu(sum);
            }
            if (has_slope(how.epilogue)) {
                sum *= rheo::definition::gelu_derivative(element_of(x.d_layout.element, how.auxiliary, row + column * how.auxiliary_step));
            }
            put(x.d_layout.element, x.d, row + column * x.d_layout.step, sum);
        }
    }
}

}  // namespace

char const* cublasLtGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_SUCCESS         ? "success"
           : status == CUBLAS_STATUS_INVALID_VALUE ? "an unsupported value or parameter was passed to the function"
                                                   : "the functionality requested is not supported";
}

std::size_t cublasLtGetVersion() { return 0; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return made(handle, {}); }
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return unmade(handle); }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* description, cublasComputeType_t, cudaDataType_t) { return made(description, {}); }
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) { return unmade(description); }
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return unmade(layout); }
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) { return made(preference, {}); }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return unmade(preference); }

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t element, std::uint64_t rows, std::uint64_t columns, std::int64_t step)
{
    return made(layout, {element, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), step});
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t p, cublasLtMatmulDescAttributes_t what, void const* value, std::size_t bytes)
{
    switch (what) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return take(p->a, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return take(p->b, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return take(p->epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return take(p->bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return take(p->bias_type.emplace(), value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return take(p->auxiliary, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return take(p->auxiliary_step, value, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t what, void const* value,
                                                    std::size_t bytes)
{
    if (bytes != (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? 8 : 4)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    std::memcpy(&preference->values[what], value, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t p, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results, int* found)
{
    *found = 0;
    // without the first preference sums may be split, and the others say what the operands will be like
    if (wanted < 1 || preference->values.size() != 6 || c->rows != d->rows || c->columns != d->columns || !extents_of(*p, *a, *b, *d)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    auto const answer = allowed(*p, *a, *d);
    if (answer == CUBLAS_STATUS_SUCCESS) {
        *results = {.algo = chosen(), .workspaceSize = 0, .state = CUBLAS_STATUS_SUCCESS, .wavesCount = 1, .reserved = {}};
        *found = 1;
    }
    return answer;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(cublasLtMatmulAlgo_t const*, cublasLtMatmulAlgoConfigAttributes_t what, void* value, std::size_t bytes,
                                                    std::size_t* written)
{
    std::int32_t const known = what == CUBLASLT_ALGO_CONFIG_SPLITK_NUM ? 1 : CUBLASLT_REDUCTION_SCHEME_NONE;
    *written = sizeof known;
    if (bytes != sizeof known) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    std::memcpy(value, &known, sizeof known);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t p, void const* alpha, void const* a, cublasLtMatrixLayout_t a_layout, void const* b,
                              cublasLtMatrixLayout_t b_layout, void const* beta, void const* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, cublasLtMatmulAlgo_t const* algorithm, void*, std::size_t, cudaStream_t stream)
{
    auto const size = extents_of(*p, *a_layout, *b_layout, *d_layout);
    if (!size || (algorithm->data[0] != 1 && algorithm->data[0] != 2) || allowed(*p, *a_layout, *d_layout) != CUBLAS_STATUS_SUCCESS || !aligned(a) ||
        !aligned(b) || !aligned(d)) {
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    product todo{*p, *a_layout, *b_layout, *c_layout, *d_layout, *size, a, b, c, d, algorithm->data[0] == 2};
    std::memcpy(&todo.scale, alpha, sizeof todo.scale);
    std::memcpy(&todo.kept, beta, sizeof todo.kept);
    emulated::put(stream, [todo] {
        emulated::count_launch();
        multiply(todo);
    });
    return CUBLAS_STATUS_SUCCESS;
}
