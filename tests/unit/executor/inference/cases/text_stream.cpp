// SPDX-License-Identifier: Apache-2.0
// A text in the pieces in which its tokens come.
#include "executor/inference/text_stream.hpp"

#include <string>

#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("text_stream: pieces are whole characters")
{
    std::string const text = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";  // of one to four bytes
    text_stream stream;
    std::string shown;
    for (std::size_t n = 1; n <= text.size(); ++n) {
        auto const piece = stream.add(text.substr(0, n));
        CHECK((piece.empty() || piece == "a" || piece == "\xc3\xa4" || piece == "\xe2\x82\xac" || piece == "\xf0\x9f\x98\x80" || piece == "z"));
        shown += piece;
    }
    CHECK(shown == text);
    CHECK(stream.finish(text).empty());
}

TEST_CASE("text_stream: what becomes a character later waits")
{
    text_stream stream;
    CHECK(stream.add("say ") == "say ");
    CHECK(stream.add("say \xef\xbf\xbd").empty());
    CHECK(stream.add("say \xef\xbf\xbd\xef\xbf\xbd").empty());
    CHECK(stream.add("say \xf0\x9f\x98\x80") == "\xf0\x9f\x98\x80");
    CHECK(stream.add("say \xf0\x9f\x98\x80\xef\xbf\xbd").empty());
    CHECK(stream.finish("say \xf0\x9f\x98\x80\xef\xbf\xbd") == "\xef\xbf\xbd");  // so it stays
}

TEST_CASE("text_stream: bytes that are no text end, too")
{
    text_stream stream;
    std::string shown;
    std::string const bytes = "\x80\x80\x80\x80\x80\xff\xc3";
    for (std::size_t n = 1; n <= bytes.size(); ++n) {
        shown += stream.add(bytes.substr(0, n));
    }
    CHECK(shown + stream.finish(bytes) == bytes);
}
