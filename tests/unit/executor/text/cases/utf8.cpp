// SPDX-License-Identifier: Apache-2.0
#include "executor/text/utf8.hpp"

#include <string>

#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("utf8: each character is written so that it reads the same")
{
    for (char32_t code = 0; code < 0x110000; code += code < 0x3000 ? 1 : 97) {
        if (code >= 0xd800 && code < 0xe000) {
            continue;
        }
        std::string text = "a";
        append_utf8(text, code);
        auto const read = utf8_at(text, 1);
        REQUIRE(read.code == code);
        REQUIRE(read.bytes == text.size() - 1);
        REQUIRE(first_invalid(text) == text.size());
        REQUIRE(utf8_before(text, text.size()) == 1);
    }
}

TEST_CASE("utf8: what is no character is replaced by its parts")
{
    // Unicode 15, table 3-8 and 3-11, and the edges of each rule.
    struct row {
        char const* bytes;
        char const* expected;
        int replaced;
    };
    for (auto const& [bytes, expected, replaced] : {
             row{"abc", "abc", 0},
             row{"\x80", "?", 1},
             row{"\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", "????????A", 8},  // overlong
             row{"\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", "????????A", 8},  // surrogates
             row{"\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", "?????A??B", 7},  // beyond U+10FFFF
             row{"\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", "????A", 4},      // cut off
             row{"\xf0\x90\x80", "?", 1},
             row{"12345678\xe2\x82", "12345678?", 1},
             row{"\xf4\x8f\xbf\xbf\xed\x9f\xbf", "\xf4\x8f\xbf\xbf\xed\x9f\xbf", 0},
         }) {
        std::string text = bytes;
        CHECK(replace_invalid(text) == replaced);
        std::string shown;
        for (std::size_t at = 0; at < text.size();) {
            auto const here = utf8_at(text, at);
            shown += here.code == 0xfffd ? std::string{"?"} : text.substr(at, here.bytes);
            at += here.bytes;
        }
        CHECK(shown == expected);
    }
}
