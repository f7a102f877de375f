// SPDX-License-Identifier: Apache-2.0
#include "executor/config/files/layout_file.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "rheo/reshard/layout_fault.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/nearest_name.hpp"

namespace rheo::inline v0 {

namespace {

using json = nlohmann::json;
using ordered = nlohmann::ordered_json;

constexpr std::array<std::string_view, tensor_roles> role_names{"parameter", "first_moment", "second_moment", "accumulator"};
constexpr std::array dtypes{dtype::f64, dtype::f32, dtype::f16, dtype::bf16, dtype::i64, dtype::i32};

/// Where in the file: "/places/2".
using place = std::string;

place below(place const& above, char const* key) { return above + "/" + key; }
place below(place const& above, std::size_t number) { return above + "/" + std::to_string(number); }

[[noreturn]] void refuse(place const& where, std::string const& message) { throw json_error{(where.empty() ? "the file" : where) + " " + message}; }

/// Whatever the readers of members refuse, with the place before it.
template <class Read>
auto at_place(place const& where, Read const& read)
{
    try {
        return read();
    } catch (json_error const& error) {
        refuse(where, error.what());
    }
}

void expect_object(json const& value, place const& where, std::vector<std::string_view> const& known)
{
    if (!value.is_object()) {
        refuse(where, "is not an object");
    }
    for (auto const& [key, ignored] : value.items()) {
        if (std::find(known.begin(), known.end(), key) == known.end()) {
            refuse(where, fmt::format("has an unknown key {}; the nearest is '{}'", in_quotes(key), nearest_name(std::string_view{key}.substr(0, 40), known)));
        }
    }
}

json const& list_at(json const& object, char const* key, place const& where, std::size_t least = 0)
{
    auto const& list = *at_place(where, [&] { return &list_member(object, key); });
    if (list.size() < least) {
        refuse(below(where, key), "is an empty list");
    }
    return list;
}

std::string text_at(json const& value, place const& where)
{
    if (!value.is_string()) {
        refuse(where, "is not a text");
    }
    return value.get<std::string>();
}

tensor_role read_role(std::string const& name, place const& where)
{
    auto const found = std::find(role_names.begin(), role_names.end(), name);
    if (found == role_names.end()) {
        refuse(where, fmt::format("is {}, which is no role; roles are parameter, first_moment, second_moment, accumulator", in_quotes(name)));
    }
    return static_cast<tensor_role>(found - role_names.begin());
}

role_set read_roles(json const& list, place const& where)
{
    role_set roles{std::uint8_t{0}};
    for (std::size_t i = 0; i < list.size(); ++i) {
        roles = roles | read_role(text_at(list[i], below(where, i)), below(where, i));
    }
    return roles;
}

int dimensions_of(json const& list, place const& where)
{
    if (list.size() > most_dimensions) {
        refuse(where, fmt::format("has {} dimensions, but an array has at most {}", list.size(), most_dimensions));
    }
    return static_cast<int>(list.size());
}

nd_shape read_shape(json const& list, place const& where)
{
    nd_shape shape;
    shape.dimensions = dimensions_of(list, where);
    for (std::size_t d = 0; d < list.size(); ++d) {
        shape[static_cast<int>(d)] = at_place(where, [&] { return integer_of(list[d], "length", {}); });
    }
    return shape;
}

nd_box read_box(json const& list, place const& where)
{
    nd_box box;
    box.dimensions = dimensions_of(list, where);
    for (std::size_t d = 0; d < list.size(); ++d) {
        auto const here = below(where, d);
        if (!list[d].is_array() || list[d].size() != 2) {
            refuse(here, "is not a range like [0, 4], from the first index to the one behind the last");
        }
        auto const index = [&](std::size_t i) { return at_place(here, [&] { return integer_of(list[d][i], "index", {}); }); };
        box[static_cast<int>(d)] = {index(0), index(1)};
        if (index(1) < index(0)) {
            refuse(here, fmt::format("ends at {}, before it begins at {}", index(1), index(0)));
        }
    }
    return box;
}

/// "f32", or the bytes of one element.
element_format read_format(json const& value, place const& where)
{
    if (!value.is_string()) {
        return bytes{at_place(where, [&] { return integer_of(value, "size of an element", {1, 1 << 20}); })};
    }
    for (auto const type : dtypes) {
        if (value.get<std::string>() == name_of(type)) {
            return type;
        }
    }
    refuse(where, fmt::format("is {}, which is no dtype; dtypes are f64, f32, f16, bf16, i64, i32, or a number of bytes", in_quotes(value.get<std::string>())));
}

layout_tensor read_tensor(json const& value, place const& where)
{
    expect_object(value, where, {"name", "shape", "padded", "dtypes", "addends"});
    layout_tensor tensor;
    auto const name = at_place(where, [&] { return text_member(value, "name"); });
    if (name.empty() || name.size() >= sizeof tensor.name.letters) {
        refuse(below(where, "name"), fmt::format("has {} letters; names have 1 to {}", name.size(), sizeof tensor.name.letters - 1));
    }
    tensor.name = tensor_name{std::string_view{name}};
    tensor.shape = read_shape(list_at(value, "shape", where, 1), below(where, "shape"));
    if (value.contains("padded")) {
        tensor.padded = read_shape(list_at(value, "padded", where, 1), below(where, "padded"));
    }
    tensor.element = {};
    auto const& formats = *at_place(where, [&] { return &member(value, "dtypes"); });
    auto const here = below(where, "dtypes");
    if (!formats.is_object() || formats.empty()) {
        refuse(here, "is not an object with the dtype of each role, like {\"parameter\": \"f32\"}");
    }
    for (auto const& [role, format] : formats.items()) {
        tensor.element[static_cast<std::size_t>(read_role(role, here))] = read_format(format, below(here, role.c_str()));
    }
    if (value.contains("addends")) {
        tensor.addends = read_roles(list_at(value, "addends", where), below(where, "addends"));
    }
    return tensor;
}

sub_collection read_place(json const& value, place const& where, array_layout const& layout, std::map<std::string, tensor_id, std::less<>> const& known)
{
    expect_object(value, where, {"ranks", "parts"});
    sub_collection result;
    auto const& ranks = list_at(value, "ranks", where, 1);
    for (auto const& rank : ranks) {
        result.ranks.push_back(rank_id{static_cast<std::int32_t>(at_place(below(where, "ranks"), [&] { return integer_of(rank, "rank", {0, INT_MAX}); }))});
    }
    auto const& parts = list_at(value, "parts", where);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto const here = below(below(where, "parts"), i);
        expect_object(parts[i], here, {"tensor", "roles", "box"});
        auto const name = at_place(here, [&] { return text_member(parts[i], "tensor"); });
        auto const found = known.find(name);
        if (found == known.end()) {
            refuse(here, fmt::format("is of tensor {}, which is not in 'tensors'", in_quotes(name)));
        }
        array_part part{found->second, read_box(list_at(parts[i], "box", here, 1), below(here, "box")), roles_of(layout.tensors[at(found->second)])};
        if (parts[i].contains("roles")) {
            part.roles = read_roles(list_at(parts[i], "roles", here, 1), below(here, "roles"));
        }
        result.parts.push_back(part);
    }
    return result;
}

array_layout read_layout(json const& whole_file)
{
    expect_object(whole_file, "", {"schema", "tensors", "places"});
    if (at_place("", [&] { return integer_member(whole_file, "schema", {}); }) != 1) {
        refuse("/schema", "is not 1, the only one that this program knows");
    }
    array_layout layout;
    std::map<std::string, tensor_id, std::less<>> known;
    auto const& tensors = list_at(whole_file, "tensors", "");
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        layout.tensors.push_back(read_tensor(tensors[i], below("/tensors", i)));
        known.try_emplace(std::string{layout.tensors.back().name.view()}, tensor_id{static_cast<std::int32_t>(i)});
    }
    auto const& places = list_at(whole_file, "places", "");
    for (std::size_t i = 0; i < places.size(); ++i) {
        layout.places.push_back(read_place(places[i], below("/places", i), layout, known));
    }
    return layout;
}

ordered shape_as_json(nd_shape const& shape)
{
    auto list = ordered::array();
    for (int d = 0; d < shape.dimensions; ++d) {
        list.push_back(shape[d]);
    }
    return list;
}

ordered roles_as_json(role_set roles)
{
    auto list = ordered::array();
    for (int r = 0; r < tensor_roles; ++r) {
        if (roles.has(static_cast<tensor_role>(r))) {
            list.push_back(role_names[static_cast<std::size_t>(r)]);
        }
    }
    return list;
}

ordered tensor_as_json(layout_tensor const& tensor)
{
    ordered value{{"name", tensor.name.view()}, {"shape", shape_as_json(tensor.shape)}};
    if (tensor.padded) {
        value["padded"] = shape_as_json(*tensor.padded);
    }
    for (std::size_t r = 0; r < tensor_roles; ++r) {
        auto const& format = tensor.element[r];
        if (format.type) {
            value["dtypes"][std::string{role_names[r]}] = name_of(*format.type);
        } else if (format.size.count > 0) {
            value["dtypes"][std::string{role_names[r]}] = format.size.count;
        }
    }
    if (!tensor.addends.empty()) {
        value["addends"] = roles_as_json(tensor.addends);
    }
    return value;
}

ordered part_as_json(array_layout const& layout, array_part const& part)
{
    auto const& tensor = layout.tensors[at(part.tensor)];
    ordered value{{"tensor", tensor.name.view()}};
    if ((part.roles & roles_of(tensor)) != roles_of(tensor)) {
        value["roles"] = roles_as_json(part.roles & roles_of(tensor));
    }
    auto box = ordered::array();
    for (int d = 0; d < part.box.dimensions; ++d) {
        box.push_back({part.box[d].begin, part.box[d].end});
    }
    value["box"] = box;
    return value;
}

/// A list with one member per line.
std::string lines(std::vector<std::string> const& members, std::string const& indent)
{
    std::string text = "[";
    for (std::size_t i = 0; i < members.size(); ++i) {
        text += (i == 0 ? "\n" : ",\n") + indent + " " + members[i];
    }
    return text + (members.empty() ? "]" : "\n" + indent + "]");
}

std::string compact(ordered const& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

std::string_view role_name(tensor_role role) { return role_names[static_cast<std::size_t>(role)]; }

array_layout parse_layout(std::string_view text, std::string const& name)
{
    array_layout layout;
    try {
        layout = read_layout(parse_strict(text, 8));
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: {}", name, error.what())};
    }
    if (auto const found = fault(layout)) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: {}", name, describe(found).view())};
    }
    return layout;
}

array_layout read_layout_file(std::string const& path)
{
    std::ifstream file{path, std::ios::binary};
    if (!file) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: this layout cannot be read", path)};
    }
    return parse_layout(std::string{std::istreambuf_iterator<char>{file}, {}}, path);
}

std::string format_layout(array_layout const& layout)
{
    std::vector<std::string> tensors;
    for (auto const& tensor : layout.tensors) {
        tensors.push_back(compact(tensor_as_json(tensor)));
    }
    std::vector<std::string> places;
    for (auto const& p : layout.places) {
        auto ranks = ordered::array();
        for (auto const rank : p.ranks) {
            ranks.push_back(rank.value);
        }
        std::vector<std::string> parts;
        for (auto const& part : p.parts) {
            parts.push_back(compact(part_as_json(layout, part)));
        }
        places.push_back("{\"ranks\": " + compact(ranks) + ", \"parts\": " + lines(parts, "  ") + "}");
    }
    return "{\n \"schema\": 1,\n \"tensors\": " + lines(tensors, " ") + ",\n \"places\": " + lines(places, " ") + "\n}\n";
}

}  // namespace rheo::inline v0
