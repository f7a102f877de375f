#pragma once
// SPDX-License-Identifier: Apache-2.0

// Reads a Chakra file node by node, with the memory of one node: the buffer grows only when it is full of bytes that have come. What cannot be
// read ends the file with a sentence that says at which byte, and of which node where that is known. Dependencies are for
// dependencies.hpp, which sees the whole file.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rheo/trace/chakra/decode.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/wire.hpp"

namespace rheo::inline v0 {

/// `Source` is called with a place and its size, puts bytes there, and returns how many; 0 at the end of the file. What it throws, passes through.
template <class Source>
class chakra_reader {
public:
    /// Reads the metadata.
    explicit chakra_reader(Source source) : source_{std::move(source)} { read_metadata(); }

    /// The views are of what the reader holds: not to be copied.
    chakra_reader(chakra_reader const&) = delete;
    chakra_reader& operator=(chakra_reader const&) = delete;

    /// Empty where it could not be read. Valid until next() is called for the first time.
    chakra_metadata const& metadata() const { return metadata_; }

    /// The next node, valid until the next call; null at the end of the file, and when it cannot be read further.
    chakra_node const* next()
    {
        std::string_view message;
        if (!next_message(message)) {
            return nullptr;
        }
        if (auto const fault = decode(message, storage_, node_)) {
            refuse(fault, node_.id != 0 ? "node " + std::to_string(node_.id) : std::string{"a node"});
            return nullptr;
        }
        return &node_;
    }

    /// Why reading ended before the end of the file; empty when it did not.
    std::string const& error() const { return error_; }

    std::uint64_t unknown_fields() const { return storage_.unknown_fields; }

    /// Where the message of the last node, or of the metadata, begins in the file, its length not included.
    std::uint64_t message_offset() const { return message_offset_; }

private:
    void read_metadata()
    {
        std::string_view message;
        if (!next_message(message)) {
            error_ = error_.empty() ? "byte 0: the file is empty; a Chakra trace begins with metadata" : error_;
        } else if (auto const fault = decode(message, storage_, metadata_)) {
            refuse(fault, "the metadata");
        } else if (metadata_.version == "0.0.1") {
            error_ = "byte 1: schema 0.0.1 numbers its node types otherwise; convert the trace to schema 0.0.4 or later";
        }
        metadata_ = error_.empty() ? metadata_ : chakra_metadata{};
    }

    /// The bytes of the next message; false at the end and after a fault.
    bool next_message(std::string_view& message)
    {
        if (!error_.empty()) {
            return false;
        }
        auto const where = offset();
        std::uint64_t size = 0;
        for (unsigned shift = 0;; shift += 7) {
            if (begin_ == end_ && !fill()) {
                if (shift != 0) {
                    error_ = at(where) + "the file ends in the length of a message; it is cut off";
                }
                return false;
            }
            auto const byte = static_cast<unsigned char>(buffer_[begin_++]);
            if (where == 0 && shift == 0 && is_gzip(byte)) {
                error_ = "byte 0: a file of gzip, which this reader does not unpack";
                return false;
            }
            size |= std::uint64_t{byte & 0x7fU} << shift;
            if (size > UINT32_MAX || (shift == 28 && byte >= 0x80U)) {
                error_ = at(where) + "the length of a message has more than 32 bits: this is no Chakra trace, or a damaged one";
                return false;
            }
            if (byte < 0x80U) {
                break;
            }
        }
        message_offset_ = offset();
        while (end_ - begin_ < size) {
            if (!fill()) {
                error_ =
                    at(where) + "a message of " + std::to_string(size) + " bytes where " + std::to_string(end_ - begin_) + " are left; the file is cut off";
                return false;
            }
        }
        message = {buffer_.data() + begin_, static_cast<std::size_t>(size)};
        begin_ += static_cast<std::size_t>(size);
        return true;
    }

    /// Whether the first two bytes of a file are those of gzip; no trace begins with them.
    bool is_gzip(unsigned char first) { return first == 0x1fU && (begin_ != end_ || fill()) && static_cast<unsigned char>(buffer_[begin_]) == 0x8bU; }

    /// Reads more behind what is there. @returns whether anything came
    bool fill()
    {
        if (begin_ != 0) {
            std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
            dropped_ += begin_;
            end_ -= begin_;
            begin_ = 0;
        }
        if (end_ == buffer_.size()) {
            buffer_.resize(buffer_.empty() ? piece : 2 * buffer_.size());
        }
        auto const came = source_(buffer_.data() + end_, buffer_.size() - end_);
        end_ += came;
        return came != 0;
    }

    void refuse(wire_fault const& fault, std::string const& whose)
    {
        error_ = at(message_offset_ + fault.offset) + whose + ": " + fault.reason;
        if (fault.lengths.announced > fault.lengths.left) {
            error_ += ": " + std::to_string(fault.lengths.announced) + " bytes where " + std::to_string(fault.lengths.left) + " are left";
        }
    }

    static std::string at(std::uint64_t offset) { return "byte " + std::to_string(offset) + ": "; }
    std::uint64_t offset() const { return dropped_ + begin_; }

    static constexpr std::size_t piece = 1U << 16U;

    Source source_;
    std::vector<char> buffer_;
    std::size_t begin_ = 0;      // of what is not read yet
    std::size_t end_ = 0;        // of what has come
    std::uint64_t dropped_ = 0;  // bytes of the file that were before the buffer
    std::uint64_t message_offset_ = 0;
    chakra_storage storage_;
    chakra_metadata metadata_;
    chakra_node node_;
    std::string error_;
};

/// A source of bytes in memory.
class chakra_bytes {
public:
    explicit chakra_bytes(std::string_view encoded) : rest_{encoded} {}

    std::size_t operator()(char* to, std::size_t room)
    {
        auto const count = rest_.copy(to, room);
        rest_.remove_prefix(count);
        return count;
    }

private:
    std::string_view rest_;
};

}  // namespace rheo::inline v0
