#pragma once
// SPDX-License-Identifier: Apache-2.0

// Chakra messages from bytes, as any Protocol Buffers reader takes them: fields in any order, repeated numbers packed or one by one or in
// parts, the last of a scalar and of a oneof counts, messages that come twice are merged. Fields that the schema does not have are skipped and
// counted. Memory that is used grows with bytes that are there, never with a length that announces them.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "rheo/trace/chakra/attribute.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/utf8.hpp"
#include "rheo/trace/chakra/wire.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// What a message that was read views, besides its own bytes. Kept between messages, it stops allocating after the first ones.
struct chakra_storage {
    /// Where the list of an attribute begins; it views its elements when all have their place.
    struct list {
        std::size_t attribute;
        std::size_t number;
        std::size_t text;
    };

    std::vector<std::uint64_t> ctrl_deps{};
    std::vector<std::uint64_t> data_deps{};
    std::vector<chakra_attribute> attributes{};
    std::vector<std::uint64_t> numbers{};
    std::vector<std::string_view> texts{};
    std::vector<list> lists{};
    std::uint64_t unknown_fields = 0;  ///< of all messages
};

namespace detail {

/// Passes over a field that the schema does not have.
constexpr void skip_unknown(wire_cursor& in, wire_type type, chakra_storage& storage)
{
    in.skip(type);
    ++storage.unknown_fields;
}

/// Whether the field has the wire type of the schema; else the reading ends.
constexpr bool has_type(wire_cursor& in, wire_tag tag, wire_type expected, char const* where)
{
    if (tag.type != expected) {
        in.refuse("a field has the wire type of another: this is no Chakra trace, or one of another schema", where);
        return false;
    }
    return true;
}

constexpr void decode_text(wire_cursor& in, wire_tag tag, char const* where, std::string_view& text)
{
    if (has_type(in, tag, wire_type::delimited, where)) {
        text = in.delimited();
        if (!is_utf8(text)) {
            in.refuse("a text that is not UTF-8", where);
        }
    }
}

constexpr void decode_number(wire_cursor& in, wire_tag tag, char const* where, std::uint64_t& number)
{
    if (has_type(in, tag, wire_type::varint, where)) {
        number = in.varint();
    }
}

constexpr std::uint64_t decode_value(wire_cursor& in, chakra_member m)
{
    switch (wire_type_of(m)) {
    case wire_type::fixed64: return in.fixed<8>();
    case wire_type::fixed32: return from_wire(m, in.fixed<4>());
    default: return from_wire(m, in.varint());
    }
}

/// One field of a repeated number: packed or one value, added to those that came before.
template <class OnlyWhenCalled = void>
constexpr void decode_repeated(wire_cursor& in, wire_tag tag, char const* where, chakra_member m, std::vector<std::uint64_t>& numbers)
{
    if (tag.type == wire_type::delimited) {
        for (auto packed = in.message(); packed.more();) {
            numbers.push_back(decode_value(packed, m));
        }
    } else if (has_type(in, tag, wire_type_of(m), where)) {
        numbers.push_back(decode_value(in, m));
    }
}

/// The message of a list; elements go to the storage.
template <class OnlyWhenCalled = void>
constexpr void decode_list(wire_cursor in, chakra_member m, chakra_storage& storage)
{
    while (in.more()) {
        auto const* const where = in.place();
        auto const tag = in.tag();
        if (tag.field != 1) {
            skip_unknown(in, tag.type, storage);
        } else if (!is_text(m)) {
            decode_repeated(in, tag, where, m, storage.numbers);
        } else if (has_type(in, tag, wire_type::delimited, where)) {
            storage.texts.push_back(in.delimited());
            if (m == chakra_member::string_list && !is_utf8(storage.texts.back())) {
                in.refuse("a text that is not UTF-8", where);
            }
        }
    }
}

/// The value of an attribute, in one of the 30 members; a list is added to the storage behind what `begin` says.
template <class OnlyWhenCalled = void>
constexpr void decode_member(wire_cursor& in, wire_tag tag, char const* where, chakra_storage::list begin, chakra_storage& storage)
{
    auto const m = static_cast<chakra_member>(tag.field);
    auto& a = storage.attributes[begin.attribute];
    if (m != a.member) {  // the last one counts
        a.member = m;
        a.bits = 0;
        a.text = {};
        storage.numbers.resize(begin.number);
        storage.texts.resize(begin.text);
    }
    if (is_list(m)) {
        if (has_type(in, tag, wire_type::delimited, where)) {
            decode_list(in.message(), m, storage);
        }
    } else if (m == chakra_member::bytes_val) {
        if (has_type(in, tag, wire_type::delimited, where)) {
            a.text = in.delimited();
        }
    } else if (is_text(m)) {
        decode_text(in, tag, where, a.text);
    } else if (has_type(in, tag, wire_type_of(m), where)) {
        a.bits = decode_value(in, m);
    }
}

template <class OnlyWhenCalled = void>
constexpr void decode_attribute(wire_cursor in, chakra_storage& storage)
{
    chakra_storage::list const begin{storage.attributes.size(), storage.numbers.size(), storage.texts.size()};
    storage.attributes.emplace_back();
    while (in.more()) {
        auto const* const where = in.place();
        auto const tag = in.tag();
        if (tag.field == 1) {
            decode_text(in, tag, where, storage.attributes.back().name);
        } else if (tag.field == 2) {
            decode_text(in, tag, where, storage.attributes.back().doc_string);
        } else if (tag.field >= first_chakra_member && tag.field <= last_chakra_member) {
            decode_member(in, tag, where, begin, storage);
        } else {
            skip_unknown(in, tag.type, storage);
        }
    }
    if (is_list(storage.attributes.back().member)) {
        storage.lists.push_back(begin);
    }
}

/// An attribute as a field of another message.
template <class OnlyWhenCalled = void>
constexpr void decode_attribute_field(wire_cursor& in, wire_tag tag, char const* where, chakra_storage& storage)
{
    if (has_type(in, tag, wire_type::delimited, where)) {
        decode_attribute(in.message(), storage);
    }
}

template <class OnlyWhenCalled = void>
constexpr void decode_io(wire_cursor& outer, wire_tag field, char const* place, chakra_storage& storage, std::optional<chakra_io>& to)
{
    if (!has_type(outer, field, wire_type::delimited, place)) {
        return;
    }
    auto io = to.value_or(chakra_io{});
    for (auto in = outer.message(); in.more();) {
        auto const* const where = in.place();
        auto const tag = in.tag();
        switch (tag.field) {
        case 1: decode_text(in, tag, where, io.values); break;
        case 2: decode_text(in, tag, where, io.shapes); break;
        case 3: decode_text(in, tag, where, io.types); break;
        default: skip_unknown(in, tag.type, storage);
        }
    }
    to = io;
}

constexpr void decode_type(wire_cursor& in, wire_tag tag, char const* where, chakra_node_type& type)
{
    std::uint64_t number = 0;
    decode_number(in, tag, where, number);
    if (number >= chakra_node_type_count) {
        in.refuse("a node type that the schema does not have: it has 0 to 7", where);
        return;
    }
    type = static_cast<chakra_node_type>(number);
}

constexpr void clear(chakra_storage& storage)
{
    storage.ctrl_deps.clear();
    storage.data_deps.clear();
    storage.attributes.clear();
    storage.numbers.clear();
    storage.texts.clear();
    storage.lists.clear();
}

/// The attributes, with their lists where the elements are now.
constexpr array_view<chakra_attribute const> finished_attributes(chakra_storage& storage)
{
    for (std::size_t i = 0; i < storage.lists.size(); ++i) {
        auto const begin = storage.lists[i];
        bool const last = i + 1 == storage.lists.size();
        auto const numbers = last ? storage.numbers.size() : storage.lists[i + 1].number;
        auto const texts = last ? storage.texts.size() : storage.lists[i + 1].text;
        storage.attributes[begin.attribute].numbers = array_view<std::uint64_t const>{storage.numbers}.subspan(begin.number, numbers - begin.number);
        storage.attributes[begin.attribute].texts = array_view<std::string_view const>{storage.texts}.subspan(begin.text, texts - begin.text);
    }
    return storage.attributes;
}

}  // namespace detail

/// The metadata of a message; it views the message and the storage, until the next message is read with that. @returns the fault, if there is one
template <class OnlyWhenCalled = void>
constexpr wire_fault decode(std::string_view message, chakra_storage& storage, chakra_metadata& metadata)
{
    wire_fault fault;
    detail::clear(storage);
    metadata = {};
    for (wire_cursor in{message, fault}; in.more();) {
        auto const* const where = in.place();
        auto const tag = in.tag();
        switch (tag.field) {
        case 1: detail::decode_text(in, tag, where, metadata.version); break;
        case 2: detail::decode_attribute_field(in, tag, where, storage); break;
        default: detail::skip_unknown(in, tag.type, storage);
        }
    }
    metadata.attributes = detail::finished_attributes(storage);
    return fault;
}

/// The node of a message; it views the message and the storage, until the next message is read with that. @returns the fault, if there is one
template <class OnlyWhenCalled = void>
constexpr wire_fault decode(std::string_view message, chakra_storage& storage, chakra_node& node)
{
    constexpr auto id = chakra_member::uint64_val;
    wire_fault fault;
    detail::clear(storage);
    node = {};
    for (wire_cursor in{message, fault}; in.more();) {
        auto const* const where = in.place();
        auto const tag = in.tag();
        switch (tag.field) {
        case 1: detail::decode_number(in, tag, where, node.id); break;
        case 2: detail::decode_text(in, tag, where, node.name); break;
        case 3: detail::decode_type(in, tag, where, node.type); break;
        case 4: detail::decode_repeated(in, tag, where, id, storage.ctrl_deps); break;
        case 5: detail::decode_repeated(in, tag, where, id, storage.data_deps); break;
        case 6: detail::decode_number(in, tag, where, node.start_time_micros); break;
        case 7: detail::decode_number(in, tag, where, node.duration_micros); break;
        case 8: detail::decode_io(in, tag, where, storage, node.inputs); break;
        case 9: detail::decode_io(in, tag, where, storage, node.outputs); break;
        case 10: detail::decode_attribute_field(in, tag, where, storage); break;
        default: detail::skip_unknown(in, tag.type, storage);
        }
    }
    node.ctrl_deps = storage.ctrl_deps;
    node.data_deps = storage.data_deps;
    node.attributes = detail::finished_attributes(storage);
    return fault;
}

}  // namespace rheo::inline v0
