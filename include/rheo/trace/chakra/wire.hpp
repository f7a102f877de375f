#pragma once
// SPDX-License-Identifier: Apache-2.0

// The wire format under a Chakra file, which is that of Protocol Buffers: a field is a tag (number and wire type) and a value; numbers are
// varints (seven bits a byte, lowest first) or four or eight bytes little-endian; texts and messages have their length before them. The rules
// are public (protobuf.dev, "Encoding"). The cursor never reads past its message, reserves nothing, and keeps the first fault: bytes
// from any tool end as a value or as a place and a reason.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rheo::inline v0 {

/// How a field's value is stored. Groups (3 and 4) are no part of proto3.
enum class wire_type : std::uint8_t { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

struct wire_tag {
    std::uint32_t field = 0;
    wire_type type = wire_type::varint;

    friend constexpr bool operator==(wire_tag, wire_tag) = default;
};

/// A length, and the bytes that are left for it.
struct wire_shortage {
    std::uint64_t announced = 0;
    std::uint64_t left = 0;
};

/// Why a message cannot be read.
struct wire_fault {
    char const* reason = nullptr;  ///< a phrase; none: all is well
    std::size_t offset = 0;        ///< of the byte in the message
    wire_shortage lengths{};       ///< where a length is too long

    constexpr explicit operator bool() const { return reason != nullptr; }
};

inline constexpr std::size_t longest_varint = 10;

constexpr std::size_t varint_size(std::uint64_t value) { return (static_cast<std::size_t>(std::bit_width(value | 1U)) + 6) / 7; }

/// Writes a varint. @returns behind it
constexpr char* put_varint(char* to, std::uint64_t value)
{
    for (; value >= 0x80U; value >>= 7U) {
        *to++ = static_cast<char>(static_cast<unsigned char>(value | 0x80U));
    }
    *to++ = static_cast<char>(value);
    return to;
}

/// Writes the lowest `Bytes` bytes, lowest first. @returns behind them
template <std::size_t Bytes>
constexpr char* put_fixed(char* to, std::uint64_t value)
{
    for (std::size_t i = 0; i < Bytes; ++i) {
        *to++ = static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
    }
    return to;
}

constexpr char* put_bytes(char* to, std::string_view encoded)
{
    for (char const c : encoded) {
        *to++ = c;
    }
    return to;
}

constexpr std::uint64_t tag_bits(std::uint32_t field, wire_type type) { return std::uint64_t{field} << 3U | static_cast<std::uint64_t>(type); }

/// Signed numbers as unsigned ones that are small where the number is near zero.
constexpr std::uint64_t to_zigzag(std::int64_t value) { return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63); }
constexpr std::int64_t from_zigzag(std::uint64_t bits) { return static_cast<std::int64_t>((bits >> 1U) ^ (~(bits & 1U) + 1U)); }

/// Reads a message from the left. At the first fault it stops, and with it the cursors of the messages around it.
class wire_cursor {
public:
    /// @param fault gets the first fault; outlives the cursor
    constexpr wire_cursor(std::string_view message, wire_fault& fault)
        : begin_{message.data()}, at_{message.data()}, end_{message.data() + message.size()}, fault_{&fault}
    {
    }

    /// Whether there is something to read: not at the end, and no fault so far.
    constexpr bool more() const { return at_ != end_ && fault_->reason == nullptr; }

    constexpr std::uint64_t varint()
    {
        if (at_ != end_ && static_cast<unsigned char>(*at_) < 0x80U) {
            return static_cast<unsigned char>(*at_++);
        }
        return long_varint();
    }

    template <std::size_t Bytes>
    constexpr std::uint64_t fixed()
    {
        if (left() < Bytes) {
            refuse("the message ends in a number", at_, {Bytes, left()});
            return 0;
        }
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < Bytes; ++i) {
            value |= std::uint64_t{static_cast<unsigned char>(at_[i])} << (8 * i);
        }
        at_ += Bytes;
        return value;
    }

    /// The bytes of a text or of a message, without the length before them.
    constexpr std::string_view delimited()
    {
        auto const* const where = at_;
        auto const size = varint();
        if (size > left()) {
            refuse("a length reaches past the end of its message", where, {size, left()});
            return {};
        }
        std::string_view const encoded{at_, static_cast<std::size_t>(size)};
        at_ += size;
        return encoded;
    }

    /// Of the message that follows, with the same fault and places counted as here.
    constexpr wire_cursor message()
    {
        auto inner = *this;
        auto const encoded = delimited();
        inner.at_ = encoded.data();
        inner.end_ = encoded.data() + encoded.size();
        return inner;
    }

    constexpr wire_tag tag()
    {
        auto const* const where = at_;
        auto const bits = varint();
        auto const type = bits & 7U;
        if (fault_->reason == nullptr) {
            if (bits >> 32U != 0 || bits >> 3U == 0) {
                refuse("a field number is 0 or above 536870911", where);
            } else if (type == 3 || type == 4) {
                refuse("a group, which proto3 does not have", where);
            } else if (type > 5) {
                refuse("a wire type that does not exist", where);
            }
        }
        return {static_cast<std::uint32_t>(bits >> 3U), static_cast<wire_type>(type)};
    }

    /// Passes over the value of a field.
    constexpr void skip(wire_type type)
    {
        switch (type) {
        case wire_type::varint: varint(); break;
        case wire_type::fixed64: fixed<8>(); break;
        case wire_type::delimited: delimited(); break;
        case wire_type::fixed32: fixed<4>(); break;
        }
    }

    /// Where the next byte is read; for refuse().
    constexpr char const* place() const { return at_; }

    /// Ends the reading with a reason, unless it has ended already.
    constexpr void refuse(char const* reason, char const* where, wire_shortage lengths = {})
    {
        if (fault_->reason == nullptr) {
            *fault_ = {reason, static_cast<std::size_t>(where - begin_), lengths};
        }
        at_ = end_;
    }

private:
    constexpr std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

    constexpr std::uint64_t long_varint()
    {
        auto const* const where = at_;
        std::uint64_t value = 0;
        for (unsigned shift = 0; at_ != end_ && shift < 7 * longest_varint; shift += 7) {
            auto const byte = static_cast<unsigned char>(*at_++);
            if (shift == 63 && byte > 1) {
                refuse("a number of more than 64 bits", where);
                return 0;
            }
            value |= std::uint64_t{byte & 0x7fU} << shift;
            if (byte < 0x80U) {
                return value;
            }
        }
        refuse("the message ends in a number", where);
        return 0;
    }

    char const* begin_;
    char const* at_;
    char const* end_;
    wire_fault* fault_;
};

}  // namespace rheo::inline v0
