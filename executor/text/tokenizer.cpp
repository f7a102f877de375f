// SPDX-License-Identifier: Apache-2.0
#include "executor/text/tokenizer.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/text/token_encoder.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::string_view blank_mark = "\xe2\x96\x81";  // U+2581, as SentencePiece writes a blank

}  // namespace

tokenizer::tokenizer(std::string_view json) : parts_{std::make_shared<tokenizer_parts const>(read_tokenizer_parts(json))}
{
    auto const& p = *parts_;
    if (!p.words.is_byte_level() && !p.model.is_ignoring_merges() && p.model.begins_words_with(blank_mark)) {
        word_mark_ = blank_mark;
    }
    name_tokens();
    cuts_ = find_cutting();
}

void tokenizer::name_tokens()
{
    std::vector<std::string> names;
    auto const put = [&](token_id id, std::string const& name) {
        auto const at = static_cast<std::size_t>(id);
        if (at >= names.size()) {
            names.resize(at + 1);
        }
        if (!names[at].empty() && names[at] != name) {
            throw json_error{fmt::format("has two tokens with id {}: '{}' and '{}'", id, names[at], name)};
        }
        names[at] = name;
    };
    for (auto const& [name, id] : parts_->model.vocabulary()) {
        put(id, name);
    }
    auto const farthest = names.size() + (1U << 20);  // from the vocabulary, not from what was added: a short file takes little memory
    for (auto const& token : parts_->added.all()) {
        if (static_cast<std::size_t>(token.id) > farthest) {
            throw json_error{fmt::format("has the added token '{}' with id {}, far beyond its vocabulary", token.content, token.id)};
        }
        put(token.id, token.content);
    }
    for (auto const* const list : {&parts_->special.before, &parts_->special.after}) {
        for (auto const id : *list) {
            if (static_cast<std::size_t>(id) >= names.size() || names[static_cast<std::size_t>(id)].empty()) {
                throw json_error{fmt::format("has a post_processor with the token {}, which there is none of", id)};
            }
        }
    }
    names_ = std::make_shared<std::vector<std::string> const>(std::move(names));
}

tokenizer::cutting tokenizer::find_cutting() const
{
    auto const& p = *parts_;
    auto const& added = p.added.all();
    if (std::any_of(added.begin(), added.end(), [](added_token const& t) { return t.lstrip || t.rstrip || t.single_word; })) {
        return cutting::never;  // they look at what is beside them
    }
    if (p.words.resumable_step() && (p.normalize.changes_nothing() || p.normalize.only_form() != nullptr)) {
        return cutting::between_matches;
    }
    auto const* const marks = p.words.only_metaspace();
    auto const marked =
        p.normalize.changes_nothing() ? marks != nullptr && marks->mark == blank_mark : p.normalize.marks_blanks(blank_mark) && p.words.steps().empty();
    return marked && !word_mark_.empty() && !p.added.any_in(true) ? cutting::before_blanks : cutting::never;
}

std::vector<token_id> tokenizer::encode(std::string_view text) const
{
    std::vector<token_id> tokens;
    token_encoder{*this}.encode(text, tokens);
    return tokens;
}

std::string tokenizer::decode(std::span<token_id const> tokens, bool skip_special) const
{
    std::vector<std::string> pieces;
    for (auto const id : tokens) {
        auto const* const added = parts_->added.find(id);
        if (skip_special && added != nullptr && added->special) {
            continue;
        }
        auto name = token(id);
        if (name.empty()) {
            throw exit_error{exit_code::bad_data, fmt::format("tokenizer: there is no token {} among {}", id, vocabulary())};
        }
        pieces.push_back(std::move(name));
    }
    return parts_->text.decode(std::move(pieces));
}

std::optional<token_id> tokenizer::id(std::string_view token) const
{
    for (auto const& one : parts_->added.all()) {
        if (one.content == token) {
            return one.id;
        }
    }
    return parts_->model.id(token);
}

std::string tokenizer::token(token_id id) const
{
    return id >= 0 && static_cast<std::size_t>(id) < names_->size() ? (*names_)[static_cast<std::size_t>(id)] : std::string{};
}

}  // namespace rheo::inline v0
