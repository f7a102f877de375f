#pragma once
// SPDX-License-Identifier: Apache-2.0

// A Chakra node with what it views, for tests that build one piece by piece, at random or from JSON.

#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/reader.hpp"
#include "rheo/trace/chakra/writer.hpp"

namespace test {

/// Keeps what views point to; nothing in it moves.
struct chakra_pool {
    std::deque<std::string> texts;
    std::deque<std::vector<std::uint64_t>> numbers;
    std::deque<std::vector<std::string_view>> lists;
    std::deque<std::vector<rheo::chakra_attribute>> attributes;

    std::string_view keep(std::string text) { return texts.emplace_back(std::move(text)); }
};

/// Whether two nodes say the same.
inline bool same_node(rheo::chakra_node const& a, rheo::chakra_node const& b)
{
    auto const same = [](auto const& x, auto const& y) { return std::equal(x.begin(), x.end(), y.begin(), y.end()); };
    return a.id == b.id && a.name == b.name && a.type == b.type && same(a.ctrl_deps, b.ctrl_deps) && same(a.data_deps, b.data_deps) &&
           a.start_time_micros == b.start_time_micros && a.duration_micros == b.duration_micros && a.inputs == b.inputs && a.outputs == b.outputs &&
           same(a.attributes, b.attributes);
}

template <class Message>
std::string encoded(Message const& message)
{
    std::string bytes(rheo::encoded_size(message), '\0');
    auto const* const end = rheo::encode(message, bytes.data());
    return end == bytes.data() + bytes.size() ? bytes : "not as many bytes as were announced";
}

/// A whole file.
inline std::string file_of(rheo::chakra_metadata const& metadata, std::vector<rheo::chakra_node> const& nodes)
{
    std::string file;
    rheo::chakra_writer writer{[&file](std::string_view piece) { file += piece; }, metadata};
    for (auto const& node : nodes) {
        writer.add(node);
    }
    writer.finish();
    return file;
}

/// Reads a file and writes what was read. @returns the bytes, or the error
inline std::string written_again(std::string_view file)
{
    std::string again;
    rheo::chakra_reader reader{rheo::chakra_bytes{file}};
    if (!reader.error().empty()) {
        return reader.error();
    }
    rheo::chakra_writer writer{[&again](std::string_view piece) { again += piece; }, reader.metadata()};
    while (auto const* const node = reader.next()) {
        writer.add(*node);
    }
    writer.finish();
    return reader.error().empty() ? again : reader.error();
}

/// Draws nodes of every form: numbers at the ends of their ranges, empty and long texts, lists of each member.
class random_nodes {
public:
    random_nodes(chakra_pool& pool, unsigned seed) : pool_{&pool}, draw_{seed} {}

    rheo::chakra_node next()
    {
        rheo::chakra_node node;
        node.id = ++last_;
        node.name = text();
        node.type = static_cast<rheo::chakra_node_type>(below(rheo::chakra_node_type_count));
        node.ctrl_deps = earlier();
        node.data_deps = earlier();
        node.start_time_micros = number();
        node.duration_micros = number();
        node.inputs = below(3) == 0 ? std::optional{rheo::chakra_io{text(), text(), text()}} : std::nullopt;
        node.outputs = below(3) == 0 ? std::optional{rheo::chakra_io{text(), text(), text()}} : std::nullopt;
        auto& attributes = pool_->attributes.emplace_back();
        for (auto count = below(6); count > 0; --count) {
            attributes.push_back(attribute());
        }
        node.attributes = attributes;
        return node;
    }

private:
    std::uint64_t below(std::uint64_t most) { return draw_() % most; }

    std::uint64_t number()
    {
        auto const shift = below(65);
        return shift == 64 ? 0 : draw_() >> shift;
    }

    std::string_view text()
    {
        static constexpr std::string_view letters[] = {
            "a", "\n", "\0", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
        std::string made;
        for (auto count = below(4) == 0 ? below(300) : below(9); count > 0; --count) {
            made += letters[below(std::size(letters))];
        }
        return pool_->keep(made);
    }

    std::vector<std::uint64_t> const& earlier()
    {
        auto& ids = pool_->numbers.emplace_back();
        for (auto count = last_ == 1 ? 0 : below(5); count > 0; --count) {
            ids.push_back(1 + below(last_ - 1));
        }
        return ids;
    }

    rheo::chakra_attribute attribute()
    {
        rheo::chakra_attribute a{text(), below(4) == 0 ? text() : std::string_view{}};
        auto const m = static_cast<rheo::chakra_member>(below(31) == 0 ? 0 : 3 + below(30));
        auto const value = [&] {  // as one of this member reads: in its range
            auto const range = rheo::wire_type_of(m) == rheo::wire_type::fixed32 ? 0xffffffffU : ~std::uint64_t{0};
            return rheo::from_wire(m, number() & range);
        };
        a.member = m;
        if (m == rheo::chakra_member::none) {
            return a;
        }
        if (!rheo::is_list(m)) {
            a.text = rheo::is_text(m) ? text() : std::string_view{};
            a.bits = rheo::is_text(m) ? 0 : value();
        } else if (rheo::is_text(m)) {
            auto& texts = pool_->lists.emplace_back();
            for (auto count = below(4); count > 0; --count) {
                texts.push_back(text());
            }
            a.texts = texts;
        } else {
            auto& numbers = pool_->numbers.emplace_back();
            for (auto count = below(20); count > 0; --count) {
                numbers.push_back(value());
            }
            a.numbers = numbers;
        }
        return a;
    }

    chakra_pool* pool_;
    std::mt19937_64 draw_;
    std::uint64_t last_ = 0;
};

}  // namespace test
