#pragma once
// SPDX-License-Identifier: Apache-2.0

// Byte-pair encoding learned from texts (Sennrich et al. 2016), in the form of GPT-2: words as its pattern splits them, symbols are bytes. The pair that
// is counted most often becomes a token, of equals the one whose tokens have the smaller numbers; so the same texts give the same tokenizer, whatever the
// number of threads. Counts are kept per pair with the words it is in, and only what a merge changes is counted again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace rheo::inline v0 {

/// How often each word was seen.
using word_counts = std::unordered_map<std::string, std::int64_t>;

/// Adds the words of a text, split by GPT-2's pattern. @pre the text is valid UTF-8
void count_words(std::string_view text, word_counts& counts);

/// The text of a tokenizer.json with `vocabulary` tokens, or fewer where no pair is left that was seen twice: the 256 bytes, what was
/// learned, and last <|endoftext|>. @pre vocabulary >= 257
std::string train_bpe(word_counts const& counts, std::int64_t vocabulary);

struct training_request {
    std::vector<std::string> paths;  ///< as tokenize_files takes them
    std::string out;                 ///< tokenizer.json; for unigram and sentencepiece-bpe a .model
    std::string kind;                ///< bpe, unigram or sentencepiece-bpe
    std::int64_t vocabulary = 0;
    std::string field = "text";
    int threads = 1;
    std::size_t batch_bytes = 1 << 22;
};

struct training_result {
    std::int64_t vocabulary;  ///< of the tokenizer
    std::int64_t bytes;       ///< of text
};

/// Reads texts, trains, and writes the file whole or not at all. @throws exit_error naming the file
training_result train_tokenizer_file(training_request const& request);

}  // namespace rheo::inline v0
