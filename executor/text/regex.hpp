#pragma once
// SPDX-License-Identifier: Apache-2.0

// The regular expressions of tokenizers. Hugging Face's tokenizers match them with Oniguruma; here PCRE2 does, compiled to machine code. The two
// differ in details: a pattern is rewritten where they do (\s, \w, scripts), and refused where it cannot be (nested classes, anchors,
// `{n,m}+`), so that what is taken splits the same.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace rheo::inline v0 {

class regex {
public:
    enum class status : unsigned char {
        found,
        none,
        undecided,  ///< what comes behind the text may change the match
    };

    struct match {
        status is;
        std::size_t begin;
        std::size_t end;
    };

    /// @param pattern in Oniguruma's syntax @throws json_error: it is none, or means something else to PCRE2, or can match nothing
    explicit regex(std::string const& pattern);

    /// The first match from `from` on. @param open more text may follow: a match that looked at the end is undecided, and begin is where it
    /// begins @pre the text is valid UTF-8 @throws exit_error: the match needs more memory than it may take
    match find(std::string_view text, std::size_t from, bool open = false) const;

    /// Whether a match depends on nothing before it: then a text can be matched from the end of any match on.
    bool looks_only_ahead() const { return looks_only_ahead_; }

    std::string const& pattern() const { return pattern_; }

private:
    struct code;
    std::string pattern_;
    std::shared_ptr<code const> code_;
    bool looks_only_ahead_ = false;
};

/// The pattern as PCRE2 has it. @throws json_error
std::string translate_regex(std::string_view pattern);

}  // namespace rheo::inline v0
