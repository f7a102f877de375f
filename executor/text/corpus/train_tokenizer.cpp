// SPDX-License-Identifier: Apache-2.0
// Texts to a tokenizer's file.
#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/text/corpus/bpe_training.hpp"
#include "executor/text/corpus/corpus_reader.hpp"
#include "executor/text/corpus/json_line.hpp"
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
    std::string_view rest = batch.lines;
    for (auto line = batch.first_line; !rest.empty(); ++line) {
        auto const end = std::min(rest.find('\n'), rest.size());
        auto const text = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (text.find_first_not_of(" \t\r") != std::string_view::npos) {
            each(std::string_view{text_of_json_line(text, field, fmt::format("'{}', line {},", *batch.path, line))});
        }
    }
}

/// Before a line that begins with a letter, where the line before ends with a printing character: GPT-2's pattern splits there, whatever else is in
/// the text, since the end of the line is a word of its own.
std::size_t cut_between_lines(std::string_view text, std::size_t most)
{
    auto const is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    for (auto at = std::min(most, text.size()); at-- > 2;) {
        if (text[at - 1] == '\n' && text[at - 2] > ' ' && text[at - 2] < 0x7f && is_letter(text[at])) {
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

void write_whole(std::string const& path, std::string const& bytes)
{
    auto const partial = path + ".partial";
    {
        std::ofstream file{partial, std::ios::binary | std::ios::trunc};
        file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
        file.flush();
        if (!file) {
            std::remove(partial.c_str());
            throw exit_error{exit_code::environment, fmt::format("train: '{}' cannot be written", path)};
        }
    }
    std::error_code error;
    std::filesystem::rename(partial, path, error);
    if (error) {
        std::remove(partial.c_str());
        throw exit_error{exit_code::environment, fmt::format("train: '{}' cannot be written: {}", path, error.message())};
    }
}

}  // namespace

training_result train_tokenizer_file(training_request const& request)
{
    corpus_reader reader{request.paths, {.batch_bytes = 1 << 22, .context_bytes = 0, .cut = cut_between_lines}};
    auto const own = request.kind == "bpe";
    auto const bytes = own ? train_own(request, reader) : train_by_library(request, reader);
    write_whole(request.out, bytes);
    return {own ? tokenizer{bytes}.vocabulary() : sentencepiece_model{bytes}.vocabulary(), reader.bytes()};
}

}  // namespace rheo::inline v0
