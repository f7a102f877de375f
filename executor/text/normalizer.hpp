#pragma once
// SPDX-License-Identifier: Apache-2.0

// What is done to a text before it is split into words: the normalizers of Hugging Face's tokenizer.json in use by GPT-2, Llama, Mistral and Qwen.
// Unicode's forms come from utf8proc.

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "executor/text/replacement.hpp"

namespace rheo::inline v0 {

/// One of Unicode's normalization forms (UAX 15).
struct unicode_form {
    bool composed;
    bool compatibility;
};
struct lowercase {};
struct strip_accents {};
struct prepend {
    std::string text;
};
struct strip {
    bool left;
    bool right;
};

/// A text, and where in the text from which it was made its parts come from. A change makes the places inside it unknown, those at its ends stay known.
struct normalized_text {
    struct part {
        std::size_t at;      ///< in the normalized text
        std::size_t source;  ///< in the text before
        bool same;           ///< byte for byte up to the next part
    };
    std::string text;
    std::vector<part> parts;  ///< in order, the first at 0; empty: all is the same

    /// Where a place was before, or npos when it lies inside a change.
    std::size_t source_of(std::size_t at) const;
};

class normalizer {
public:
    using step = std::variant<unicode_form, lowercase, strip_accents, prepend, strip, replace_text, replace_regex>;

    normalizer() = default;  ///< changes nothing
    explicit normalizer(std::vector<step> steps) : steps_{std::move(steps)} {}

    /// @param begins the text is the beginning of a piece, not a later part of it: what is put before it is put there
    std::string apply(std::string_view text, bool begins = true) const;

    bool changes_nothing() const { return steps_.empty(); }
    /// Whether it is one canonical form (NFC, NFD): then a text can be cut before any character that is stable.
    unicode_form const* only_form() const;
    /// Whether each character becomes what it becomes alone, a blank becomes `mark`, and at most a prefix is put before all.
    bool marks_blanks(std::string_view mark) const;

private:
    std::vector<step> steps_;
};

/// A canonical form with the places of what was changed.
normalized_text normalize_with_places(unicode_form form, std::string_view text);

/// Whether a character is the same in the form whatever comes before it, and takes up nothing that comes before: text can be cut before it.
bool is_stable(unicode_form form, char32_t code);

/// @param value the member `normalizer` of a tokenizer.json @throws json_error naming key and value
normalizer read_normalizer(nlohmann::json const& value);

}  // namespace rheo::inline v0
