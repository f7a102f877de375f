// SPDX-License-Identifier: Apache-2.0
#include "executor/text/corpus/byte_stream.hpp"

#include <string>

#include <zlib.h>
#include <zstd.h>

#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

std::string gzip(std::string const& text)
{
    z_stream state{};
    REQUIRE(deflateInit2(&state, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    std::string packed(deflateBound(&state, text.size()), '\0');
    state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    state.avail_in = static_cast<uInt>(text.size());
    state.next_out = reinterpret_cast<Bytef*>(packed.data());
    state.avail_out = static_cast<uInt>(packed.size());
    REQUIRE(deflate(&state, Z_FINISH) == Z_STREAM_END);
    packed.resize(state.total_out);
    deflateEnd(&state);
    return packed;
}

std::string zstd(std::string const& text)
{
    std::string packed(ZSTD_compressBound(text.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
    return packed;
}

std::string read(std::string const& path, std::size_t most)
{
    byte_stream stream{path};
    std::string all;
    while (stream.read(all, most) > 0) {
    }
    return all;
}

std::string refusal(std::string const& path)
{
    try {
        read(path, 1000);
    } catch (exit_error const& error) {
        return error.what();
    }
    return "taken";
}

}  // namespace

TEST_CASE("byte_stream: packed files read as the text in them")
{
    temporary_folder const folder;
    std::string text;
    for (int i = 0; i < 100'000; ++i) {
        text += std::to_string(i * 7919 % 10007) + (i % 9 == 0 ? "\n" : " ");
    }
    for (std::size_t const most : {std::size_t{1000}, std::size_t{1} << 20, std::size_t{1} << 32}) {  // the last is more than zlib counts
        CHECK(read(folder.write("plain", text), most) == text);
        CHECK(read(folder.write("gzip", gzip(text)), most) == text);
        CHECK(read(folder.write("zstd", zstd(text)), most) == text);
        CHECK(read(folder.write("members.gz", gzip(text) + gzip("") + gzip("end")), most) == text + "end");  // as pigz and appending writers make them
        CHECK(read(folder.write("frames.zst", zstd(text) + zstd("") + zstd("end")), most) == text + "end");
        CHECK(read(folder.write("empty", ""), most).empty());
        CHECK(read(folder.write("short", "\x1f"), most) == "\x1f");
    }
}

TEST_CASE("byte_stream: damaged and cut off files are named")
{
    temporary_folder const folder;
    std::string const text(5000, 'a');
    auto packed = gzip(text + "b");
    auto const cut = folder.write("cut.gz", packed.substr(0, packed.size() - 9));
    CHECK(refusal(cut) == "text: '" + cut + "' is cut off: its gzip data do not end");
    packed[packed.size() - 6] ^= 1;  // of the checksum
    CHECK_THAT(refusal(folder.write("bad.gz", packed)), Catch::Matchers::ContainsSubstring("is damaged: its gzip data cannot be unpacked"));
    CHECK_THAT(refusal(folder.write("more.gz", gzip(text) + "garbage")), Catch::Matchers::ContainsSubstring("is damaged"));
    auto frame = zstd(text + "b");
    CHECK_THAT(refusal(folder.write("cut.zst", frame.substr(0, frame.size() - 3))), Catch::Matchers::ContainsSubstring("its zstd data do not end"));
    frame[5] ^= 0x40;
    CHECK_THAT(refusal(folder.write("bad.zst", frame)), Catch::Matchers::ContainsSubstring("its zstd data"));
    CHECK_THAT(refusal((folder.path / "none").string()), Catch::Matchers::ContainsSubstring("cannot be read: No such file"));
    CHECK_THAT(refusal(folder.path.string()), Catch::Matchers::ContainsSubstring("is neither a file nor a folder"));
}
