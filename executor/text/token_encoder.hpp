#pragma once
// SPDX-License-Identifier: Apache-2.0

// Texts to tokens, for one thread: the tokens of words that came before are remembered. A long text may come in chunks, which other threads encode at the
// same time. Each chunk is encoded on its own from a guessed place on; it is right if the chunk before ends exactly there, which that one reports.
// Where it ends elsewhere, the chunk is encoded again from there. So the tokens are those of the whole text, wherever it is cut.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "executor/text/tokenizer.hpp"

namespace rheo::inline v0 {

/// A stretch of a text, with some of what follows it.
struct text_chunk {
    std::string_view text;
    std::size_t own;          ///< bytes of it that are to be encoded; what is behind them is context
    bool begins_text = true;  ///< it is the beginning of the text
    bool begins_part = true;  ///< an added token ends before it, or the text begins
    bool ends_text = true;    ///< the text ends with it
};

/// Where the tokens of a chunk end.
struct chunk_end {
    std::size_t at;             ///< at or behind its own bytes; before them when the context was too short to say
    bool behind_token = false;  ///< an added token ends there
};

class token_encoder {
public:
    explicit token_encoder(tokenizer const& with);

    /// Appends the tokens of a whole text, without special tokens around it. @pre the text is valid UTF-8
    void encode(std::string_view text, std::vector<token_id>& out) { encode(text_chunk{text, text.size()}, out); }

    /// Appends the tokens of a chunk. @pre the tokenizer can cut texts, or the chunk is a whole text
    chunk_end encode(text_chunk const& chunk, std::vector<token_id>& out);

private:
    /// The tokens of a short word, in one cache line.
    struct remembered {
        std::uint8_t bytes;
        std::uint8_t count;
        std::array<char, 22> word;
        std::array<token_id, 10> tokens;
    };
    static constexpr std::size_t places = 1 << 15;

    /// A stretch between added tokens, and how far it is to be encoded.
    struct segment {
        std::string_view text;
        std::size_t target;
        bool begins_text;
        bool begins_part;
        bool open;  ///< more text follows that is not here
    };

    tokenizer tokenizer_;
    std::unique_ptr<remembered[]> memory_;
    std::vector<token_id>* out_ = nullptr;

    std::size_t encode_segment(segment const& s);
    std::size_t encode_between_matches(segment const& s);
    std::size_t encode_before_blanks(segment const& s);
    void encode_closed(segment const& s);
    void encode_piece(std::string_view piece);
    void encode_word(std::string_view word);
};

/// A place at which a long text may be cut, the last one within (least, most), for chunks of a tokenizer that can cut texts; 0: there is none.
std::size_t find_cut(tokenizer const& with, std::string_view text, std::size_t least, std::size_t most);

}  // namespace rheo::inline v0
