// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/element_change.hpp"

#include <bit>
#include <cstring>

#include "rheo/tensor/bfloat16.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::detail {

namespace {

/// Elements may lie anywhere: messages hold several formats one behind the other.
template <class T>
T load(std::byte const* at)
{
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

template <class To, class From, class Change>
void change_each(changed_row const& row, Change const& change)
{
    auto const one = [&](std::byte* to, std::byte const* from) {
        auto const value = change(to, load<From>(from));
        std::memcpy(to, &value, sizeof(To));
    };
    if (row.to_stride == static_cast<std::ptrdiff_t>(sizeof(To)) && row.from_stride == static_cast<std::ptrdiff_t>(sizeof(From))) {
        for (std::size_t i = 0; i < row.count; ++i) {
            one(row.to + i * sizeof(To), row.from + i * sizeof(From));
        }
        return;
    }
    auto* to = row.to;
    auto const* from = row.from;
    for (std::size_t i = 0; i < row.count; ++i, to += row.to_stride, from += row.from_stride) {
        one(to, from);
    }
}

template <class To, class From>
void add_each(changed_row const& row)
{
    change_each<To, From>(row, [](std::byte const* sum, From value) { return static_cast<To>(load<To>(sum) + static_cast<To>(value)); });
}

bool is(element_format const& format, dtype type) { return format.type && *format.type == type; }

}  // namespace

element_change conversion(element_format const& from, element_format const& to)
{
    if (is(from, dtype::f32) && is(to, dtype::bf16)) {
        return element_change::f32_to_bf16;
    }
    return is(from, dtype::bf16) && is(to, dtype::f32) ? element_change::bf16_to_f32 : element_change::none;
}

element_change addition(element_format const& addend, element_format const& sum)
{
    if (is(sum, dtype::f32)) {
        return is(addend, dtype::bf16) ? element_change::add_bf16_to_f32 : element_change::add_f32;
    }
    expects(is(sum, dtype::f64) || is(sum, dtype::i32) || is(sum, dtype::i64), "a sum is f32, f64, i32 or i64");
    return is(sum, dtype::f64) ? element_change::add_f64 : is(sum, dtype::i32) ? element_change::add_i32 : element_change::add_i64;
}

std::uint64_t first_sum(element_format const& sum)
{
    return is(sum, dtype::f32) ? std::bit_cast<std::uint32_t>(-0.0F) : is(sum, dtype::f64) ? std::bit_cast<std::uint64_t>(-0.0) : 0;
}

changed_bytes bytes_of(element_change change)
{
    switch (change) {
    case element_change::none: break;
    case element_change::f32_to_bf16: return {4, 2};
    case element_change::bf16_to_f32:
    case element_change::add_bf16_to_f32: return {2, 4};
    case element_change::add_f32:
    case element_change::add_i32: return {4, 4};
    case element_change::add_f64:
    case element_change::add_i64: return {8, 8};
    }
    return {};
}

void change_row(element_change change, changed_row const& row)
{
    switch (change) {
    case element_change::none: return;
    case element_change::f32_to_bf16: return change_each<bfloat16, float>(row, [](std::byte const*, float value) { return bfloat16{value}; });
    case element_change::bf16_to_f32: return change_each<float, bfloat16>(row, [](std::byte const*, bfloat16 value) { return static_cast<float>(value); });
    case element_change::add_f32: return add_each<float, float>(row);
    case element_change::add_f64: return add_each<double, double>(row);
    case element_change::add_i32: return add_each<std::uint32_t, std::uint32_t>(row);  // unsigned: sums may wrap
    case element_change::add_i64: return add_each<std::uint64_t, std::uint64_t>(row);
    case element_change::add_bf16_to_f32: return add_each<float, bfloat16>(row);
    }
}

}  // namespace rheo::inline v0::detail
