// SPDX-License-Identifier: Apache-2.0
#include "executor/inference/text_coder.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "executor/text/utf8.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

text_coder::text_coder(std::string const& tokenizer)
{
    if (!tokenizer.empty()) {
        model_ = open_text_model(tokenizer);
        encoder_.emplace(*model_);
        special_ = special_tokens_of(*model_);
    }
}

std::vector<token_id> text_coder::encode(std::string_view text)
{
    std::vector<token_id> tokens;
    if (is_bytes()) {
        for (char const c : text) {
            tokens.push_back(static_cast<unsigned char>(c));
        }
        return tokens;
    }
    std::string valid{text};
    replace_invalid(valid);
    tokens = special_.before;
    encoder_->encode({valid, valid.size()}, tokens);
    return tokens;
}

std::vector<token_id> text_coder::encode_whole(std::string_view text)
{
    auto tokens = encode(text);
    tokens.insert(tokens.end(), special_.after.begin(), special_.after.end());
    return tokens;
}

std::string text_coder::decode(std::span<token_id const> tokens) const
{
    if (!is_bytes()) {
        return text_of(*model_, tokens);
    }
    std::string text;
    for (auto const token : tokens) {
        text += static_cast<char>(token);
    }
    return text;
}

std::string tokenizer_for(std::string const& named, std::string const& model_folder)
{
    std::error_code error;
    if (named.empty() && std::filesystem::exists(std::filesystem::path{model_folder} / "config.json", error)) {
        for (auto const* const name : {"tokenizer.json", "tokenizer.model"}) {
            if (auto const file = std::filesystem::path{model_folder} / name; std::filesystem::exists(file, error)) {
                return file.string();
            }
        }
    }
    return named;
}

void expect_same_tokens(text_coder const& coder, loaded_model const& model)
{
    if (coder.is_bytes() && model.vocabulary() != coder.vocabulary()) {
        throw exit_error{exit_code::usage, fmt::format("the model of '{}' has {} tokens, which are not bytes; name its tokenizer with --tokenizer FILE",
                                                       model.name(), model.vocabulary())};
    }
}

void expect_in_vocabulary(std::span<token_id const> tokens, loaded_model const& model, std::string const& where)
{
    auto const outside = std::find_if(tokens.begin(), tokens.end(), [&](token_id t) { return t < 0 || t >= model.vocabulary(); });
    if (outside != tokens.end()) {
        throw exit_error{exit_code::bad_data, fmt::format("{} has the token {}, but the model of '{}' has {} tokens: is this its tokenizer?", where, *outside,
                                                          model.name(), model.vocabulary())};
    }
}

}  // namespace rheo::inline v0
