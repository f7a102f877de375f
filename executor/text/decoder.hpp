#pragma once
// SPDX-License-Identifier: Apache-2.0

// Tokens back to text: the decoders of Hugging Face's tokenizer.json. Each step takes the list of pieces that the one before has left; the text is the
// pieces that are left at the end.

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "executor/text/replacement.hpp"

namespace rheo::inline v0 {

/// Bytes as byte_level.hpp writes them. Several tokens may be one character; bytes that are not UTF-8 become U+FFFD.
struct decode_byte_level {};
/// Pieces <0x00> to <0xFF> in a row are bytes: a character, or U+FFFD for each if they are none.
struct decode_byte_fallback {};
/// All pieces are one.
struct decode_fuse {};
/// Up to `start` times the character from the beginning of each piece, `stop` times from its end.
struct decode_strip {
    std::string content;
    std::size_t start;
    std::size_t stop;
};
/// Marks are blanks; in the first piece they are nothing where one was put before.
struct decode_metaspace {
    std::string mark;
    bool prepended;
};

class decoder {
public:
    using step = std::variant<decode_byte_level, decode_byte_fallback, decode_fuse, decode_strip, replace_text, replace_regex, decode_metaspace>;

    decoder() = default;  ///< blanks between tokens
    explicit decoder(std::vector<step> steps) : steps_{std::move(steps)}, given_{true} {}

    std::string decode(std::vector<std::string> pieces) const;

private:
    std::vector<step> steps_;
    bool given_ = false;
};

/// @param value the member `decoder` of a tokenizer.json @throws json_error naming key and value
decoder read_decoder(nlohmann::json const& value);

}  // namespace rheo::inline v0
