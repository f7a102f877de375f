// SPDX-License-Identifier: Apache-2.0
#include "executor/text/decoder.hpp"

#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/config/strict_json.hpp"
#include "executor/text/byte_level.hpp"
#include "executor/text/json_parts.hpp"
#include "executor/text/utf8.hpp"

namespace rheo::inline v0 {

namespace {

using pieces = std::vector<std::string>;

void apply(decode_byte_level, pieces& all)
{
    std::string bytes;
    for (auto const& piece : all) {
        bytes += bytes_of_byte_level(piece).value_or(piece);
    }
    replace_invalid(bytes);
    all = {std::move(bytes)};
}

/// The byte of <0x41>, or -1.
int fallback_byte(std::string_view piece)
{
    if (piece.size() != 6 || !piece.starts_with("<0x") || !piece.ends_with('>')) {
        return -1;
    }
    int value = 0;
    for (char const c : piece.substr(3, 2)) {
        auto const digit = std::string_view{"0123456789abcdef"}.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
        if (digit == std::string_view::npos) {
            return -1;
        }
        value = value * 16 + static_cast<int>(digit);
    }
    return value;
}

void apply(decode_byte_fallback, pieces& all)
{
    pieces out;
    std::string bytes;
    auto const put = [&] {
        if (bytes.empty()) {
            return;
        }
        if (first_invalid(bytes) == bytes.size()) {
            out.push_back(bytes);
        } else {
            out.insert(out.end(), bytes.size(), "\xef\xbf\xbd");
        }
        bytes.clear();
    };
    for (auto& piece : all) {
        if (auto const byte = fallback_byte(piece); byte >= 0) {
            bytes += static_cast<char>(static_cast<unsigned char>(byte));
        } else {
            put();
            out.push_back(std::move(piece));
        }
    }
    put();
    all = std::move(out);
}

void apply(decode_fuse, pieces& all) { all = {std::accumulate(all.begin(), all.end(), std::string{})}; }

void apply(decode_strip const& step, pieces& all)
{
    for (auto& piece : all) {
        std::size_t begin = 0;
        auto end = piece.size();
        auto const size = step.content.size();
        for (std::size_t i = 0; i < step.start && std::string_view{piece}.substr(begin, end - begin).starts_with(step.content); ++i) {
            begin += size;
        }
        for (std::size_t i = 0; i < step.stop && std::string_view{piece}.substr(begin, end - begin).ends_with(step.content); ++i) {
            end -= size;
        }
        piece = piece.substr(begin, end - begin);
    }
}

template <class Step>
    requires requires(Step const& step) { replaced(step, {}); }
void apply(Step const& step, pieces& all)
{
    for (auto& piece : all) {
        piece = replaced(step, piece);
    }
}

void apply(decode_metaspace const& step, pieces& all)
{
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i] = replaced(replace_text{step.mark, i == 0 && step.prepended ? "" : " "}, all[i]);
    }
}

void read_into(nlohmann::json const& value, std::vector<decoder::step>& steps)
{
    auto const type = text_member(value, "type");
    if (type == "Sequence") {
        only_keys(value, "decoder", {"type", "decoders"});
        for (auto const& part : list_member(value, "decoders")) {
            read_into(part, steps);
        }
    } else if (type == "ByteLevel") {
        only_keys(value, "decoder", {"type", "add_prefix_space", "trim_offsets", "use_regex"});
        steps.emplace_back(decode_byte_level{});
    } else if (type == "ByteFallback") {
        only_keys(value, "decoder", {"type"});
        steps.emplace_back(decode_byte_fallback{});
    } else if (type == "Fuse") {
        only_keys(value, "decoder", {"type"});
        steps.emplace_back(decode_fuse{});
    } else if (type == "Strip") {
        only_keys(value, "decoder", {"type", "content", "start", "stop"});
        auto const content = text_member(value, "content");
        if (content.empty()) {
            throw json_error{"has an empty decoder.content"};
        }
        auto const number = [&](char const* key) { return static_cast<std::size_t>(integer_member(value, key, {0, 1 << 20})); };
        steps.emplace_back(decode_strip{content, number("start"), number("stop")});
    } else if (type == "Replace") {
        std::visit([&](auto&& made) { steps.emplace_back(std::move(made)); }, read_replacement(value, "decoder"));
    } else if (type == "Metaspace") {
        only_keys(value, "decoder", {"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
        auto const mark = text_member(value, "replacement");
        if (mark.empty()) {
            throw json_error{"has an empty decoder.replacement"};
        }
        auto const prepended = value.contains("prepend_scheme") ? text_member(value, "prepend_scheme") != "never" : truth_or(value, "add_prefix_space", true);
        steps.emplace_back(decode_metaspace{mark, prepended});
    } else {
        refuse_part("decoder.type", type, "ByteLevel, ByteFallback, Fuse, Strip, Replace, Metaspace, Sequence");
    }
}

}  // namespace

std::string decoder::decode(std::vector<std::string> pieces) const
{
    if (!given_) {
        return fmt::format("{}", fmt::join(pieces, " "));
    }
    for (auto const& one : steps_) {
        std::visit([&](auto const& change) { apply(change, pieces); }, one);
    }
    return std::accumulate(pieces.begin(), pieces.end(), std::string{});
}

decoder read_decoder(nlohmann::json const& value)
{
    if (value.is_null()) {
        return {};
    }
    std::vector<decoder::step> steps;
    read_into(value, steps);
    return decoder{std::move(steps)};
}

}  // namespace rheo::inline v0
