// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/float_values.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "rheo/tensor/bfloat16.hpp"
#include "rheo/tensor/float16.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

template <class Half>
void widen_halves(std::span<std::byte const> stored, std::span<float> values)
{
    for (std::size_t i = 0; i < values.size(); ++i) {  // upwards: what is written lies before what is still to be read
        std::uint16_t bits{};
        std::memcpy(&bits, stored.data() + 2 * i, sizeof bits);
        values[i] = float{Half::from_bits(bits)};
    }
}

template <class Half>
std::vector<std::byte> narrow_to(std::string_view dtype, std::span<float const> values, std::string const& name)
{
    std::vector<std::byte> stored(2 * values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        Half const half{values[i]};
        if (std::isfinite(values[i]) && !std::isfinite(float{half})) {
            throw exit_error{exit_code::bad_data, fmt::format("'{}' has the value {}, which {} cannot hold; write F32 or BF16", name, values[i], dtype)};
        }
        auto const bits = half.bits();
        std::memcpy(stored.data() + 2 * i, &bits, sizeof bits);
    }
    return stored;
}

}  // namespace

bool is_float_dtype(std::string_view dtype) { return dtype == "F32" || dtype == "F16" || dtype == "BF16"; }

void widen(std::string_view dtype, std::span<std::byte const> stored, std::span<float> values)
{
    expects(is_float_dtype(dtype) && stored.size() == values.size() * (dtype == "F32" ? 4 : 2), "there are as many stored values as floats");
    if (dtype == "F16") {
        widen_halves<float16>(stored, values);
    } else if (dtype == "BF16") {
        widen_halves<bfloat16>(stored, values);
    } else {
        std::memmove(values.data(), stored.data(), stored.size());
    }
}

std::vector<std::byte> narrow(std::string_view dtype, std::span<float const> values, std::string const& name)
{
    expects(is_float_dtype(dtype), "floats are written as F32, F16 or BF16");
    if (dtype == "F16") {
        return narrow_to<float16>(dtype, values, name);
    }
    if (dtype == "BF16") {
        return narrow_to<bfloat16>(dtype, values, name);
    }
    auto const bytes = std::as_bytes(values);
    return {bytes.begin(), bytes.end()};
}

}  // namespace rheo::inline v0
