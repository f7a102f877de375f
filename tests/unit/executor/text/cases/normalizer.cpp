// SPDX-License-Identifier: Apache-2.0
#include "executor/text/normalizer.hpp"

#include <random>
#include <string>

#include <utf8proc.h>
#include <nlohmann/json.hpp>

#include "executor/config/strict_json.hpp"
#include "executor/text/utf8.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

normalizer read(char const* json) { return read_normalizer(nlohmann::json::parse(json)); }

std::string refusal(char const* json)
{
    try {
        read(json);
    } catch (json_error const& error) {
        return error.what();
    }
    return "taken";
}

/// The whole text by utf8proc alone.
std::string reference(unicode_form form, std::string const& text)
{
    utf8proc_uint8_t* made = nullptr;
    auto const flags = UTF8PROC_STABLE | (form.composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE) | (form.compatibility ? UTF8PROC_COMPAT : 0);
    auto const bytes = utf8proc_map(reinterpret_cast<utf8proc_uint8_t const*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &made,
                                    static_cast<utf8proc_option_t>(flags));
    std::string result{reinterpret_cast<char const*>(made), static_cast<std::size_t>(bytes)};
    std::free(made);
    return result;
}

/// Characters that compose, reorder, decompose or stand alone, side by side.
std::string random_text(std::mt19937& draw)
{
    static char32_t const codes[] = {'a',    'e',   ' ',   0xe9,  0x301, 0x323, 0x308,  0x1e9b,  0x212b,  0x1100, 0x1161,   0x11a8,
                                     0xac00, 0x9c7, 0x9be, 0x9cb, 0xf71, 0xf72, 0xfb01, 0x1d15e, 0x2f800, 0x4e00, 0x10ffff, 0x344};
    std::string text;
    for (auto left = draw() % 12; left > 0; --left) {
        append_utf8(text, draw() % 3 == 0 ? static_cast<char32_t>(draw() % 0xd800) : codes[draw() % std::size(codes)]);
    }
    return text;
}

}  // namespace

TEST_CASE("normalizer: forms by stretches are those of the whole text")
{
    std::mt19937 draw{1};
    for (int i = 0; i < 20'000; ++i) {
        auto const text = random_text(draw);
        for (unicode_form const form : {unicode_form{true, false}, {false, false}, {true, true}, {false, true}}) {
            auto const made = normalize_with_places(form, text);
            REQUIRE(made.text == reference(form, text));
            if (form.compatibility) {
                continue;
            }
            for (std::size_t at = 0; at <= made.text.size(); ++at) {  // where a place is known, both halves alone are the halves of the whole
                auto const source = made.source_of(at);
                if (source != std::string::npos && (source == text.size() || !is_utf8_continuation(text[source]))) {
                    REQUIRE(reference(form, text.substr(0, source)) + reference(form, text.substr(source)) == made.text);
                    REQUIRE(reference(form, text.substr(0, source)).size() == at);
                }
            }
        }
    }
}

TEST_CASE("normalizer: long rows of marks are put in order")
{
    std::string text = "x";
    std::string below;
    std::string above;
    for (int i = 0; i < 200'000; ++i) {
        text += "\xcc\x81\xcc\xa3";  // an acute above, a dot below
        above += "\xcc\x81";
        below += "\xcc\xa3";
    }
    for (bool const composed : {false, true}) {
        auto const made = normalize_with_places({.composed = composed, .compatibility = false}, text);
        CHECK((made.text == "x" + below + above));
    }
}

TEST_CASE("normalizer: each kind does what its name says")
{
    CHECK(read(R"({"type": "NFC"})").apply("e\xcc\x81") == "\xc3\xa9");
    CHECK(read(R"({"type": "NFKD"})").apply("\xef\xac\x81") == "fi");
    CHECK(read(R"({"type": "Lowercase"})").apply("A\xc3\x89\xc4\xb0z") == "a\xc3\xa9i\xcc\x87z");
    CHECK(read(R"({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]})").apply("\xc3\xa9t\xc3\xa9") == "ete");
    CHECK(read(R"({"type": "Strip", "strip_left": true, "strip_right": false})").apply(" \xe3\x80\x80 a ") == "a ");
    CHECK(read(R"({"type": "Strip", "strip_left": false, "strip_right": true})").apply(" a\xc2\xa0") == " a");
    CHECK(read(R"({"type": "Replace", "pattern": {"String": "ab"}, "content": "c"})").apply("aababb") == "accb");
    CHECK(read(R"({"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": "-"})").apply("a  b\nc") == "a-b-c");
    auto const prefix = read(R"({"type": "Prepend", "prepend": "_"})");
    CHECK(prefix.apply("a") == "_a");
    CHECK(prefix.apply("") == "");
    CHECK(prefix.apply("a", false) == "a");
    CHECK(read("null").changes_nothing());
}

TEST_CASE("normalizer: what is not supported is named")
{
    CHECK(refusal(R"({"type": "Precompiled", "precompiled_charsmap": ""})") ==
          "has normalizer.type = 'Precompiled', which rheo does not support; expected one of: NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Prepend, Strip, "
          "Replace, Sequence");
    CHECK(refusal(R"({"type": "NFC", "form": 3})") == "has normalizer.form = 3, which rheo does not support; expected no key but: type");
    CHECK(refusal(R"({"type": "Replace", "pattern": {"String": ""}, "content": ""})") == "has an empty pattern");
}
