#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a function returns that may have no value to return: the value, or one sentence that says why there is none. The form is that of
// std::expected in C++23, which g++ 12 does not have, with the error always a sentence.
//
//     auto const chosen = make_plan(model, request, ranks);
//     if (!chosen) { std::puts(chosen.error().c_str()); }

#include <string>
#include <utility>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Converts to a result without a value: `return failure{"there are more stages than layers"};`
struct failure {
    std::string error;
};

/// Not [[nodiscard]]: nvcc 13 takes an assignment to a result for one that is discarded.
template <class T>
class result {
public:
    using value_type = T;

    constexpr result(T value) : value_{std::move(value)} {}
    /// @pre the error says something. Copied: g++ 12 moves no short string in a constant expression.
    constexpr result(failure const& why) : error_{why.error} { expects(!error_.empty(), "a failure needs a sentence that says why"); }

    constexpr explicit operator bool() const { return has_value(); }
    constexpr bool has_value() const { return error_.empty(); }

    /// @pre there is a value; the sentence of a precondition_error is the error
    constexpr T const& operator*() const& { return expect_value(), value_; }
    constexpr T& operator*() & { return expect_value(), value_; }
    constexpr T&& operator*() && { return expect_value(), std::move(value_); }
    constexpr T const* operator->() const { return expect_value(), &value_; }
    constexpr T* operator->() { return expect_value(), &value_; }

    /// Why there is no value; empty when there is one.
    constexpr std::string const& error() const { return error_; }

    friend constexpr bool operator==(result const&, result const&) = default;

private:
    constexpr void expect_value() const
    {
        if (!error_.empty()) {
            throw precondition_error{error_};
        }
    }

    T value_{};  // no std::optional: nvcc takes one of a type that owns memory for no literal type, so that no constexpr function could return it
    std::string error_{};
};

}  // namespace rheo::inline v0
