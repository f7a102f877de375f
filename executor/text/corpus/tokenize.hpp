#pragma once
// SPDX-License-Identifier: Apache-2.0

// Files to tokens: one thread reads and writes, others encode. The order of the tokens is that of the files, and the same for every number of threads.
// Memory is bounded: as many batches as there are threads, twice, and the largest document where the tokenizer cannot cut it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/text/corpus/corpus_reader.hpp"
#include "executor/text/corpus/text_model.hpp"
#include "executor/text/corpus/token_file_writer.hpp"

namespace rheo::inline v0 {

struct tokenize_options {
    std::string field = "text";                ///< of JSON lines
    std::optional<token_id> document_token{};  ///< behind each document
    bool special_tokens = true;                ///< those that the tokenizer puts around a text
    bool refuse_invalid = false;               ///< bytes that are not UTF-8, else they become U+FFFD
    int threads = 1;                           ///< that encode
    std::size_t batch_bytes = 1 << 20;
    std::size_t context_bytes = 2048;
};

struct tokenize_counts {
    std::int64_t files = 0;
    std::int64_t documents = 0;
    std::int64_t bytes = 0;  ///< of files, unpacked
    std::int64_t tokens = 0;
    std::int64_t replaced = 0;  ///< parts that were not UTF-8
    std::int64_t recut = 0;     ///< stretches that were encoded again, since the one before did not end where they began
};

/// @throws exit_error naming file and line; then nothing is left of `out`
tokenize_counts tokenize_files(text_model const& model, std::vector<std::string> const& paths, tokenize_options const& options, token_file_writer& out);

}  // namespace rheo::inline v0
