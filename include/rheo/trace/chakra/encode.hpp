#pragma once
// SPDX-License-Identifier: Apache-2.0

// Chakra messages to bytes, exactly as Protocol Buffers makes them: fields in the order of their numbers, repeated numbers packed, nothing for
// fields that are 0 or empty, but a member of a oneof also where it is 0. Sizes come first, so that bytes are written once, in
// place, without a copy; all of it runs in constant expressions.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rheo/trace/chakra/attribute.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/wire.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

namespace detail {

constexpr std::size_t delimited_size(std::uint32_t field, std::size_t bytes)
{
    return varint_size(tag_bits(field, wire_type::delimited)) + varint_size(bytes) + bytes;
}
constexpr std::size_t text_size(std::uint32_t field, std::string_view text) { return text.empty() ? 0 : delimited_size(field, text.size()); }

constexpr char* put_tag(char* to, std::uint32_t field, wire_type type) { return put_varint(to, tag_bits(field, type)); }

/// The tag and the length of what the caller writes next.
constexpr char* put_delimited(char* to, std::uint32_t field, std::size_t bytes) { return put_varint(put_tag(to, field, wire_type::delimited), bytes); }

constexpr char* put_text(char* to, std::uint32_t field, std::string_view text)
{
    return text.empty() ? to : put_bytes(put_delimited(to, field, text.size()), text);
}

constexpr std::size_t number_size(std::uint32_t field, std::uint64_t value)
{
    return value == 0 ? 0 : varint_size(tag_bits(field, wire_type::varint)) + varint_size(value);
}
constexpr char* put_number(char* to, std::uint32_t field, std::uint64_t value)
{
    return value == 0 ? to : put_varint(put_tag(to, field, wire_type::varint), value);
}

constexpr std::size_t value_size(chakra_member m, std::uint64_t bits)
{
    auto const type = wire_type_of(m);
    return type == wire_type::fixed64 ? 8 : type == wire_type::fixed32 ? 4 : varint_size(to_wire(m, bits));
}

constexpr char* put_value(char* to, chakra_member m, std::uint64_t bits)
{
    auto const type = wire_type_of(m);
    return type == wire_type::fixed64 ? put_fixed<8>(to, bits) : type == wire_type::fixed32 ? put_fixed<4>(to, bits) : put_varint(to, to_wire(m, bits));
}

/// Bytes of packed numbers, without tag and length.
constexpr std::size_t packed_size(chakra_member m, array_view<std::uint64_t const> numbers)
{
    std::size_t size = 0;
    for (auto const bits : numbers) {
        size += value_size(m, bits);
    }
    return size;
}

/// A packed field; nothing for none.
constexpr std::size_t packed_field_size(std::uint32_t field, chakra_member m, array_view<std::uint64_t const> numbers)
{
    return numbers.empty() ? 0 : delimited_size(field, packed_size(m, numbers));
}

constexpr char* put_packed_field(char* to, std::uint32_t field, chakra_member m, array_view<std::uint64_t const> numbers)
{
    if (numbers.empty()) {
        return to;
    }
    to = put_delimited(to, field, packed_size(m, numbers));
    for (auto const bits : numbers) {
        to = put_value(to, m, bits);
    }
    return to;
}

/// The message of a list: a repeated field of number 1.
constexpr std::size_t list_size(chakra_attribute const& a)
{
    if (!is_text(a.member)) {
        return packed_field_size(1, a.member, a.numbers);
    }
    std::size_t size = 0;
    for (auto const text : a.texts) {
        size += delimited_size(1, text.size());
    }
    return size;
}

constexpr std::size_t encoded_size(chakra_attribute const& a)
{
    auto const size = text_size(1, a.name) + text_size(2, a.doc_string);
    auto const field = static_cast<std::uint32_t>(a.member);
    if (a.member == chakra_member::none) {
        return size;
    }
    if (is_list(a.member)) {
        return size + delimited_size(field, list_size(a));
    }
    return size +
           (is_text(a.member) ? delimited_size(field, a.text.size()) : varint_size(tag_bits(field, wire_type_of(a.member))) + value_size(a.member, a.bits));
}

constexpr char* encode(chakra_attribute const& a, char* to)
{
    to = put_text(put_text(to, 1, a.name), 2, a.doc_string);
    auto const field = static_cast<std::uint32_t>(a.member);
    if (a.member == chakra_member::none) {
        return to;
    }
    if (!is_list(a.member)) {
        return is_text(a.member) ? put_bytes(put_delimited(to, field, a.text.size()), a.text)
                                 : put_value(put_tag(to, field, wire_type_of(a.member)), a.member, a.bits);
    }
    to = put_delimited(to, field, list_size(a));
    if (!is_text(a.member)) {
        return put_packed_field(to, 1, a.member, a.numbers);
    }
    for (auto const text : a.texts) {
        to = put_bytes(put_delimited(to, 1, text.size()), text);
    }
    return to;
}

constexpr std::size_t encoded_size(chakra_io const& io) { return text_size(1, io.values) + text_size(2, io.shapes) + text_size(3, io.types); }
constexpr char* encode(chakra_io const& io, char* to) { return put_text(put_text(put_text(to, 1, io.values), 2, io.shapes), 3, io.types); }

/// A message inside another.
template <class Message>
constexpr std::size_t message_size(std::uint32_t field, Message const& message)
{
    return delimited_size(field, encoded_size(message));
}

template <class Message>
constexpr char* put_message(char* to, std::uint32_t field, Message const& message)
{
    return encode(message, put_delimited(to, field, encoded_size(message)));
}

constexpr std::size_t attributes_size(std::uint32_t field, array_view<chakra_attribute const> attributes)
{
    std::size_t size = 0;
    for (auto const& a : attributes) {
        size += message_size(field, a);
    }
    return size;
}

constexpr char* put_attributes(char* to, std::uint32_t field, array_view<chakra_attribute const> attributes)
{
    for (auto const& a : attributes) {
        to = put_message(to, field, a);
    }
    return to;
}

}  // namespace detail

/// Bytes of the message, without the length that a file has before it.
constexpr std::size_t encoded_size(chakra_metadata const& metadata)
{
    return detail::text_size(1, metadata.version) + detail::attributes_size(2, metadata.attributes);
}

/// Writes encoded_size(metadata) bytes. @returns behind them
constexpr char* encode(chakra_metadata const& metadata, char* to)
{
    return detail::put_attributes(detail::put_text(to, 1, metadata.version), 2, metadata.attributes);
}

/// Bytes of the message, without the length that a file has before it.
constexpr std::size_t encoded_size(chakra_node const& node)
{
    constexpr auto id = chakra_member::uint64_val;
    return detail::number_size(1, node.id) + detail::text_size(2, node.name) + detail::number_size(3, static_cast<std::uint64_t>(node.type)) +
           detail::packed_field_size(4, id, node.ctrl_deps) + detail::packed_field_size(5, id, node.data_deps) +
           detail::number_size(6, node.start_time_micros) + detail::number_size(7, node.duration_micros) +
           (node.inputs ? detail::message_size(8, *node.inputs) : 0) + (node.outputs ? detail::message_size(9, *node.outputs) : 0) +
           detail::attributes_size(10, node.attributes);
}

/// Writes encoded_size(node) bytes. @returns behind them
constexpr char* encode(chakra_node const& node, char* to)
{
    constexpr auto id = chakra_member::uint64_val;
    to = detail::put_text(detail::put_number(to, 1, node.id), 2, node.name);
    to = detail::put_number(to, 3, static_cast<std::uint64_t>(node.type));
    to = detail::put_packed_field(detail::put_packed_field(to, 4, id, node.ctrl_deps), 5, id, node.data_deps);
    to = detail::put_number(detail::put_number(to, 6, node.start_time_micros), 7, node.duration_micros);
    to = node.inputs ? detail::put_message(to, 8, *node.inputs) : to;
    to = node.outputs ? detail::put_message(to, 9, *node.outputs) : to;
    return detail::put_attributes(to, 10, node.attributes);
}

}  // namespace rheo::inline v0
