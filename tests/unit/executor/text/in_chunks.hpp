#pragma once
// SPDX-License-Identifier: Apache-2.0
// A text encoded in chunks, each with a few bytes of what follows as context: what tokenize.cpp does with files, in one thread.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "executor/text/token_encoder.hpp"
#include "executor/text/utf8.hpp"

/// @param size of a chunk and of its context, in bytes; a chunk is larger where the text has no place to cut
inline std::vector<rheo::token_id> encode_in_chunks(rheo::tokenizer const& with, rheo::token_encoder& encoder, std::string_view text, std::size_t size)
{
    std::vector<rheo::token_id> all;
    std::size_t at = 0;
    bool behind_token = true;
    while (at < text.size()) {
        auto const rest = text.substr(at);
        std::size_t own = 0;
        for (auto most = size; own == 0 && most < rest.size(); most *= 2) {
            own = rheo::find_cut(with, rest, 0, most);
        }
        own = own == 0 ? rest.size() : own;
        for (auto context = size;; context *= 2) {
            auto end = std::min(own + context, rest.size());
            while (end < rest.size() && rheo::is_utf8_continuation(rest[end])) {
                ++end;
            }
            std::vector<rheo::token_id> tokens;
            auto const reached = encoder.encode(
                {.text = rest.substr(0, end), .own = own, .begins_text = at == 0, .begins_part = behind_token, .ends_text = end == rest.size()}, tokens);
            if (reached.at >= own || end == rest.size()) {
                all.insert(all.end(), tokens.begin(), tokens.end());
                at += reached.at;
                behind_token = reached.behind_token;
                break;
            }
        }
    }
    return all;
}
