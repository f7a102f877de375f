// SPDX-License-Identifier: Apache-2.0
#include "executor/data/data.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/os/mapped_copy.hpp"
#include "rheo/tensor/random.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

[[noreturn]] void refuse(std::string const& message) { throw exit_error{exit_code::bad_data, "data: " + message}; }

/// The next 64 bits of a fraction times count, without bias that matters: floor(fraction / 2^64 * count).
std::int64_t scaled(std::uint64_t fraction, std::int64_t count)
{
    __extension__ using wide = unsigned __int128;
    return static_cast<std::int64_t>((static_cast<wide>(fraction) * static_cast<std::uint64_t>(count)) >> 64);
}

}  // namespace

struct dataset::impl {
    token_files files;
    microbatch_shape shape;
    std::int64_t training = 0;  ///< the tokens from here on are the validation split
    double entropy = 0;
    state_digest digest{};

    impl(std::vector<std::string> const& paths, microbatch_shape of_microbatch) : files{paths}, shape{of_microbatch} {}

    void split(double validation_fraction)
    {
        auto const validation = static_cast<std::int64_t>(std::floor(static_cast<double>(files.count()) * validation_fraction));
        training = files.count() - validation;
        for (auto const& [name, count] : {std::pair{"training", training}, std::pair{"validation", validation}}) {
            if (count < shape.tokens + 1) {
                refuse(fmt::format("the {} split has {} tokens of {} in all, but one sequence takes {}", name, count, files.count(), shape.tokens + 1));
            }
        }
    }

    /// Calls `each` with all tokens, a part of a file at a time, copied, and how many of the file's are before it.
    template <class Each>
    void for_each_part(Each each) const
    {
        constexpr std::int64_t part_tokens = 1 << 16;
        std::vector<std::byte> copied;
        std::int64_t const width = files.token_bytes();
        for (auto const& file : files.pieces()) {
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

    /// One pass: tokens within the vocabulary, entropy of the training split, digest.
    void take_stock(int vocabulary)
    {
        std::vector<std::int64_t> counts(static_cast<std::size_t>(vocabulary));
        std::vector<std::uint32_t> words;  // tokens as they lie in memory, four bytes to a word
        std::int64_t first_word = 0;
        std::uint32_t word = 0;
        int filled = 0;
        auto const bits = 8 * files.token_bytes();
        auto const hash = [&] {
            digest += digest_of("tokens", tensor_role::parameter, first_word, words);
            first_word += static_cast<std::int64_t>(words.size());
            words.clear();
        };
        for_each_part([&](token_files::piece const& p, std::int64_t before) {
            for (std::int64_t i = 0; i < p.count; ++i) {
                auto const token = files.token(p, i);
                if (token >= vocabulary) {
                    refuse(
                        fmt::format("'{}' has the token {} at position {}, but model.vocabulary = {} ends before it", p.path, token, before + i, vocabulary));
                }
                if (p.first + i < training) {
                    ++counts[static_cast<std::size_t>(token)];
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
        for (auto const number : {files.count(), training, std::int64_t{bits}}) {
            words.push_back(static_cast<std::uint32_t>(number));
            words.push_back(static_cast<std::uint32_t>(number >> 32));
        }
        hash();
        for (auto const count : counts) {
            if (count > 0) {
                auto const p = static_cast<double>(count) / static_cast<double>(training);
                entropy -= p * std::log(p);
            }
        }
    }

    /// Fills one slice of a microbatch; `start` gives the first position of a sequence out of `positions`.
    template <class Start>
    void fill(std::int64_t begin, std::int64_t end, int slice, std::span<std::int32_t> tokens, std::span<std::int32_t> targets, Start start) const
    {
        auto const length = static_cast<std::size_t>(slice_tokens(shape));
        expects(slice >= 0 && slice < shape.slices, "a microbatch has no such slice");
        expects(tokens.size() == static_cast<std::size_t>(rows(shape)) && targets.size() == tokens.size(),
                "a microbatch has sequences x tokens tokens and as many targets");
        for (int q = 0; q < shape.sequences; ++q) {
            auto const from = static_cast<std::size_t>(q) * length;
            auto const first = begin + scaled(start(q), end - begin - shape.tokens) + slice * slice_tokens(shape);
            files.window(first, tokens.subspan(from, length), targets.subspan(from, length));
        }
    }
};

dataset::dataset(data_config const& config, int vocabulary, microbatch_shape shape)
{
    auto const made = std::make_shared<impl>(config.paths.empty() ? std::vector{default_data_folder()} : config.paths, shape);
    made->split(config.validation_fraction);
    made->take_stock(vocabulary);
    if (auto const changed = made->files.change()) {  // else the digest may be of a mixture
        throw exit_error{exit_code::bad_data, changed->message};
    }
    impl_ = made;
}

void dataset::training_microbatch(std::uint64_t seed, step_id step, microbatch_id microbatch, std::span<std::int32_t> tokens, std::span<std::int32_t> targets,
                                  int slice) const
{
    // No operation of a model has layer -1, so dropout never draws from this stream.
    auto const stream = stream_of({.seed = seed, .step = step, .microbatch = microbatch, .layer = layer_id{-1}, .op = op_id{-1}});
    impl_->fill(0, impl_->training, slice, tokens, targets, [&](int sequence) {
        auto const at = 2 * static_cast<std::uint64_t>(sequence);
        return std::uint64_t{random_word(stream, at)} << 32 | random_word(stream, at + 1);
    });
}

void dataset::validation_microbatch(microbatch_id microbatch, std::span<std::int32_t> tokens, std::span<std::int32_t> targets, int slice) const
{
    // Multiples of the golden ratio: the first n of them are evenly spread for every n.
    impl_->fill(impl_->training, impl_->files.count(), slice, tokens, targets, [&](int sequence) {
        auto const nth =
            static_cast<std::uint64_t>(microbatch.value) * static_cast<std::uint64_t>(impl_->shape.sequences) + static_cast<std::uint64_t>(sequence);
        return nth * 0x9e3779b97f4a7c15U;
    });
}

std::optional<token_files::changed_file> dataset::change() const { return impl_->files.change(); }
std::string dataset::path(std::size_t piece) const { return impl_->files.pieces().at(piece).path; }

state_digest dataset::digest() const { return impl_->digest; }
std::int64_t dataset::training_tokens() const { return impl_->training; }
std::int64_t dataset::validation_tokens() const { return impl_->files.count() - impl_->training; }
double dataset::unigram_entropy() const { return impl_->entropy; }
bool dataset::is_text() const { return impl_->files.is_text(); }

std::string dataset::description() const
{
    auto const& d = *impl_;
    return fmt::format("{} {} file{}, {} {} to train on and {} to validate", d.files.pieces().size(), d.files.is_text() ? "text" : "token",
                       d.files.pieces().size() == 1 ? "" : "s", d.training, d.files.is_text() ? "bytes" : "tokens", d.files.count() - d.training);
}

}  // namespace rheo::inline v0
