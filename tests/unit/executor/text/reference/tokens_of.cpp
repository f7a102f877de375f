// SPDX-License-Identifier: Apache-2.0
// tokens_of <tokenizer.json> <texts>: for each line of texts, a JSON text, a line with its tokens and what they decode to. The text is encoded at once and in
// chunks of several sizes, as a file too large for one is; both must be equal.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/text/token_encoder.hpp"
#include "executor/text/tokenizer.hpp"
#include "in_chunks.hpp"

using namespace rheo;

int main(int count, char const* const* arguments)
{
    if (count != 3) {
        return 2;
    }
    try {
        std::ifstream file{arguments[1], std::ios::binary};
        tokenizer const tokens{std::string{std::istreambuf_iterator<char>{file}, {}}};
        token_encoder encoder{tokens};
        std::ifstream texts{arguments[2], std::ios::binary};
        for (std::string line; std::getline(texts, line);) {
            auto const text = nlohmann::json::parse(line).get<std::string>();
            std::vector<token_id> ids;
            encoder.encode(text, ids);
            for (std::size_t const size : {1U, 7U, 40U, 300U}) {
                if (tokens.cuts() != tokenizer::cutting::never && encode_in_chunks(tokens, encoder, text, size) != ids) {
                    fmt::print(stderr, "in chunks of {} bytes {} has other tokens\n", size, line);
                    return 1;
                }
            }
            nlohmann::json const answer{{"ids", ids}, {"text", tokens.decode(ids, false)}, {"short", tokens.decode(ids, true)}};
            fmt::print("{}\n", answer.dump(-1, ' ', true));
        }
    } catch (std::exception const& error) {
        fmt::print(stderr, "{}\n", error.what());
        return 1;
    }
    return 0;
}
