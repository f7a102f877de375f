#pragma once
// SPDX-License-Identifier: Apache-2.0

// Dropout as a property of an operation: a probability and the key of its random numbers. Whether an element
// stays is a function of the key and the element's index in the unfused, uncut, unsliced tensor of the microbatch,
// so backward draws the mask again instead of keeping it.

#include <cstdint>

#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/random.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Which rows of the microbatch's tensor an item's rows are: of each sequence of `whole` tokens the `length` from `first` on. Row
/// b * length + t of a slice is row b * whole + first + t of the microbatch; as it stands, all rows are their own. A kernel that works on a
/// strip of the item's rows counts from `begin`, so a row draws the same numbers in any strip.
struct row_part {
    std::int64_t length = 1;
    std::int64_t first = 0;
    std::int64_t whole = 1;
    std::int64_t begin = 0;  ///< the item's row that is row 0 of the call

    constexpr std::int64_t operator()(std::int64_t row) const { return (begin + row) / length * whole + first + (begin + row) % length; }
    constexpr bool is_all() const { return length == whole; }

    friend constexpr bool operator==(row_part const&, row_part const&) = default;
};

struct dropout {
    double probability = 0;  ///< of an element becoming zero, 0 <= p < 1
    random_key key{};
    row_part rows{};                        ///< of the unsliced tensor, whose elements draw
    random_stream const* stream = nullptr;  ///< on a device: where stream_of(key) lies when the kernel runs; null: it is made of the key now

    friend constexpr bool operator==(dropout const&, dropout const&) = default;
};

/// An element is dropped when its 32 random bits are below this: p * 2^32, rounded to nearest. @pre 0 <= p < 1
constexpr std::uint32_t dropout_threshold(dropout const& drop)
{
    expects(drop.probability >= 0 && drop.probability < 1, "the probability of dropout is at least 0 and below 1");
    double const threshold = drop.probability * 4294967296.0 + 0.5;
    return threshold >= 4294967295.0 ? 0xffffffffU : static_cast<std::uint32_t>(threshold);
}

/// What an element that stays is multiplied by: 1 / (1 - p).
template <class Compute>
constexpr Compute dropout_scale(dropout const& drop)
{
    return static_cast<Compute>(1.0 / (1.0 - drop.probability));
}

namespace definition {

/// The factor of each element of a tensor: 0 or 1 / (1 - p). Reference form, one Philox per element.
template <class Compute>
struct dropout_factor {
    explicit dropout_factor(dropout const& drop)
        : stream{stream_of(drop.key)}, rows{drop.rows}, threshold{dropout_threshold(drop)}, scale{dropout_scale<Compute>(drop)}
    {
    }

    /// Of column c in row r of an item whose rows are `width` wide.
    Compute at(std::int64_t row, std::int64_t column, std::int64_t width) const { return (*this)(rows(row) * width + column); }

    Compute operator()(std::int64_t element) const
    {
        if (threshold == 0) {
            return Compute{1};
        }
        return random_word(stream, static_cast<std::uint64_t>(element)) < threshold ? Compute{0} : scale;
    }

    random_stream stream;
    row_part rows;
    std::uint32_t threshold;
    Compute scale;
};

}  // namespace definition
}  // namespace rheo::inline v0
