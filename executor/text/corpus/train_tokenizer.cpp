// SPDX-License-Identifier: Apache-2.0
// Texts to a tokenizer's file.
#include <algorithm>
#include <deque>
#include <future>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "executor/config/text_file.hpp"
#include "executor/text/corpus/bpe_training.hpp"
#include "executor/text/corpus/corpus_reader.hpp"
#include "executor/text/corpus/sentencepiece_model.hpp"
#include "executor/text/tokenizer.hpp"
#include "executor/text/utf8.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

/// Calls `each` with the documents of a batch.
template <class Each>
void for_each_text(text_batch& batch, std::string const& field, Each each)
{
    for (auto& part : batch.parts) {
        replace_invalid(part.text);
        each(std::string_view{part.text});
    }
    for_each_text(batch.lines, field, [&](std::string const& text, std::string const&) { each(std::string_view{text}); });
}

/// Before a line that does not begin with white space, where the line before does not end with it: GPT-2's pattern splits there, whatever else is in
/// the text, since the end of the line is a word of its own. White space beyond ASCII begins with the byte 0xc2 or 0xe1 to 0xe3, and ends below 0xb0.
std::size_t cut_between_lines(std::string_view text, std::size_t most)
{
    auto const byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    auto const begins_word = [](unsigned char c) { return c > ' ' && c != 0xc2 && (c < 0xe1 || c > 0xe3); };
    auto const ends_word = [](unsigned char c) { return (c > ' ' && c < 0x7f) || c >= 0xb0; };
    for (auto at = std::min(most, text.size()); at-- > 2;) {
        if (byte(at - 1) == '\n' && ends_word(byte(at - 2)) && begins_word(byte(at))) {
            return at;
        }
    }
    return 0;
}

std::string train_own(training_request const& request, corpus_reader& reader)
{
    std::vector<word_counts> counts(static_cast<std::size_t>(request.threads));  // one a thread; sums do not depend on who counts what
    for (auto more = true; more;) {
        std::vector<std::future<void>> running;
        for (auto& mine : counts) {
            auto batch = reader.next();
            more = batch.has_value();
            if (!more) {
                break;
            }
            running.push_back(std::async(std::launch::async, [&mine, &request, taken = *std::move(batch)]() mutable {
                for_each_text(taken, request.field, [&](std::string_view text) { count_words(text, mine); });
            }));
        }
        for (auto& one : running) {
            one.get();
        }
    }
    for (std::size_t i = 1; i < counts.size(); ++i) {
        for (auto const& [word, count] : counts[i]) {
            counts[0][word] += count;
        }
        counts[i] = {};
    }
    if (counts[0].empty()) {
        throw exit_error{exit_code::bad_data, "train: the files hold no text"};
    }
    return train_bpe(counts[0], request.vocabulary);
}

std::string train_by_library(training_request const& request, corpus_reader& reader)
{
    std::deque<std::string> lines;
    auto const next = [&](std::string& line) {
        while (lines.empty()) {
            auto batch = reader.next();
            if (!batch) {
                return false;
            }
            for_each_text(*batch, request.field, [&](std::string_view text) {
                while (!text.empty()) {
                    auto const end = std::min(text.find('\n'), text.size());
                    if (end > 0) {
                        lines.emplace_back(text.substr(0, end));
                    }
                    text.remove_prefix(std::min(end + 1, text.size()));
                }
            });
        }
        line = std::move(lines.front());
        lines.pop_front();
        return true;
    };
    return train_sentencepiece(
        {.next_sentence = next, .kind = request.kind == "unigram" ? "unigram" : "bpe", .vocabulary = request.vocabulary, .threads = request.threads});
}

}  // namespace

training_result train_tokenizer_file(training_request const& request)
{
    corpus_reader reader{request.paths, {.batch_bytes = request.batch_bytes, .context_bytes = 0, .cut = cut_between_lines}};
    auto const own = request.kind == "bpe";
    auto const bytes = own ? train_own(request, reader) : train_by_library(request, reader);
    write_whole(request.out, bytes);
    return {own ? tokenizer{bytes}.vocabulary() : sentencepiece_model{bytes}.vocabulary(), reader.bytes()};
}

}  // namespace rheo::inline v0
