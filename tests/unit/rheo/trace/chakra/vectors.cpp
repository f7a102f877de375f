// SPDX-License-Identifier: Apache-2.0
// The codec against published files and the bytes of Protocol Buffers, where RHEO_SHARED names the folder with them.
#if __has_include(<nlohmann/json.hpp>)
#include <string>

#include <nlohmann/json.hpp>

#include "owned_node.hpp"
#include "rheo/trace/chakra/dependencies.hpp"
#include "shared_files.hpp"

using namespace rheo;

namespace {

using json = nlohmann::json;

chakra_member member_named(std::string const& name)
{
    for (auto m = first_chakra_member; m <= last_chakra_member; ++m) {
        auto const member = static_cast<chakra_member>(m);
        if (name_of(member) == name || name_of(member) == name + "_val") {
            return member;
        }
    }
    FAIL("no member " << name);
    return chakra_member::none;
}

std::uint64_t bits_of(chakra_member m, json const& value)
{
    switch (element_of(m)) {
    case chakra_member::double_val: return to_attribute_bits(value.get<double>());
    case chakra_member::float_val: return to_attribute_bits(value.get<float>());
    case chakra_member::bool_val: return value.get<bool>() ? 1 : 0;
    default: return value.is_number_unsigned() ? value.get<std::uint64_t>() : static_cast<std::uint64_t>(value.get<std::int64_t>());
    }
}

std::string_view text_of(chakra_member m, json const& value, test::chakra_pool& pool)
{
    auto const text = value.get<std::string>();
    return pool.keep(element_of(m) == chakra_member::bytes_val ? test::from_hex(text) : text);
}

chakra_attribute attribute_of(json const& entry, test::chakra_pool& pool)
{
    auto const m = member_named(entry[1]);
    chakra_attribute a{.name = pool.keep(entry[0]), .member = m};
    if (is_list(m) && is_text(m)) {
        auto& texts = pool.lists.emplace_back();
        for (auto const& value : entry[2]) {
            texts.push_back(text_of(m, value, pool));
        }
        a.texts = texts;
    } else if (is_list(m)) {
        auto& numbers = pool.numbers.emplace_back();
        for (auto const& value : entry[2]) {
            numbers.push_back(bits_of(m, value));
        }
        a.numbers = numbers;
    } else if (is_text(m)) {
        a.text = text_of(m, entry[2], pool);
    } else {
        a.bits = bits_of(m, entry[2]);
    }
    return a;
}

array_view<chakra_attribute const> attributes_of(json const& fields, test::chakra_pool& pool)
{
    auto& attributes = pool.attributes.emplace_back();
    for (auto const& entry : fields.value("attr", json::array())) {
        attributes.push_back(attribute_of(entry, pool));
    }
    return attributes;
}

std::optional<chakra_io> io_of(json const& fields, char const* name, test::chakra_pool& pool)
{
    if (!fields.contains(name)) {
        return std::nullopt;
    }
    auto const& io = fields[name];
    return chakra_io{pool.keep(io["values"]), pool.keep(io["shapes"]), pool.keep(io["types"])};
}

chakra_node node_of(json const& fields, test::chakra_pool& pool)
{
    auto const number = [&](char const* name) { return fields.value(name, std::uint64_t{0}); };
    auto const ids = [&](char const* name) -> array_view<std::uint64_t const> {
        return pool.numbers.emplace_back(fields.value(name, std::vector<std::uint64_t>{}));
    };
    return {.id = number("id"),
            .name = pool.keep(fields.value("name", std::string{})),
            .type = static_cast<chakra_node_type>(number("type")),
            .ctrl_deps = ids("ctrl_deps"),
            .data_deps = ids("data_deps"),
            .start_time_micros = number("start_time_micros"),
            .duration_micros = number("duration_micros"),
            .inputs = io_of(fields, "inputs", pool),
            .outputs = io_of(fields, "outputs", pool),
            .attributes = attributes_of(fields, pool)};
}

/// The cases of one of the JSON files; none, with a word, without the folder.
json cases_of(char const* name)
{
    auto const folder = test::chakra_folder();
    return folder.empty() ? json::array() : json::parse(test::bytes_of(folder / name))["cases"];
}

template <class Message>
std::string framed(Message const& message)
{
    std::string bytes(framed_size(message), '\0');
    encode_framed(message, bytes.data());
    return bytes;
}

}  // namespace

TEST_CASE("chakra vectors: messages have the bytes of protobuf")
{
    auto const cases = cases_of("messages.json");
    CHECK((cases.empty() || cases.size() == 44));
    for (auto const& c : cases) {
        CAPTURE(c["name"]);
        test::chakra_pool pool;
        chakra_storage storage;
        auto const bytes = test::from_hex(c["hex"].get<std::string>());
        auto const in_file = test::from_hex(c["framed_hex"].get<std::string>());
        if (c["message"] == "Node") {
            auto const node = node_of(c["fields"], pool);
            CHECK(test::encoded(node) == bytes);
            CHECK(framed(node) == in_file);
            chakra_node read;
            CHECK_FALSE(decode(bytes, storage, read));
            CHECK(test::same_node(read, node));
        } else {
            chakra_metadata const metadata{pool.keep(c["fields"]["version"]), attributes_of(c["fields"], pool)};
            CHECK(test::encoded(metadata) == bytes);
            CHECK(framed(metadata) == in_file);
            chakra_metadata read;
            CHECK_FALSE(decode(bytes, storage, read));
            CHECK(read.version == metadata.version);
            CHECK(std::equal(read.attributes.begin(), read.attributes.end(), metadata.attributes.begin(), metadata.attributes.end()));
        }
        CHECK(storage.unknown_fields == 0);
    }
}

TEST_CASE("chakra vectors: what only a reader meets is read")
{
    for (auto const& c : cases_of("read_only.json")) {
        CAPTURE(c["name"]);
        test::chakra_pool pool;
        auto const bytes = test::from_hex(c["hex"].get<std::string>());
        auto const file = framed(chakra_metadata{"0.0.4"}) + static_cast<char>(bytes.size()) + bytes;
        chakra_reader reader{chakra_bytes{file}};
        auto const* const node = reader.next();
        REQUIRE(node != nullptr);
        CHECK(test::same_node(*node, node_of(c["fields"], pool)));
        CHECK(reader.unknown_fields() == c.value("unknown", 0U));
        chakra_dependencies<> dependencies;
        dependencies.add(*node);
        auto const wrong = dependencies.finish();
        CHECK(wrong.empty() == node->data_deps.empty());  // these nodes stand alone
        CHECK(dependencies.absent_controls() == c.value("absent_controls", 0U));
    }
}

TEST_CASE("chakra vectors: what is to be refused is refused")
{
    for (auto const& c : cases_of("refused.json")) {
        CAPTURE(c["name"], c["why"]);
        auto const file = test::from_hex(c["hex"].get<std::string>());
        chakra_reader reader{chakra_bytes{file}};
        chakra_dependencies<> dependencies;
        while (auto const* const node = reader.next()) {
            dependencies.add(*node);
        }
        auto const error = reader.error().empty() ? dependencies.finish() : reader.error();
        CAPTURE(error);
        CHECK((error.starts_with("byte ") || error.find("node") != error.npos));
    }
}

TEST_CASE("chakra vectors: published files are written again")
{
    auto const folder = test::chakra_folder();
    if (folder.empty()) {
        return;
    }
    for (auto const size : {81U, 83U}) {
        auto const file = test::from_hex(test::bytes_of(folder / ("all_reduce_" + std::to_string(size) + "_bytes.hex")));
        CHECK(file.size() == size);
        CHECK(test::written_again(file) == file);
    }
    for (int rank = 0; rank < 4; ++rank) {
        auto const file = test::bytes_of(folder / "two_pipelines" / ("job." + std::to_string(rank) + ".et"));
        CHECK(test::written_again(file) == file);
    }
}
#endif
