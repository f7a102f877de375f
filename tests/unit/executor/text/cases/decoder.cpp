// SPDX-License-Identifier: Apache-2.0
#include "executor/text/decoder.hpp"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"

using namespace rheo;

namespace {

std::string decoded(char const* json, std::vector<std::string> pieces) { return read_decoder(nlohmann::json::parse(json)).decode(std::move(pieces)); }

}  // namespace

TEST_CASE("decoder: each kind does what its name says")
{
    CHECK(decoded("null", {"a", "b"}) == "a b");
    CHECK(decoded(R"({"type": "Fuse"})", {"a", "b"}) == "ab");
    CHECK(decoded(R"({"type": "ByteLevel"})", {"\xc4\xa0"
                                               "a",
                                               "\xc3\x83", "\xc2\xa9"}) == " a\xc3\xa9");  // two tokens are one character
    CHECK(decoded(R"({"type": "ByteLevel"})", {"\xc3\x83", "a"}) ==
          "\xef\xbf\xbd"
          "a");
    CHECK(decoded(R"({"type": "ByteLevel"})", {"<| |>"}) == "<| |>");  // no token of bytes
    CHECK(decoded(R"({"type": "ByteFallback"})", {"<0xC3>", "<0xa9>", "x", "<0xC3>", "<0x41>"}) == "\xc3\xa9x\xef\xbf\xbd\xef\xbf\xbd");
    CHECK(decoded(R"({"type": "Strip", "content": " ", "start": 1, "stop": 2})", {"  a   "}) == " a ");
    CHECK(decoded(R"({"type": "Replace", "pattern": {"String": "_"}, "content": " "})", {"_a_", "_"}) == " a  ");
    CHECK(decoded(R"({"type": "Replace", "pattern": {"Regex": "_+"}, "content": " "})", {"__a_"}) == " a ");
    CHECK(decoded(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "always"})", {"_a", "_b"}) == "a b");
    CHECK(decoded(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"})", {"_a", "_b"}) == " a b");
    CHECK(decoded(R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "_"}, "content": " "}, {"type": "ByteFallback"},
                      {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})",
                  {"_a", "_<", "<0x0A>"}) == "a <\n");
}
