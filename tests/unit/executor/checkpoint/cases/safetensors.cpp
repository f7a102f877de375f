// SPDX-License-Identifier: Apache-2.0
// A header says where things are; none of it is believed.
#include "executor/checkpoint/safetensors.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>

#include "rheo/units/expects.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string with_length(std::string const& header, std::uint64_t length)
{
    std::string text(8, '\0');
    std::memcpy(text.data(), &length, 8);
    return text + header;
}

safetensors_header parse(std::string const& file, std::int64_t size = -1)
{
    return parse_safetensors(std::as_bytes(std::span{file}), size < 0 ? static_cast<std::int64_t>(file.size()) : size, "x.safetensors");
}

/// A file of this header with so many bytes of data.
safetensors_header parse_header(std::string const& header, std::size_t data) { return parse(with_length(header, header.size()) + std::string(data, 'd')); }

std::string entry(std::string const& name, std::string const& shape, std::string const& places, std::string const& dtype = "F32")
{
    return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" + places + "]}";
}

}  // namespace

TEST_CASE("safetensors: what is formatted can be read, in any sizes")
{
    std::mt19937 draw{3};
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<safetensors_entry> entries;
        for (unsigned i = 0; i < draw() % 6; ++i) {
            entries.push_back({"name \"" + std::to_string(i) + "\"\n\u00e4", "F32", {}, 0, 0});
            for (unsigned d = 0; d < draw() % 4; ++d) {
                entries.back().shape.push_back(static_cast<std::int64_t>(draw() % 5));
            }
        }
        auto const header = format_safetensors(entries);
        CHECK(header.size() % 8 == 0);
        auto const data = entries.empty() ? 0 : static_cast<std::size_t>(entries.back().end);
        auto read = parse(header + std::string(data, 'x'));
        CHECK(read.data_begin == static_cast<std::int64_t>(header.size()));
        CHECK(read.file_bytes == static_cast<std::int64_t>(header.size() + data));
        for (auto const& e : entries) {  // entries without bytes may lie at one place in any order
            CHECK(std::find(read.entries.begin(), read.entries.end(), e) != read.entries.end());
        }
        CHECK(read.entries.size() == entries.size());
    }
    std::vector<safetensors_entry> twice(2, {"a", "F32", {1}, 0, 0});
    CHECK_THROWS_AS(format_safetensors(twice), precondition_error);
}

TEST_CASE("safetensors: a file is read by its names")
{
    temporary_folder const folder;
    std::vector<safetensors_entry> entries{{"a", "F32", {2}, 0, 0}, {"b", "F32", {1, 3}, 0, 0}};
    float const values[] = {1, 2, 3, 4, 5};
    auto content = format_safetensors(entries);
    content.append(reinterpret_cast<char const*>(values), sizeof values);
    safetensors_file const file{folder.write("w.safetensors", content)};
    REQUIRE(file.find("b") != nullptr);
    CHECK(file.find("c") == nullptr);
    CHECK(file.read(*file.find("b")) == std::vector<float>{3, 4, 5});
    CHECK(file.read(*file.find("a")) == std::vector<float>{1, 2});
    std::filesystem::resize_file(file.path(), content.size() - 1);
    CHECK_THROWS_WITH(file.read(*file.find("b")), ContainsSubstring("now has"));
    CHECK_THROWS_WITH(safetensors_file{folder.path / "none"}, ContainsSubstring("none' cannot be opened: No such file"));
    CHECK_THROWS_WITH(safetensors_file{folder.path}, ContainsSubstring("Is a directory"));
    auto const halves = "{" + entry("a", "2", "0,4", "F16") + "," + entry("b", "2", "4,8", "BF16") + "," + entry("c", "1", "8,16", "F64") + "}";
    auto const stored = std::string{"\x00\x3c\x01\x80", 4} + std::string{"\x80\x3f\x20\xc1", 4} + std::string(8, '\0');
    safetensors_file const other{folder.write("h.safetensors", with_length(halves, halves.size()) + stored)};
    CHECK(other.read(*other.find("a")) == std::vector<float>{1, -0x1p-24F});
    CHECK(other.read(*other.find("b")) == std::vector<float>{1, -10});
    CHECK_THROWS_WITH(other.read(*other.find("c")), ContainsSubstring("has 'c' in F64; F32, F16 and BF16 can be read"));
}

TEST_CASE("safetensors: lengths that lie beyond the file")
{
    CHECK_THROWS_WITH(parse(std::string{"abc"}), ContainsSubstring("it has only 3 bytes"));
    for (std::uint64_t const length : {std::uint64_t{1}, std::uint64_t{100'000'001}, std::uint64_t{1} << 32, std::uint64_t{1} << 63,
                                       (std::uint64_t{1} << 63) - 1, ~std::uint64_t{0}, ~std::uint64_t{0} - 7}) {
        CHECK_THROWS_WITH(parse(with_length("", length)), ContainsSubstring("says that its header has"));
    }
    CHECK_THROWS_WITH(parse(with_length("{}", 200'000'000), std::int64_t{1} << 40), ContainsSubstring("a header at most 100000000"));
    CHECK(parse_header("{}", 0).entries.empty());
    CHECK_THROWS_WITH(parse_header("", 0), ContainsSubstring("is not JSON"));
}

TEST_CASE("safetensors: overlapping or missing ranges are rejected")
{
    CHECK(parse_header("{" + entry("a", "1", "0,4") + "," + entry("b", "2,1", "4,12") + "}", 12).entries.size() == 2);
    auto const refused = [](std::string const& entries, std::size_t data, std::string const& message) {
        CHECK_THROWS_WITH(parse_header("{" + entries + "}", data), ContainsSubstring(message));
    };
    refused(entry("a", "1", "0,4") + "," + entry("b", "1", "0,4"), 4, "but what is before it ends at 4");
    refused(entry("a", "2", "0,8") + "," + entry("b", "1", "4,8"), 8, "but what is before it ends at 8");
    refused(entry("a", "1", "4,8"), 8, "but what is before it ends at 0");
    refused(entry("a", "1", "0,4"), 8, "it was cut or grew");
    refused(entry("a", "2", "0,8"), 4, "lies in bytes 0 to 8 of its data, which are 4");
    refused(entry("a", "1", "4,0"), 4, "lies in bytes 4 to 0");
    refused(entry("a", "2", "0,4"), 4, "which is not the size of its shape");
    refused(entry("a", "1", "-4,0"), 4, "'data_offsets' that is not a whole number");
    refused(entry("a", "1", "0,9223372036854775808"), 4, "'data_offsets' that is not a whole number");
    refused(entry("a", "1", "0,9223372036854775807"), 4, "lies in bytes");
    refused(entry("a", "1", "0,18446744073709551616"), 4, "'data_offsets' that is not a whole number");
    refused(entry("a", "1", "0,4.0"), 4, "'data_offsets' that is not a whole number");
    refused(entry("a", "1", "0,4,8"), 4, "and 3 places");
    refused(entry("a", "-1", "0,4"), 4, "'shape' that is not a whole number");
    refused(entry("a", "4294967296,4294967296", "0,0"), 0, "which is not the size of its shape");
    refused(entry("a", "4611686018427387904,4", "0,0"), 0, "which is not the size of its shape");
    refused(entry("a", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "0,4"), 4, "17 dimensions");
    refused(entry("a", "1", "0,4", "F33"), 4, "unknown dtype");
    refused(entry("a", "1", "0,4") + "," + entry("a", "1", "4,8"), 8, "has the key 'a' twice");
    refused("\"a\":{\"dtype\":1}", 0, "'dtype' that is not a text");
    refused("\"a\":{}", 0, "has no 'dtype'");
    refused("\"a\":[]", 0, "an object with 'dtype' was expected");
    refused("\"__metadata__\":{\"a\":1}", 0, "metadata that are not all text");
    refused("\"__metadata__\":[]", 0, "metadata that are not all text");
    CHECK_THROWS_WITH(parse_header("[]", 0), ContainsSubstring("a header that is not an object"));
    CHECK_THROWS_WITH(parse_header(std::string(100000, '['), 0), ContainsSubstring("is nested deeper than 3"));
    std::string deep = "{\"a\":";
    for (int i = 0; i < 50000; ++i) {
        deep += "{\"a\":";
    }
    CHECK_THROWS_WITH(parse_header(deep, 0), ContainsSubstring("is nested deeper than 3"));
    CHECK_THROWS_WITH(parse_header("{\"\xff\xfe\":1}", 0), ContainsSubstring("is not JSON"));
}

TEST_CASE("safetensors: huge sparse file allocates nothing")
{
    temporary_folder const folder;
    auto const header = "{" + entry("a", "1152921504606846976", "0,4611686018427387904") + "}";
    auto const path = folder.write("s.safetensors", with_length(header, header.size()));
    std::error_code error;
    std::filesystem::resize_file(path, 8 + header.size() + 4611686018427387904U, error);
    if (error) {
        CHECK_THROWS_WITH(safetensors_file{path}, ContainsSubstring("of its data, which are 0"));
        return;
    }
    safetensors_file const file{path};
    CHECK_THROWS_WITH(file.read(*file.find("a")), ContainsSubstring("there is not so much memory"));
}
