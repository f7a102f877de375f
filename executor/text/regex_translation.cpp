// SPDX-License-Identifier: Apache-2.0
// Oniguruma's syntax (Ruby's) as PCRE2's. Sources: Oniguruma's doc/RE, pcre2pattern(3). What both read alike is kept; the rest is rewritten or refused.
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/text/regex.hpp"

namespace rheo::inline v0 {

namespace {

[[noreturn]] void refuse(std::string_view pattern, std::string const& why)
{
    throw json_error{fmt::format("has the regular expression '{}', which rheo does not support: {}", pattern, why)};
}

class translation {
public:
    explicit translation(std::string_view pattern) : pattern_{pattern} {}

    std::string run()
    {
        while (at_ < pattern_.size()) {
            step();
        }
        if (in_class_) {
            refuse(pattern_, "a '[' is not closed");
        }
        return std::move(out_);
    }

private:
    std::string_view pattern_;
    std::string out_;
    std::size_t at_ = 0;
    bool in_class_ = false;
    bool class_begins_ = false;

    bool next_is(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

    void step()
    {
        char const c = pattern_[at_];
        if (c == '\\') {
            escape();
            class_begins_ = false;
        } else if (in_class_) {
            member_of_class(c);
        } else if (c == '[') {
            in_class_ = class_begins_ = true;
            out_ += c;
            ++at_;
            if (next_is("^")) {
                out_ += '^';
                ++at_;
            }
        } else if (c == '^' || c == '$') {
            refuse(pattern_, fmt::format("the anchor {} at byte {}", c, at_));
        } else if (next_is("}+")) {
            refuse(pattern_, "'}+' is possessive for one library and greedy for the other");
        } else if (next_is("{,")) {
            refuse(pattern_, "'{,' begins a repetition for one library and is text for the other");
        } else if (next_is("}?") && out_.find_last_not_of("0123456789") == out_.rfind('{')) {
            refuse(pattern_, "'{n}?' may be left out for one library and not for the other");
        } else if (next_is("(?") && !next_is("(?:") && !next_is("(?i:") && !next_is("(?=") && !next_is("(?!") && !next_is("(?<=") && !next_is("(?<!") &&
                   !next_is("(?>")) {
            refuse(pattern_, fmt::format("the group at byte {}", at_));
        } else if (c == '(' && pattern_.substr(at_ + 1).starts_with("*")) {
            refuse(pattern_, fmt::format("the verb at byte {}", at_));
        } else {
            out_ += c;
            ++at_;
        }
    }

    void member_of_class(char c)
    {
        if (c == ']' && class_begins_) {
            refuse(pattern_, fmt::format("a ']' at the beginning of a class, at byte {}", at_));
        }
        if (c == '[') {
            refuse(pattern_, fmt::format("a '[' inside a class, at byte {}", at_));
        }
        if (next_is("&&")) {
            refuse(pattern_, fmt::format("'&&' inside a class, at byte {}", at_));
        }
        in_class_ = c != ']';
        class_begins_ = false;
        out_ += c;
        ++at_;
    }

    void escape()
    {
        if (at_ + 1 >= pattern_.size()) {
            refuse(pattern_, "it ends in a backslash");
        }
        char const c = pattern_[at_ + 1];
        at_ += 2;
        constexpr std::string_view word = "\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}";  // Oniguruma's \w
        switch (c) {
        case 's': out_ += "\\p{White_Space}"; return;  // PCRE2's own has U+180E, too
        case 'S': out_ += "\\P{White_Space}"; return;
        case 'd': out_ += "\\p{Nd}"; return;
        case 'D': out_ += "\\P{Nd}"; return;
        case 'w': out_ += in_class_ ? std::string{word} : fmt::format("[{}]", word); return;
        case 'W':
            if (in_class_) {
                refuse(pattern_, "\\W inside a class");
            }
            out_ += fmt::format("[^{}]", word);
            return;
        case 'p':
        case 'P': property(c); return;
        case 'u': hexadecimal(4); return;
        case 'x': hexadecimal(2); return;
        case 'n':
        case 'r':
        case 't':
        case 'f': break;
        default:
            if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80) {
                refuse(pattern_, fmt::format("the escape \\{} at byte {}", static_cast<unsigned char>(c) < 0x80 ? std::string{c} : "", at_ - 2));
            }
        }
        out_ += '\\';
        out_ += c;
    }

    /// \p{L}, \p{Lu}, \p{^L} are general categories for both; longer names are scripts or properties.
    void property(char kind)
    {
        auto const end = pattern_.find('}', at_);
        if (!next_is("{") || end == std::string_view::npos) {
            refuse(pattern_, fmt::format("\\{} without a name in braces, at byte {}", kind, at_ - 2));
        }
        auto name = pattern_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        auto inverted = kind == 'P';
        if (name.starts_with('^')) {
            inverted = !inverted;
            name.remove_prefix(1);
        }
        for (char const c : name) {
            if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '_') {
                refuse(pattern_, fmt::format("the property '{}'", name));
            }
        }
        auto const category = name.size() <= 2 && !name.starts_with('Y') && !name.starts_with('y');  // none begins so, but the script Yi does
        auto const plain = category || name == "Any" || name == "White_Space" || name == "Alphabetic" || name == "Emoji" || name == "Extended_Pictographic" ||
                           name == "Emoji_Presentation" || name == "Lowercase" || name == "Uppercase";
        out_ += fmt::format("\\{}{{{}{}}}", inverted ? 'P' : 'p', plain ? "" : "sc:", name);  // PCRE2's own are scripts with their extensions
    }

    void hexadecimal(std::size_t count)
    {
        auto const digits = pattern_.substr(at_, count);
        if (digits.size() < count || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) {
            refuse(pattern_, fmt::format("an escape without {} hexadecimal digits, at byte {}", count, at_ - 2));
        }
        at_ += count;
        if (count == 2 && digits[0] >= '8') {
            refuse(pattern_, fmt::format("\\x{} is a byte, not a character", digits));
        }
        out_ += fmt::format("\\x{{{}}}", digits);
    }
};

}  // namespace

std::string translate_regex(std::string_view pattern) { return translation{pattern}.run(); }

}  // namespace rheo::inline v0
