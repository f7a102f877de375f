// SPDX-License-Identifier: Apache-2.0
#include "executor/text/added_tokens.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include <utf8proc.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/config/strict_json.hpp"
#include "executor/text/json_parts.hpp"
#include "executor/text/utf8.hpp"

namespace rheo::inline v0 {

namespace {

bool is_word(char32_t code)  // \w of Rust's regular expressions: letters, marks, digits, connectors, joiners
{
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return code == 0x200c || code == 0x200d || (code >= 0x24b6 && code <= 0x24e9);  // circled letters are alphabetic symbols
    }
}

bool ends_with_word(std::string_view text) { return !text.empty() && is_word(utf8_at(text, utf8_before(text, text.size())).code); }
bool starts_with_word(std::string_view text) { return !text.empty() && is_word(utf8_at(text, 0).code); }

std::size_t white_space_before(std::string_view text, std::size_t at)
{
    while (at > 0 && is_white_space(utf8_at(text, utf8_before(text, at)).code)) {
        at = utf8_before(text, at);
    }
    return at;
}

std::size_t white_space_behind(std::string_view text, std::size_t at)
{
    while (at < text.size() && is_white_space(utf8_at(text, at).code)) {
        at += utf8_at(text, at).bytes;
    }
    return at;
}

}  // namespace

std::size_t text_set::child(std::size_t of, char c) const
{
    for (auto const& [key, to] : nodes_[of].next) {
        if (key == c) {
            return to;
        }
    }
    return 0;
}

void text_set::add(std::string_view text, std::size_t value)
{
    if (text.empty()) {
        return;
    }
    if (nodes_.empty()) {
        nodes_.emplace_back();
        only_ = text[0];
        has_only_ = true;
    }
    has_only_ = has_only_ && only_ == text[0];
    begins_[static_cast<unsigned char>(text[0])] = true;
    longest_ = std::max(longest_, text.size());
    std::size_t at = 0;
    for (char const c : text) {
        auto to = child(at, c);
        if (to == 0) {
            to = nodes_.size();
            nodes_.emplace_back();
            nodes_[at].next.emplace_back(c, to);
        }
        at = to;
    }
    nodes_[at].value = value;
}

std::optional<text_set::hit> text_set::find(std::string_view text, std::size_t from) const
{
    for (auto at = from; at < text.size() && !nodes_.empty(); ++at) {
        if (has_only_) {
            auto const* const found = static_cast<char const*>(std::memchr(text.data() + at, only_, text.size() - at));
            if (found == nullptr) {
                return std::nullopt;
            }
            at = static_cast<std::size_t>(found - text.data());
        } else if (!begins_[static_cast<unsigned char>(text[at])]) {
            continue;
        }
        std::optional<hit> longest;
        std::size_t reached = 0;
        for (auto end = at; end < text.size(); ++end) {
            reached = child(reached, text[end]);
            if (reached == 0) {
                break;
            }
            if (nodes_[reached].value) {
                longest = {at, end + 1, *nodes_[reached].value};
            }
        }
        if (longest) {
            return longest;
        }
    }
    return std::nullopt;
}

std::vector<added_tokens::part> added_tokens::cut(std::string_view text, bool normalized) const
{
    std::vector<part> parts;
    auto const& texts = normalized ? in_normalized_ : in_text_;
    std::size_t done = 0;
    for (auto hit = texts.find(text, 0); hit; hit = texts.find(text, hit->end)) {
        auto const& token = tokens_[hit->value];
        if (token.single_word && (ends_with_word(text.substr(0, hit->begin)) || starts_with_word(text.substr(hit->end)))) {
            continue;
        }
        auto const begin = token.lstrip ? std::max(white_space_before(text, hit->begin), done) : hit->begin;
        auto const end = token.rstrip ? white_space_behind(text, hit->end) : hit->end;
        if (begin > done) {
            parts.push_back({done, begin, nullptr});
        }
        parts.push_back({begin, end, &token});
        done = end;
    }
    if (done < text.size()) {
        parts.push_back({done, text.size(), nullptr});
    }
    return parts;
}

added_token const* added_tokens::find(token_id id) const
{
    auto const found = by_id_.find(id);
    return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

std::vector<added_token> read_added_tokens(nlohmann::json const& value, bpe_model const& model)
{
    if (value.is_null()) {
        return {};
    }
    if (!value.is_array()) {
        throw json_error{"has 'added_tokens' that are not a list"};
    }
    std::vector<added_token> tokens;
    std::set<std::string> contents;
    std::set<token_id> ids;
    for (auto const& one : value) {
        only_keys(one, "added_tokens", {"id", "content", "special", "normalized", "single_word", "lstrip", "rstrip"});
        added_token const token{.id = static_cast<token_id>(integer_member(one, "id", {0, (1 << 30) - 1})),
                                .content = text_member(one, "content"),
                                .special = truth_member(one, "special"),
                                .normalized = truth_member(one, "normalized"),
                                .single_word = truth_member(one, "single_word"),
                                .lstrip = truth_member(one, "lstrip"),
                                .rstrip = truth_member(one, "rstrip")};
        if (token.content.empty()) {
            throw json_error{fmt::format("has an added token with id {} and no content", token.id)};
        }
        auto const known = model.id(token.content);
        if (known && *known != token.id) {
            throw json_error{fmt::format("has the added token '{}' with id {}, but its vocabulary has it with id {}", token.content, token.id, *known)};
        }
        if (!contents.insert(token.content).second || !ids.insert(token.id).second) {
            throw json_error{fmt::format("has the added token '{}' or its id {} twice", token.content, token.id)};
        }
        tokens.push_back(token);
    }
    return tokens;
}

}  // namespace rheo::inline v0
