#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the numbers of a tensor are made of. A dtype is a value, so plans and files can hold it; a
// policy says which dtype plays which part: what is stored between operations, what arithmetic is
// done in, what gradients are summed in and what the optimizer keeps. A policy is a structural value,
// so a kernel's contract is a template over it, and the tests run the very same contract in double.

#include <cstdint>
#include <string_view>

#include "rheo/tensor/bfloat16.hpp"

namespace rheo::inline v0 {

enum class dtype : std::uint8_t { f64, f32, f16, bf16, i64, i32 };

/// The bytes of one element.
constexpr std::int64_t size_of(dtype type)
{
    switch (type) {
    case dtype::f64:
    case dtype::i64: return 8;
    case dtype::f32:
    case dtype::i32: return 4;
    case dtype::f16:
    case dtype::bf16: return 2;
    }
    return 0;
}

/// The name as it is written in plans and configurations.
constexpr std::string_view name_of(dtype type)
{
    switch (type) {
    case dtype::f64: return "f64";
    case dtype::f32: return "f32";
    case dtype::f16: return "f16";
    case dtype::bf16: return "bf16";
    case dtype::i64: return "i64";
    case dtype::i32: return "i32";
    }
    return "unknown";
}

/// Which dtype plays which part in a training job.
struct dtype_policy {
    dtype storage = dtype::f32;     ///< parameters, activations and messages
    dtype compute = dtype::f32;     ///< arithmetic inside an operation
    dtype accumulate = dtype::i64;  ///< gradients summed over microbatches; i64 is exact
    dtype master = dtype::f32;      ///< the optimizer's parameters and moments

    /// Whether stages read a copy of the parameters in another type than the optimizer's.
    constexpr bool stores_apart() const { return storage != master; }

    friend constexpr bool operator==(dtype_policy const&, dtype_policy const&) = default;
};

/// Everything in float, gradients summed exactly: what the host executor runs.
inline constexpr dtype_policy fp32{};
/// Stored in bfloat16, computed in float, gradients summed exactly, the optimizer's copy in float: what devices run.
inline constexpr dtype_policy bf16{.storage = dtype::bf16};
/// As fp32 and bf16, with gradients summed in 32 bits and a scale per row of the tensor: exact in half the memory.
inline constexpr dtype_policy fp32_i32{.accumulate = dtype::i32};
inline constexpr dtype_policy bf16_i32{.storage = dtype::bf16, .accumulate = dtype::i32};
/// As bf16 and bf16_i32, with the optimizer's copy and moments in bfloat16, too, rounded stochastically. The copy is what is computed with.
inline constexpr dtype_policy bf16_state{.storage = dtype::bf16, .master = dtype::bf16};
inline constexpr dtype_policy bf16_i32_state{.storage = dtype::bf16, .accumulate = dtype::i32, .master = dtype::bf16};
/// As fp32, with gradients summed in plain float: not exact, here to measure what exactness costs.
inline constexpr dtype_policy fp32_inexact{.accumulate = dtype::f32};
/// Everything in double: the reference of the tests.
inline constexpr dtype_policy fp64{.storage = dtype::f64, .compute = dtype::f64, .accumulate = dtype::f64, .master = dtype::f64};

namespace detail {

template <dtype Type>
struct element;
template <>
struct element<dtype::f64> {
    using type = double;
};
template <>
struct element<dtype::f32> {
    using type = float;
};
template <>
struct element<dtype::bf16> {
    using type = bfloat16;
};
template <>
struct element<dtype::i64> {
    using type = std::int64_t;
};
template <>
struct element<dtype::i32> {
    using type = std::int32_t;
};

}  // namespace detail

/// The C++ type of an element; f16 has none.
template <dtype Type>
using element_t = typename detail::element<Type>::type;

template <dtype_policy Policy>
using storage_t = element_t<Policy.storage>;
template <dtype_policy Policy>
using compute_t = element_t<Policy.compute>;
template <dtype_policy Policy>
using accumulate_t = element_t<Policy.accumulate>;
template <dtype_policy Policy>
using master_t = element_t<Policy.master>;

}  // namespace rheo::inline v0
