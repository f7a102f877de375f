#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether two layers name the same parameter, which ties them: full names are compared as they are spelt, without making strings, so that the
// compiler can ask it for every pair of a large model; most layers of a model are distinguished by their numbers alone.

#include <cstddef>
#include <string_view>

#include "rheo/model/layer.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The full name of a parameter, one character after the other, '\0' behind the last.
struct name_reader {
    std::string_view prefix;
    int ordinal;
    std::string_view name;
    std::size_t place = 0;
    int power = 0;  ///< of ten, whose digit of the ordinal comes next; 0: the next character does

    constexpr char next()
    {
        if (power == 0 && place < prefix.size() && prefix[place] == '#') {
            ++place;
            for (power = 1; ordinal / power >= 10;) {
                power *= 10;
            }
        }
        if (power > 0) {
            auto const digit = ordinal / power % 10;
            power /= 10;
            return static_cast<char>('0' + digit);
        }
        auto const i = place++;
        return i < prefix.size() ? prefix[i] : i - prefix.size() < name.size() ? name[i - prefix.size()] : '\0';
    }
};

/// True when different ordinals make different names: no digit can follow them.
constexpr bool ends_ordinal(std::string_view prefix)
{
    auto const mark = prefix.find('#');
    return mark != prefix.npos && mark + 1 < prefix.size() && (prefix[mark + 1] < '0' || prefix[mark + 1] > '9');
}

}  // namespace detail

/// False when no parameter of the one can be one of the other, because they number the same names differently.
constexpr bool may_share(layer_description const& a, layer_description const& b)
{
    return a.ordinal == b.ordinal || a.prefix != b.prefix || !detail::ends_ordinal(a.prefix);
}

/// True when the parameters have the same full name and shape: they are one tensor.
constexpr bool same_parameter(layer_description const& a, parameter const& p, layer_description const& b, parameter const& q)
{
    if (p.shape != q.shape) {
        return false;
    }
    if (a.prefix == b.prefix && a.ordinal == b.ordinal) {
        return p.name == q.name;
    }
    if (!may_share(a, b)) {
        return false;
    }
    detail::name_reader left{a.prefix, a.ordinal, p.name};
    detail::name_reader right{b.prefix, b.ordinal, q.name};
    while (true) {
        auto const c = left.next();
        if (c != right.next()) {
            return false;
        }
        if (c == '\0') {
            return true;
        }
    }
}

}  // namespace rheo::inline v0
