// SPDX-License-Identifier: Apache-2.0
// The parts of a tokenizer.json. What it may hold: https://huggingface.co/docs/tokenizers, and the library's own serialization.
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/config/strict_json.hpp"
#include "executor/text/json_parts.hpp"
#include "executor/text/tokenizer.hpp"
#include "executor/text/utf8.hpp"

namespace rheo::inline v0 {

namespace {

using json = nlohmann::json;

constexpr int depth = 16;
constexpr std::int64_t most_tokens = 1 << 24;

/// A member that may be left out or null.
json const& optional_member(json const& object, char const* key)
{
    static json const none = nullptr;
    return object.contains(key) ? object[key] : none;
}

void refuse_unless_empty(json const& object, char const* key, std::string_view part)
{
    auto const& value = optional_member(object, key);
    if (!value.is_null() && value != "" && value != 0.0) {
        throw json_error{fmt::format("has {}.{} = {}, which rheo does not support; expected null", part, key, format_json(value).substr(0, 60))};
    }
}

bpe_description::merge read_merge(json const& value)
{
    if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string()) {
        return {value[0].get<std::string>(), value[1].get<std::string>()};
    }
    if (value.is_string()) {
        auto const text = value.get<std::string>();
        auto const blank = text.find(' ');
        if (blank != std::string::npos && blank > 0 && blank + 1 < text.size() && text.find(' ', blank + 1) == std::string::npos) {
            return {text.substr(0, blank), text.substr(blank + 1)};
        }
    }
    throw json_error{fmt::format("has {} in model.merges; expected two tokens, as [\"a\", \"b\"] or \"a b\"", format_json(value).substr(0, 60))};
}

bpe_description read_model(json const& value, bool byte_level)
{
    if (!value.is_object()) {
        throw json_error{"has no 'model' that is an object"};
    }
    if (value.contains("type")) {  // it was left out before there were other models
        auto const type = text_member(value, "type");
        if (type != "BPE") {
            refuse_part("model.type", type, "BPE");
        }
    }
    only_keys(
        value, "model",
        {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
    for (auto const* const key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
        refuse_unless_empty(value, key, "model");
    }
    bpe_description model;
    model.byte_level = byte_level;
    model.fuse_unknown = truth_or(value, "fuse_unk", false);
    model.byte_fallback = truth_or(value, "byte_fallback", false);
    model.ignore_merges = truth_or(value, "ignore_merges", false);
    if (auto const& unknown = optional_member(value, "unk_token"); !unknown.is_null()) {
        model.unknown = text_member(value, "unk_token");
    }
    auto const& vocabulary = member(value, "vocab");
    if (!vocabulary.is_object() || vocabulary.empty()) {
        throw json_error{"has a model.vocab that is not an object with tokens"};
    }
    model.vocabulary.reserve(vocabulary.size());
    for (auto const& [token, id] : vocabulary.items()) {
        model.vocabulary.emplace(token, static_cast<token_id>(integer_of(id, "vocab", {0, most_tokens - 1})));
    }
    auto const& merges = list_member(value, "merges");
    model.merges.reserve(merges.size());
    for (auto const& merge : merges) {
        model.merges.push_back(read_merge(merge));
    }
    return model;
}

}  // namespace

tokenizer_parts read_tokenizer_parts(std::string_view text)
{
    auto const file = parse_strict(text, depth);
    only_keys(file, "tokenizer", {"version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"});
    if (auto const& version = optional_member(file, "version"); !version.is_null() && version != "1.0") {
        refuse_part("version", format_json(version), "1.0");
    }
    refuse_unless_empty(file, "truncation", "tokenizer");  // padding concerns batches, which there are none of here
    auto normalize = read_normalizer(optional_member(file, "normalizer"));
    auto words = read_pre_tokenizer(optional_member(file, "pre_tokenizer"));
    bpe_model model{read_model(member(file, "model"), words.is_byte_level())};
    added_tokens added{read_added_tokens(optional_member(file, "added_tokens"), model), [&](std::string const& content) { return normalize.apply(content); }};
    auto special = read_post_processor(optional_member(file, "post_processor"));
    auto to_text = read_decoder(optional_member(file, "decoder"));
    return {std::move(normalize), std::move(added), std::move(words), std::move(model), std::move(special), std::move(to_text)};
}

}  // namespace rheo::inline v0
