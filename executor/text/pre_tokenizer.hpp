#pragma once
// SPDX-License-Identifier: Apache-2.0

// How a normalized text is split into words, which BPE then encodes one by one: the pre-tokenizers of Hugging Face's tokenizer.json. A pre-tokenizer is a
// list of steps; each splits the pieces of the one before.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "executor/text/regex.hpp"

namespace rheo::inline v0 {

/// What becomes of the stretches that a pattern finds.
enum class split_behavior : unsigned char { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct split_by_regex {
    regex pattern;
    split_behavior behavior;
    bool invert;  ///< what is between matches counts as found
};
struct split_by_text {
    std::string pattern;
    split_behavior behavior;
    bool invert;
};
struct split_digits {
    bool individual;  ///< each digit alone, else numbers whole
};
struct split_punctuation {
    split_behavior behavior;
};
struct split_white_space {};  ///< and take it away (WhitespaceSplit)
/// A blank is written as `mark`, one may be put before, and the text may be split before each.
struct metaspace {
    enum class prepended : unsigned char { always, first, never };
    std::string mark;
    prepended prepend;
    bool split;
};
/// Puts a blank before a piece that begins with none.
struct prefix_blank {};
/// Each byte is a symbol of its own. The last step, if there is one.
struct byte_symbols {};

class pre_tokenizer {
public:
    using step = std::variant<split_by_regex, split_by_text, split_digits, split_punctuation, split_white_space, metaspace, prefix_blank, byte_symbols>;
    using take = std::function<void(std::string_view piece)>;

    pre_tokenizer() = default;  ///< one piece
    explicit pre_tokenizer(std::vector<step> steps) : steps_{std::move(steps)} {}

    std::vector<step> const& steps() const { return steps_; }

    /// Calls `each` with the pieces of a text in order, from step `from` on. @param begins the text is the beginning of the whole text
    void split(std::string_view text, bool begins, std::size_t from, take const& each) const;

    /// Whether pieces become symbols byte by byte, not character by character.
    bool is_byte_level() const { return !steps_.empty() && std::holds_alternative<byte_symbols>(steps_.back()); }

    /// The step that splits by a regular expression which can be matched on from the end of any of its matches: a long text can be cut there.
    /// Before it are at most steps that split digits, whose pieces can be cut anywhere.
    std::optional<std::size_t> resumable_step() const;

    /// The step that marks blanks, if it is the only one.
    metaspace const* only_metaspace() const;

private:
    std::vector<step> steps_;
};

/// Calls `each(begin, end)` with the runs of digits and of other characters of a text; each digit is a run where they are individual.
void digit_runs(split_digits step, std::string_view text, std::function<void(std::size_t begin, std::size_t end)> const& each);

/// @param value the member `pre_tokenizer` of a tokenizer.json @throws json_error naming key and value
pre_tokenizer read_pre_tokenizer(nlohmann::json const& value);

}  // namespace rheo::inline v0
