#pragma once
// SPDX-License-Identifier: Apache-2.0

// The sequences of a range of tokens: of one length, anywhere in it; or each within one document, of which the last one may be shorter.

#include <cstdint>
#include <vector>

namespace rheo::inline v0 {

/// Tokens [first, first + targets] of a source: that many are predicted.
struct token_window {
    std::int64_t first = 0;
    std::int64_t targets = 0;
    friend constexpr bool operator==(token_window const&, token_window const&) = default;
};

class sequence_windows {
public:
    sequence_windows() = default;
    /// Of tokens [begin, end), regardless of documents.
    sequence_windows(std::int64_t begin, std::int64_t end, std::int64_t length);
    /// @param ends behind the last token of each document, ascending, the last one of the range among them
    sequence_windows(std::int64_t begin, std::int64_t length, std::vector<std::int64_t> ends);

    /// Sequences that cover the range once. Without documents they leave out up to a sequence of tokens at its ends.
    std::int64_t count() const { return count_; }
    /// Tokens by which all of these may be moved.
    std::int64_t slack() const { return slack_; }
    /// The n-th of them. Cost: with documents, a search among them
    token_window nth(std::int64_t n, std::int64_t moved = 0) const;
    /// One that begins anywhere; in a document, one that has the drawn token, and is whole if the document is long enough. @param fraction of 2^64
    token_window drawn(std::uint64_t fraction) const;

private:
    /// The document that has item `number`, which becomes its number within that. @param before items before a block  @param count items of a document
    template <class Before, class Count>
    std::size_t find(std::int64_t& number, Before before, Count count) const;
    std::int64_t begin_of(std::size_t document) const { return document == 0 ? begin_ : ends_[document - 1]; }
    std::int64_t targets_in(std::size_t document) const { return ends_[document] - begin_of(document) - 1; }
    std::int64_t windows_in(std::size_t document) const { return (targets_in(document) + length_ - 1) / length_; }

    std::int64_t begin_ = 0;
    std::int64_t length_ = 1;
    std::int64_t count_ = 0;
    std::int64_t slack_ = 0;
    std::int64_t places_ = 0;  ///< from which `drawn` takes one
    std::vector<std::int64_t> ends_{};
    struct block_start {
        std::int64_t windows;
        std::int64_t targets;
    };
    std::vector<block_start> blocks_{};  ///< before each block of documents
};

}  // namespace rheo::inline v0
