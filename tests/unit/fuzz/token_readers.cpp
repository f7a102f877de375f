// SPDX-License-Identifier: Apache-2.0
#include "token_readers.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "executor/config/strict_json.hpp"
#include "executor/text/corpus/json_line.hpp"
#include "executor/text/token_encoder.hpp"
#include "executor/text/tokenizer.hpp"
#include "executor/text/utf8.hpp"
#include "readers.hpp"
#include "rheo/units/exit_error.hpp"
#include "unit/executor/text/in_chunks.hpp"

namespace fuzz {

using namespace rheo;

void tokenizer_file(std::span<std::uint8_t const> bytes)
{
    try {
        tokenizer const made{text_of(bytes)};
        token_encoder encoder{made};
        auto any = std::string{text_of(bytes).substr(0, 300)};
        replace_invalid(any);
        for (std::string_view const text : {std::string_view{"It's 12  lower\n\n newest caf\u00e9 e\u0301 \u4e00 <s>low</s> "}, std::string_view{any}}) {
            std::vector<token_id> tokens;
            encoder.encode(text, tokens);
            for (auto const id : tokens) {
                promise(!made.token(id).empty(), "a token that was encoded has a name");
            }
            promise(first_invalid(made.decode(tokens, false)) == made.decode(tokens, false).size(), "decoded text is UTF-8");
            if (made.cuts() != tokenizer::cutting::never) {
                promise(encode_in_chunks(made, encoder, text, 9) == tokens, "chunks have the tokens of the whole text");
            }
        }
    } catch (json_error const& error) {
        promise(std::string_view{error.what()}.starts_with("has ") || std::string_view{error.what()}.starts_with("is "), "a refusal follows the file's name");
    } catch (exit_error const& error) {
        promise(std::string_view{error.what()}.starts_with("tokenizer: "), "a text that cannot be matched is refused with a sentence");
    }
}

void json_texts(std::span<std::uint8_t const> bytes)
{
    auto rest = text_of(bytes);
    while (!rest.empty()) {
        auto const end = std::min(rest.find('\n'), rest.size());
        try {
            auto const text = text_of_json_line(rest.substr(0, end), "text", "'t', line 1,");
            promise(first_invalid(text) == text.size(), "a text that was read is UTF-8");
        } catch (exit_error const& error) {
            promise(error.code == exit_code::bad_data && std::string_view{error.what()}.starts_with("text: 't', line 1, "), "a refusal names the line");
        }
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
}

}  // namespace fuzz
