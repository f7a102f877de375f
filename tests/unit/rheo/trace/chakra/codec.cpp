// SPDX-License-Identifier: Apache-2.0
// The Chakra codec: a published file by the compiler, round trips of random graphs, and files that are cut, flipped or strange.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "owned_node.hpp"
#include "rheo/trace/chakra/dependencies.hpp"
#include "rheo/trace/chakra/reader.hpp"
#include "rheo/trace/chakra/writer.hpp"
#include "support/catch.hpp"

using namespace rheo;
using namespace std::string_view_literals;

namespace {

/// The public trace of rank 1 of an all-reduce of 1 MiB over eight ranks.
constexpr std::array all_reduce_attributes{make_attribute("is_cpu_op", false), make_attribute("comm_type", std::int64_t{0}),
                                           make_attribute("comm_size", std::int64_t{1 << 20})};
constexpr chakra_node all_reduce{.id = 1, .name = "all_reduce_8npus_1MB", .type = chakra_node_type::comm_coll, .attributes = all_reduce_attributes};

constexpr std::string_view published =
    "\x07\x0a\x05"
    "0.0.4\x4a\x08\x01\x12\x14"
    "all_reduce_8npus_1MB\x18\x07\x52\x0e\x0a\x09"
    "is_cpu_op\xd8\x01\x00\x52\x0d\x0a\x09"
    "comm_type\x48\x00\x52\x0f\x0a\x09"
    "comm_size\x48\x80\x80\x40"sv;

constexpr bool writes_the_published_file()
{
    std::array<char, 83> file{};
    auto const* const end = encode_framed(all_reduce, encode_framed(chakra_metadata{"0.0.4"}, file.data()));
    return end == file.data() + file.size() && std::string_view{file.data(), file.size()} == published;
}
static_assert(published.size() == 83 and writes_the_published_file());

constexpr bool reads_the_published_node()
{
    chakra_storage storage;
    chakra_node node;
    auto const fault = decode(published.substr(9), storage, node);
    return not fault and node.id == 1 and node.name == "all_reduce_8npus_1MB" and node.type == chakra_node_type::comm_coll and node.attributes.size() == 3 and
           node.attributes[0] == all_reduce_attributes[0] and node.attributes[1] == all_reduce_attributes[1] and
           integer_of(*find_attribute(node, "comm_size")) == 1 << 20;
}
static_assert(reads_the_published_node());

static_assert(name_of(chakra_member::double_val) == "double_val" and name_of(chakra_member::bytes_list) == "bytes_list" and
              element_of(chakra_member::bool_list) == chakra_member::bool_val);
static_assert(make_attribute("a", 1.5F).bits == 0x3fc00000 and make_attribute("a", -1).bits == UINT64_MAX);
static_assert(integer_of(make_attribute("a", UINT64_MAX)) == std::nullopt and integer_of(make_attribute("a", -7)) == -7);

/// A file of random nodes, and the nodes.
struct random_file {
    test::chakra_pool pool;
    std::vector<chakra_node> nodes;
    std::string bytes;

    random_file(unsigned seed, int count)
    {
        test::random_nodes draw{pool, seed};
        for (int i = 0; i < count; ++i) {
            nodes.push_back(draw.next());
        }
        bytes = test::file_of({"1.0.0", {}}, nodes);
    }
};

/// Reads to the end: an answer or a sentence.
std::string error_of(std::string_view file)
{
    chakra_reader reader{chakra_bytes{file}};
    chakra_dependencies<> dependencies;
    while (auto const* const node = reader.next()) {
        dependencies.add(*node);
    }
    return reader.error().empty() ? dependencies.finish() : reader.error();
}

/// Gives a few bytes at a time, and counts them.
struct dripping {
    std::string_view rest;
    std::size_t most;

    std::size_t operator()(char* to, std::size_t room)
    {
        auto const count = rest.copy(to, std::min(room, most));
        rest.remove_prefix(count);
        return count;
    }
};

}  // namespace

TEST_CASE("chakra: random graphs are read as they were written")
{
    for (unsigned seed = 0; seed < 60; ++seed) {
        random_file const file{seed, 50};
        CAPTURE(seed);
        chakra_reader reader{chakra_bytes{file.bytes}};
        CHECK(reader.metadata().version == "1.0.0");
        for (auto const& node : file.nodes) {
            auto const* const read = reader.next();
            REQUIRE(read != nullptr);
            CHECK(test::same_node(*read, node));
        }
        CHECK(reader.next() == nullptr);
        CHECK(reader.error().empty());
        CHECK(reader.unknown_fields() == 0);
        CHECK(test::written_again(file.bytes) == file.bytes);
        CHECK(error_of(file.bytes).empty());
    }
}

TEST_CASE("chakra: a file is read the same in pieces of any size")
{
    random_file const file{7, 40};
    for (std::size_t const most : {1, 2, 3, 7, 1000}) {
        chakra_reader reader{dripping{file.bytes, most}};
        for (auto const& node : file.nodes) {
            auto const* const read = reader.next();
            REQUIRE(read != nullptr);
            CHECK(test::same_node(*read, node));
        }
        CHECK(reader.next() == nullptr);
        CHECK(reader.error().empty());
    }
}

TEST_CASE("chakra: every prefix of a file is nodes or a sentence")
{
    random_file const file{11, 20};
    std::size_t whole = 0;
    for (std::size_t size = 0; size <= file.bytes.size(); ++size) {
        auto const error = error_of(std::string_view{file.bytes}.substr(0, size));
        CAPTURE(size, error);
        CHECK((error.empty() || error.starts_with("byte ")));
        whole += error.empty() ? 1 : 0;
    }
    CHECK(whole == file.nodes.size() + 1);  // those that end between two messages
}

TEST_CASE("chakra: every flipped bit is nodes or a sentence")
{
    random_file const file{13, 4};
    int refused = 0;
    for (std::size_t i = 0; i < file.bytes.size(); ++i) {
        for (unsigned bit = 0; bit < 8; ++bit) {
            auto flipped = file.bytes;
            flipped[i] = static_cast<char>(static_cast<unsigned char>(flipped[i]) ^ (1U << bit));
            auto const error = error_of(flipped);
            if (!error.empty()) {
                ++refused;
                CHECK((error.starts_with("byte ") || error.find("node") != error.npos));
            } else if (chakra_reader{chakra_bytes{flipped}}.metadata().version.size() > 0) {
                auto const again = test::written_again(flipped);
                CHECK(test::written_again(again) == again);  // what was read is written so that it reads the same
            }
        }
    }
    CHECK(refused > 100);
}

TEST_CASE("chakra: an announced length reserves nothing")
{
    std::size_t largest = 0;
    auto const file = std::string{"\x07\x0a\x05"} + "0.0.4" + "\xff\xff\xff\xff\x0f" + "some bytes";
    std::string_view rest = file;
    chakra_reader reader{[&](char* to, std::size_t room) {
        largest = std::max(largest, room);
        auto const count = rest.copy(to, room);
        rest.remove_prefix(count);
        return count;
    }};
    CHECK(reader.next() == nullptr);
    CHECK(reader.error() == "byte 8: a message of 4294967295 bytes where 10 are left; the file is cut off");
    CHECK(largest == 1U << 16U);
}

TEST_CASE("chakra: errors name the byte, the node and the reason")
{
    CHECK(error_of("") == "byte 0: the file is empty; a Chakra trace begins with metadata");
    CHECK(error_of("\x1f\x8b\x08") == "byte 0: a file of gzip, which this reader does not unpack");
    auto const after = [](std::string_view nodes) { return error_of(std::string{"\x07\x0a\x05"} + "0.0.4" + std::string{nodes}); };
    CHECK(after("\x06\x08\x05\x52\x7f\x61\x62"sv) == "byte 12: node 5: a length reaches past the end of its message: 127 bytes where 2 are left");
    CHECK(after("\x04\x08\x05\x18\x09"sv) == "byte 11: node 5: a node type that the schema does not have: it has 0 to 7");
    CHECK(after("\x02\x00\x01"sv) == "byte 9: a node: a field number is 0 or above 536870911");
    CHECK(after("\x02\x08\x02\x05\x08\x01\x2a\x01\x07"sv) == "node 1 has a data dependency on node 7, which is not in the file");
    CHECK(after("\x05\x08\x01\x2a\x01\x02\x05\x08\x02\x22\x01\x03\x05\x08\x03\x2a\x01\x01"sv) ==
          "node 1 waits for node 2, which waits for node 3, which waits for node 1: a circle of 3 nodes");
    CHECK(after("\x05\x08\x01\x2a\x01\x01"sv) == "node 1 waits for itself");
    CHECK(after("\x02\x08\x04\x02\x08\x03\x02\x08\x04"sv) == "two nodes of the file have the id 4");
}

TEST_CASE("chakra: a writer refuses a file without a version")
{
    CHECK_THROWS_AS((chakra_writer{[](std::string_view) {}, chakra_metadata{}}), precondition_error);
}

TEST_CASE("chakra: UTF-8 is what RFC 3629 says")
{
    for (std::string_view const good : {"", "a", "\x7f", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf4\x8f\xbf\xbf", "12345678\xc3\xbc"}) {
        CHECK(is_utf8(good));
    }
    for (std::string_view const bad :
         {"\x80", "\xc1\xbf", "\xc3", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "12345678\xff", "\xe2\x82"}) {
        CHECK_FALSE(is_utf8(bad));
    }
}
