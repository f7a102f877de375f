// SPDX-License-Identifier: Apache-2.0
#include "executor/data/data_source.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "executor/os/mapped_copy.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

[[noreturn]] void refuse(std::string const& message) { throw exit_error{exit_code::bad_data, "data: " + message}; }

}  // namespace

data_source::data_source(std::vector<std::string> const& paths, source_request const& request)
    : files_{paths}, document_token_{request.document_token}, counts_(static_cast<std::size_t>(request.vocabulary))
{
    auto const validation =
        request.trains ? std::floor(static_cast<double>(files_.count()) * request.validation_fraction) : static_cast<double>(files_.count());
    training_tokens_ = files_.count() - static_cast<std::int64_t>(validation);
    take_stock(request);
    if (auto const changed = files_.change()) {  // else the digest may be of a mixture
        throw exit_error{exit_code::bad_data, changed->message};
    }
}

/// Calls `each` with all tokens, a part of a file at a time, copied, and how many of the file's are before it.
template <class Each>
void data_source::for_each_part(Each each) const
{
    constexpr std::int64_t part_tokens = 1 << 16;
    std::vector<std::byte> copied;
    std::int64_t const width = files_.token_bytes();
    for (auto const& file : files_.pieces()) {
        auto part = file;
        for (std::int64_t begin = 0; begin < file.count; begin += part.count) {
            part.first = file.first + begin;
            part.count = std::min(part_tokens, file.count - begin);
            copied.resize(static_cast<std::size_t>(part.count * width));
            if (!copy_mapped(copied.data(), file.data + width * begin, copied.size())) {
                refuse(fmt::format("'{}' became shorter while it was read", file.path));
            }
            part.data = copied.data();
            each(part, begin);
        }
    }
}

/// One pass: tokens within the vocabulary, their numbers, digest, documents.
void data_source::take_stock(source_request const& request)
{
    std::vector<std::int64_t> ends;
    std::vector<std::uint32_t> words;  // tokens as they lie in memory, four bytes to a word
    std::int64_t first_word = 0;
    std::uint32_t word = 0;
    int filled = 0;
    auto const bits = 8 * files_.token_bytes();
    auto const hash = [&] {
        digest_ += digest_of(request.name, tensor_role::parameter, first_word, words);
        first_word += static_cast<std::int64_t>(words.size());
        words.clear();
    };
    for_each_part([&](token_files::piece const& p, std::int64_t before) {
        for (std::int64_t i = 0; i < p.count; ++i) {
            auto const token = files_.token(p, i);
            if (token >= request.vocabulary) {
                refuse(fmt::format("'{}' has the token {} at position {}, but model.vocabulary = {} ends before it", p.path, token, before + i,
                                   request.vocabulary));
            }
            if (p.first + i < training_tokens_) {
                ++counts_[static_cast<std::size_t>(token)];
            }
            if (token == document_token_) {
                ends.push_back(p.first + i + 1);
            }
            word |= static_cast<std::uint32_t>(token) << filled;
            filled = (filled + bits) % 32;
            if (filled == 0) {
                words.push_back(std::exchange(word, 0U));
                if (words.size() == 4096) {
                    hash();
                }
            }
        }
    });
    words.push_back(word);
    for (auto const number : {files_.count(), training_tokens_, std::int64_t{bits}}) {
        words.push_back(static_cast<std::uint32_t>(number));
        words.push_back(static_cast<std::uint32_t>(number >> 32));
    }
    hash();
    cut(request, std::move(ends));
}

/// The sequences of both splits. @param ends of documents
void data_source::cut(source_request const& request, std::vector<std::int64_t> ends)
{
    auto const& front = files_.pieces().front().path;
    auto const windows = [&](char const* name, std::int64_t begin, std::int64_t end) {
        if (document_token_ < 0) {
            if (end - begin < request.length + 1) {
                refuse(fmt::format("the {} split has {} tokens of {} in all ('{}'{}), but one sequence takes {}", name, end - begin, files_.count(), front,
                                   files_.pieces().size() > 1 ? ", ..." : "", request.length + 1));
            }
            return sequence_windows{begin, end, request.length};
        }
        std::vector<std::int64_t> within{std::upper_bound(ends.begin(), ends.end(), begin), std::lower_bound(ends.begin(), ends.end(), end)};
        within.push_back(end);
        sequence_windows made{begin, request.length, std::move(within)};
        if (made.count() == 0) {
            refuse(fmt::format("the {} split ('{}'{}) has no document of two tokens or more; data.document_token = {} ends documents", name, front,
                               files_.pieces().size() > 1 ? ", ..." : "", document_token_));
        }
        return made;
    };
    if (request.trains) {
        training_ = windows("training", 0, training_tokens_);
    }
    if (!request.trains || request.validation_fraction > 0) {
        validation_ = windows("validation", training_tokens_, files_.count());
    }
}

void data_source::read(token_window const& window, std::int64_t skipped, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const
{
    auto const length = static_cast<std::int64_t>(tokens.size());
    auto const there = static_cast<std::size_t>(std::clamp<std::int64_t>(window.targets - skipped, 0, length));
    if (there > 0) {
        files_.window(window.first + skipped, tokens.first(there), targets.first(there));
    }
    std::fill(tokens.begin() + static_cast<std::ptrdiff_t>(there), tokens.end(), std::max(document_token_, 0));
    std::fill(targets.begin() + static_cast<std::ptrdiff_t>(there), targets.end(), ignored_target);
}

}  // namespace rheo::inline v0
