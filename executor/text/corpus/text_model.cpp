// SPDX-License-Identifier: Apache-2.0
#include "executor/text/corpus/text_model.hpp"

#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/config/text_file.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

std::string file_of(std::string const& path)
{
    std::error_code ignored;
    if (!std::filesystem::is_directory(path, ignored)) {
        return path;
    }
    for (auto const* const name : {"tokenizer.json", "tokenizer.model"}) {
        auto const file = std::filesystem::path{path} / name;
        if (std::filesystem::exists(file, ignored)) {
            return file.string();
        }
    }
    throw exit_error{exit_code::usage, fmt::format("the folder '{}' has neither tokenizer.json nor tokenizer.model", path)};
}

template <class... F>
struct overloaded : F... {
    using F::operator()...;
};
template <class... F>
overloaded(F...) -> overloaded<F...>;

}  // namespace

text_model open_text_model(std::string const& path)
{
    auto const file = file_of(path);
    auto const bytes = read_text_file(file);
    auto const first = bytes.find_first_not_of(" \t\r\n");
    try {
        if (file.ends_with(".json") || (first != std::string::npos && bytes[first] == '{')) {
            return tokenizer{bytes};
        }
        return sentencepiece_model{bytes};
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: it {}", file, error.what())};
    } catch (exit_error const& error) {
        throw exit_error{error.code, fmt::format("{}: {}", file, error.what())};
    }
}

text_encoder::text_encoder(text_model const& model)
    : encoder_{std::visit(overloaded{[](tokenizer const& made) { return decltype(encoder_){token_encoder{made}}; },
                                     [](sentencepiece_model const& made) { return decltype(encoder_){made}; }},
                          model)}
{
}

chunk_end text_encoder::encode(text_chunk const& chunk, std::vector<token_id>& out)
{
    if (auto* const encoder = std::get_if<token_encoder>(&encoder_)) {
        return encoder->encode(chunk, out);
    }
    std::get<sentencepiece_model>(encoder_).encode(chunk.text, out);
    return {chunk.text.size(), false};
}

std::int64_t vocabulary_of(text_model const& model)
{
    return std::visit([](auto const& made) { return made.vocabulary(); }, model);
}

std::optional<token_id> id_of(text_model const& model, std::string const& token)
{
    return std::visit([&](auto const& made) { return made.id(token); }, model);
}

std::string token_of(text_model const& model, token_id id)
{
    return std::visit([&](auto const& made) { return made.token(id); }, model);
}

std::string text_of(text_model const& model, std::span<token_id const> tokens)
{
    return std::visit([&](auto const& made) { return made.decode(tokens); }, model);
}

post_processor special_tokens_of(text_model const& model)
{
    auto const* const made = std::get_if<tokenizer>(&model);
    return made != nullptr ? made->parts().special : post_processor{};
}

bool minds_beginnings(text_model const& model)
{
    auto const* const made = std::get_if<tokenizer>(&model);
    return made != nullptr && made->cuts() == tokenizer::cutting::before_blanks;
}

cut_rule cut_rule_of(text_model const& model)
{
    auto const* const made = std::get_if<tokenizer>(&model);
    if (made == nullptr || made->cuts() == tokenizer::cutting::never) {
        return {};
    }
    return [with = *made](std::string_view text, std::size_t most) { return find_cut(with, text, 0, most); };
}

std::optional<token_id> end_of_text(text_model const& model)
{
    if (auto const* const made = std::get_if<sentencepiece_model>(&model)) {
        return made->end_of_text();
    }
    for (auto const* const name : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>"}) {
        if (auto const id = id_of(model, name)) {
            return id;
        }
    }
    return std::nullopt;
}

}  // namespace rheo::inline v0
