// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/product.hpp"

#include <bit>
#include <map>
#include <source_location>
#include <string>
#include <utility>

#include <cublasLt.h>

#include "kernels/cuda/error.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::cuda {

namespace {

void check(cublasStatus_t code, char const* call, std::source_location place = std::source_location::current())
{
    if (code != CUBLAS_STATUS_SUCCESS) {
        throw error{static_cast<int>(code),
                    std::string{call} + " failed: " + cublasLtGetStatusString(code) + " (" + place.file_name() + ":" + std::to_string(place.line()) + ")"};
    }
}

cudaDataType_t type_of(dtype element)
{
    expects(element == dtype::bf16 || element == dtype::f32, "a product on a device is of bf16 or f32");
    return element == dtype::bf16 ? CUDA_R_16BF : CUDA_R_32F;
}

/// One of cuBLASLt's descriptions, made and unmade by its own functions.
template <class Handle, cublasStatus_t (*Destroy)(Handle)>
struct described {
    Handle handle = nullptr;
    described() = default;
    ~described()
    {
        if (handle != nullptr) {
            Destroy(handle);
        }
    }
    described(described const&) = delete;
    described& operator=(described const&) = delete;
};

/// cuBLASLt is column-major, so it computes the transposed product: result^T [columns, rows] = right^T left^T. A matrix of rows is then one
/// of columns as it lies, and the bias runs along its columns, as cuBLASLt has it.
struct description {
    described<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> product;
    described<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy> first, second, result;

    description(product_shape const& s, product_operands const& operands)
    {
        check(cublasLtMatmulDescCreate(&product.handle, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
        set(CUBLASLT_MATMUL_DESC_TRANSA, s.right_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
        set(CUBLASLT_MATMUL_DESC_TRANSB, s.left_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
        if (s.has_bias) {
            set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
            set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(s.element));
        }
        if (s.gelu) {  // then the result proper is what cuBLASLt calls auxiliary
            set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.result);
            set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.columns);
        }
        if (s.gelu_slope) {
            set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.pre_activation);
            set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, s.columns);
        }
        set(CUBLASLT_MATMUL_DESC_EPILOGUE, s.gelu_slope ? CUBLASLT_EPILOGUE_DGELU
                                           : s.gelu     ? (s.has_bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX)
                                                        : (s.has_bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT));
        lay_out(first, s.element, s.right_transposed ? s.terms : s.columns, s.right_transposed ? s.columns : s.terms, operands.right_row, s.right_unaligned);
        lay_out(second, s.element, s.left_transposed ? s.rows : s.terms, s.left_transposed ? s.terms : s.rows, operands.left_row, s.left_unaligned);
        lay_out(result, s.result, s.columns, s.rows, operands.result_row, false);
    }

private:
    template <class T>
    void set(cublasLtMatmulDescAttributes_t what, T const& value)
    {
        check(cublasLtMatmulDescSetAttribute(product.handle, what, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
    }

    template <class Layout>
    static void lay_out(Layout& layout, dtype element, std::int64_t contiguous, std::int64_t others, std::int64_t step, bool unaligned)
    {
        auto const whole = [&](std::int64_t count) { return count * size_of(element) % products::alignment == 0; };
        expects(step == 0 || (step >= contiguous && (unaligned || whole(step) || !whole(contiguous))),
                "rows of a matrix that lie apart are aligned as those that follow each other");
        check(cublasLtMatrixLayoutCreate(&layout.handle, type_of(element), static_cast<std::uint64_t>(contiguous), static_cast<std::uint64_t>(others),
                                         step == 0 ? contiguous : step),
              "cublasLtMatrixLayoutCreate");
    }
};

/// A description and what is wanted of the algorithm.
struct question {
    description product;
    described<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;

    question(product_shape const& shape, std::uint32_t aligned_to) : product{shape, places(shape, aligned_to)}
    {
        check(cublasLtMatmulPreferenceCreate(&preference.handle), "cublasLtMatmulPreferenceCreate");
        wants(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_NONE));
        wants(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<std::uint64_t>(products::workspace_bytes));
        for (auto const operand : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                                   CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
            wants(operand, aligned_to);
        }
    }

private:
    /// What an epilogue reads and writes is given by its alignment alone, which is the same for all, so that the shape decides and nothing else. Rows that are
    /// not aligned are an odd number of elements apart: what computes those computes any other.
    static product_operands places(product_shape const& shape, std::uint32_t aligned_to)
    {
        auto* const place = reinterpret_cast<void*>(std::uintptr_t{aligned_to});
        auto const row = [](bool unaligned, std::int64_t contiguous) { return unaligned ? contiguous | 1 : 0; };
        return {.left = place,
                .right = place,
                .bias = place,
                .result = place,
                .activated = place,
                .pre_activation = place,
                .left_row = row(shape.left_unaligned, shape.left_transposed ? shape.rows : shape.terms),
                .right_row = row(shape.right_unaligned, shape.right_transposed ? shape.terms : shape.columns)};
    }

    template <class T>
    void wants(cublasLtMatmulPreferenceAttributes_t what, T value)
    {
        check(cublasLtMatmulPreferenceSetAttribute(preference.handle, what, &value, sizeof value), "cublasLtMatmulPreferenceSetAttribute");
    }
};

std::optional<int> property_of(cublasLtMatmulAlgo_t const& algorithm, cublasLtMatmulAlgoConfigAttributes_t what)
{
    std::int32_t value = 0;
    std::size_t written = 0;
    auto const answer = cublasLtMatmulAlgoConfigGetAttribute(&algorithm, what, &value, sizeof value, &written);
    return answer == CUBLAS_STATUS_SUCCESS && written == sizeof value ? std::optional<int>{value} : std::nullopt;
}

}  // namespace

struct products::impl {
    cublasLtHandle_t library = nullptr;
    std::map<product_shape, cublasLtMatmulAlgo_t> chosen;

    impl() { check(cublasLtCreate(&library), "cublasLtCreate"); }
    ~impl() { cublasLtDestroy(library); }
    impl(impl const&) = delete;
    impl& operator=(impl const&) = delete;

    std::optional<cublasLtMatmulHeuristicResult_t> ask(product_shape const& shape, std::uint32_t aligned_to) const
    {
        question const q{shape, aligned_to};
        cublasLtMatmulHeuristicResult_t best{};
        int found = 0;
        auto const answer = cublasLtMatmulAlgoGetHeuristic(library, q.product.product.handle, q.product.first.handle, q.product.second.handle,
                                                           q.product.result.handle, q.product.result.handle, q.preference.handle, 1, &best, &found);
        if (answer != CUBLAS_STATUS_NOT_SUPPORTED && !has_gelu(shape)) {  // what is wrong besides shows without the GELU, too
            check(answer, "cublasLtMatmulAlgoGetHeuristic");
        }
        bool const none = answer != CUBLAS_STATUS_SUCCESS || found == 0 || best.state != CUBLAS_STATUS_SUCCESS;
        return none ? std::nullopt : std::optional{best};
    }

    cublasLtMatmulAlgo_t const& choice(product_shape const& shape)
    {
        if (auto const found = chosen.find(shape); found != chosen.end()) {
            return found->second;
        }
        auto const best = ask(shape, alignment);
        if (!best && !has_gelu(shape)) {
            throw error{CUBLAS_STATUS_NOT_SUPPORTED, "cuBLASLt has no algorithm for a product of " + std::to_string(shape.rows) + " x " +
                                                         std::to_string(shape.columns) + " of " + std::to_string(shape.terms) + " terms in " +
                                                         std::string{name_of(shape.element)}};
        }
        return chosen.emplace(shape, best ? best->algo : cublasLtMatmulAlgo_t{}).first->second;
    }

    static bool has_gelu(product_shape const& shape) { return shape.gelu || shape.gelu_slope; }

    /// Without the GELU, or its slope, where no algorithm has it behind its sum, or the rows of what cuBLASLt calls auxiliary do not begin at multiples of eight
    /// elements.
    std::pair<product_shape, cublasLtMatmulAlgo_t> possible(product_shape shape)
    {
        if (shape.columns % 8 != 0) {
            shape.gelu = shape.gelu_slope = false;
        }
        auto const algorithm = choice(shape);
        if (!has_gelu(shape) || std::bit_cast<std::array<std::uint64_t, 8>>(algorithm) != std::array<std::uint64_t, 8>{}) {
            return {shape, algorithm};
        }
        shape.gelu = shape.gelu_slope = false;
        return {shape, choice(shape)};
    }
};

products::products() : impl_{std::make_unique<impl>()} {}
products::~products() = default;
products::products(products&&) noexcept = default;
products& products::operator=(products&&) noexcept = default;

bool products::multiply(stream queue, workspace scratch, product_shape const& shape, product_operands const& operands)
{
    expects(scratch.bytes >= workspace::counter_bytes + workspace_bytes, "the workspace is too small for a product");
    expects(shape.has_bias == (operands.bias != nullptr), "a product has a bias or none");
    expects(!shape.gelu || operands.result_row == 0, "the result of a product with a GELU has rows that follow each other");
    expects(!shape.gelu || (operands.activated != nullptr && shape.result == dtype::bf16 && !shape.adds),
            "a product with a GELU has a place for it, is stored in bf16 and adds to nothing");
    expects(!shape.gelu_slope || (operands.pre_activation != nullptr && operands.result_row == 0 && shape.result == dtype::bf16 && !shape.adds && !shape.gelu &&
                                  !shape.has_bias),
            "a product with GELU's slope has what GELU read, is stored in bf16 with rows that follow each other, and adds nothing");
    if (shape.rows == 0 || shape.columns == 0) {
        return true;
    }
    auto const [possible, algorithm] = impl_->possible(shape);
    description const d{possible, operands};
    float const one = 1;
    float const kept = shape.adds ? 1 : 0;
    void* const to = possible.gelu ? operands.activated : operands.result;
    check(cublasLtMatmul(impl_->library, d.product.handle, &one, operands.right, d.first.handle, operands.left, d.second.handle, &kept, to, d.result.handle, to,
                         d.result.handle, &algorithm, static_cast<std::byte*>(scratch.memory) + workspace::counter_bytes,
                         static_cast<std::size_t>(workspace_bytes), static_cast<cudaStream_t>(queue.handle)),
          "cublasLtMatmul");
    return possible == shape;
}

void products::describe(product_shape const& shape) { question const made{shape, alignment}; }

std::optional<product_answer> products::answer(product_shape const& shape, std::uint32_t aligned_to) const
{
    auto const best = impl_->ask(shape, aligned_to);
    return best ? std::optional{product_answer{.algorithm = std::bit_cast<std::array<std::uint64_t, 8>>(best->algo),
                                               .workspace_bytes = static_cast<std::int64_t>(best->workspaceSize),
                                               .waves = best->wavesCount,
                                               .splits = property_of(best->algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
                                               .reduction = property_of(best->algo, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)}}
                : std::nullopt;
}

void products::choose(product_shape const& shape) { impl_->possible(shape); }

std::string products::version() { return std::to_string(cublasLtGetVersion()); }

std::vector<product_choice> products::table() const
{
    std::vector<product_choice> all;
    for (auto const& [shape, algorithm] : impl_->chosen) {
        all.push_back({shape, std::bit_cast<std::array<std::uint64_t, 8>>(algorithm)});
    }
    return all;
}

void products::adopt(std::vector<product_choice> const& table)
{
    for (auto const& [shape, algorithm] : table) {
        impl_->chosen[shape] = std::bit_cast<cublasLtMatmulAlgo_t>(algorithm);
    }
}

}  // namespace rheo::inline v0::cuda
