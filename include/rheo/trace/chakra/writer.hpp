#pragma once
// SPDX-License-Identifier: Apache-2.0

// A Chakra file: the length of a message as a varint, the message, again and again; metadata first, then the nodes of one rank. No magic
// number, no index. Messages are encoded into one buffer, which goes to the sink when it is full: the writer knows no files.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "rheo/trace/chakra/encode.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/wire.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Bytes of a message in a file, its length before it included.
template <class Message>
constexpr std::size_t framed_size(Message const& message)
{
    auto const size = encoded_size(message);
    return varint_size(size) + size;
}

/// Writes framed_size(message) bytes. @returns behind them
template <class Message>
constexpr char* encode_framed(Message const& message, char* to)
{
    auto const size = encoded_size(message);
    expects(size <= UINT32_MAX, "a message of a Chakra file has at most 4 GiB");
    return encode(message, put_varint(to, size));
}

/// Writes a file message by message. `Sink` is called with the next bytes of the file, in pieces of some 64 KiB.
template <class Sink>
class chakra_writer {
public:
    /// Begins the file. @pre the version is not empty: consumers refuse such files
    constexpr chakra_writer(Sink sink, chakra_metadata const& metadata) : sink_{std::move(sink)}
    {
        expects(!metadata.version.empty(), "a Chakra file has a version: consumers refuse one without");
        put(metadata);
    }

    constexpr void add(chakra_node const& node) { put(node); }

    /// Hands the rest to the sink. Nothing may be added behind it.
    constexpr void finish()
    {
        sink_(std::string_view{buffer_.data(), used_});
        used_ = 0;
    }

private:
    template <class Message>
    constexpr void put(Message const& message)
    {
        auto const size = encoded_size(message);
        expects(size <= UINT32_MAX, "a message of a Chakra file has at most 4 GiB");
        auto const framed = varint_size(size) + size;
        if (framed > buffer_.size() - used_) {
            if (used_ != 0) {
                finish();
            }
            if (framed > buffer_.size()) {
                buffer_.resize(framed < piece ? piece : framed);
            }
        }
        encode(message, put_varint(buffer_.data() + used_, size));
        used_ += framed;
    }

    static constexpr std::size_t piece = 1U << 16U;

    Sink sink_;
    std::vector<char> buffer_;
    std::size_t used_ = 0;
};

}  // namespace rheo::inline v0
