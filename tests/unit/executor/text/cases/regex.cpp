// SPDX-License-Identifier: Apache-2.0
#include "executor/text/regex.hpp"

#include <string>
#include <vector>

#include "executor/config/strict_json.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::string refusal(std::string const& pattern)
{
    try {
        regex const taken{pattern};
    } catch (json_error const& error) {
        return error.what();
    }
    return "taken";
}

/// Matches of a text, in brackets.
std::string shown(std::string const& pattern, std::string const& text)
{
    regex const made{pattern};
    std::string out;
    std::size_t at = 0;
    for (auto m = made.find(text, 0); m.is == regex::status::found; m = made.find(text, at)) {
        out += text.substr(at, m.begin - at) + '[' + text.substr(m.begin, m.end - m.begin) + ']';
        at = m.end;
    }
    return out + text.substr(at);
}

}  // namespace

TEST_CASE("regex: classes are Oniguruma's, not PCRE2's")
{
    CHECK(shown(R"(\s+)", "a \xc2\xa0\xe3\x80\x80z\xe1\xa0\x8eq") == "a[ \xc2\xa0\xe3\x80\x80]z\xe1\xa0\x8eq");  // U+180E is no white space
    CHECK(shown(R"([^\s]+)",
                "a b\xe1\xa0\x8e"
                "c") ==
          "[a] [b\xe1\xa0\x8e"
          "c]");
    CHECK(shown(R"(\w+)", "e\xcc\x81_1-\xe0\xa5\x80") == "[e\xcc\x81_1]-[\xe0\xa5\x80]");  // marks are part of words
    CHECK(shown(R"(\d+)", "12\xd9\xa3\xc2\xbd") == "[12\xd9\xa3]\xc2\xbd");
    CHECK(shown(R"(\p{Han}+)", "a\xe4\xb8\x80\xe3\x80\x82") == "a[\xe4\xb8\x80]\xe3\x80\x82");  // scripts without their extensions
    CHECK(shown(R"(\p{Yi}+)", "\xea\x80\x80\xe3\x80\x88") == "[\xea\x80\x80]\xe3\x80\x88");
    CHECK(shown(R"(\p{^L}+|\u0041)", "Ab1") == "[A]b[1]");
    CHECK(shown(R"((?i:'s)|\x2d)", "it'S-\xc5\xbf'\xc5\xbf") == "it['S][-]\xc5\xbf['\xc5\xbf]");
}

TEST_CASE("regex: patterns that mean two things are refused")
{
    CHECK_THAT(refusal("^a"), Catch::Matchers::ContainsSubstring("the anchor ^ at byte 0"));
    CHECK_THAT(refusal(R"(\p{N}{1,3}+)"), Catch::Matchers::ContainsSubstring("'}+' is possessive"));
    CHECK_THAT(refusal("ab{3}?"), Catch::Matchers::ContainsSubstring("'{n}?' may be left out"));  // Oniguruma: a(?:b{3})?
    CHECK_THAT(refusal("ab{,3}"), Catch::Matchers::ContainsSubstring("'{,' begins a repetition"));
    CHECK(refusal("ab{1,3}?[{,]") == "taken");
    CHECK_THAT(refusal(R"(\u004)"), Catch::Matchers::ContainsSubstring("an escape without 4 hexadecimal digits, at byte 0"));
    CHECK_THAT(refusal("[a[b]]"), Catch::Matchers::ContainsSubstring("'[' inside a class, at byte 2"));
    CHECK_THAT(refusal("[a&&b]"), Catch::Matchers::ContainsSubstring("'&&' inside a class"));
    CHECK_THAT(refusal(R"(\h+)"), Catch::Matchers::ContainsSubstring("the escape \\h at byte 0"));
    CHECK_THAT(refusal(R"([\W])"), Catch::Matchers::ContainsSubstring("\\W inside a class"));
    CHECK_THAT(refusal("a*"), Catch::Matchers::ContainsSubstring("can match nothing"));
    CHECK_THAT(refusal("(?<n>a)"), Catch::Matchers::ContainsSubstring("the group at byte 0"));
    CHECK_THAT(refusal("(*UCP)a"), Catch::Matchers::ContainsSubstring("the verb at byte 0"));
    CHECK_THAT(refusal("(a"), Catch::Matchers::ContainsSubstring("missing closing parenthesis"));
    CHECK_THAT(refusal("a\\"), Catch::Matchers::ContainsSubstring("ends in a backslash"));
    CHECK_THAT(refusal("[a"), Catch::Matchers::ContainsSubstring("is not closed"));
    CHECK_THAT(refusal(R"(\p{Klingon})"), Catch::Matchers::ContainsSubstring("unknown"));
    CHECK_THAT(refusal("\xff"), Catch::Matchers::ContainsSubstring("not UTF-8"));
}

TEST_CASE("regex: a match that more text may change is undecided")
{
    regex const words{R"( ?\p{L}+|\p{N}{1,3}|\s+(?!\S)|\s+)"};
    CHECK(words.looks_only_ahead());
    CHECK_FALSE(regex{R"((?<=a)b)"}.looks_only_ahead());
    struct row {
        char const* text;
        std::size_t from;
        regex::status is;
    };
    for (auto const& [text, from, is] : {row{"ab", 0, regex::status::undecided}, row{"ab ", 0, regex::status::found}, row{"12", 0, regex::status::undecided},
                                         row{"123", 0, regex::status::found}, row{"a ", 1, regex::status::undecided}, row{"a b", 1, regex::status::undecided},
                                         row{"a  b", 1, regex::status::found}, row{"..", 0, regex::status::undecided}}) {
        INFO(text << " from " << from);
        CHECK(words.find(text, from, true).is == is);
        CHECK((words.find(text, from, false).is == regex::status::found) == (text[0] != '.'));
    }
}

TEST_CASE("regex: long runs match, exponential patterns are refused")
{
    regex const blanks{R"(\s*[\r\n]+|\s+(?!\S)|\s+)"};
    auto const text = std::string(12'000'000, ' ') + "a";
    auto const match = blanks.find(text, 0);
    CHECK(match.is == regex::status::found);
    CHECK(match.end == 11'999'999);
    CHECK_THROWS_WITH(regex{"(a+)+[^a]{2}"}.find(std::string(60, 'a') + "c", 0),
                      Catch::Matchers::ContainsSubstring("cannot be matched here: match limit exceeded"));
}
