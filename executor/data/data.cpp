// SPDX-License-Identifier: Apache-2.0
#include "executor/data/data.hpp"

#include <cmath>
#include <cstddef>
#include <deque>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/data/data_source.hpp"
#include "executor/data/sequence_order.hpp"
#include "executor/data/source_mix.hpp"
#include "rheo/tensor/random.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

[[noreturn]] void refuse(std::string const& message) { throw exit_error{exit_code::bad_data, "data: " + message}; }

std::string percent(double part) { return fmt::format("{:.4g} %", 100 * part); }

}  // namespace

struct dataset::impl {
    std::deque<data_source> sources;  ///< to train on
    std::optional<data_source> validation;
    std::vector<double> parts;  ///< of each source in the training
    source_mix mix;
    data_order order;
    microbatch_shape shape;
    int microbatches;
    double entropy = 0;

    impl(data_config const& config, int vocabulary, microbatch_shape of_microbatch, int of_step)
        : parts{parts_of(config)}, mix{parts}, order{config.order}, shape{of_microbatch}, microbatches{of_step}
    {
        if (config.document_token >= vocabulary) {
            refuse(fmt::format("data.document_token = {} is not in the vocabulary: model.vocabulary = {}", config.document_token, vocabulary));
        }
        source_request request{.validation_fraction = config.validation.empty() ? config.validation_fraction : 0.0,
                               .vocabulary = vocabulary,
                               .length = shape.tokens,
                               .document_token = config.document_token};
        if (config.sources.empty()) {
            sources.emplace_back(config.paths.empty() ? std::vector{default_data_folder()} : config.paths, request);
        }
        for (auto const& source : config.sources) {
            request.name = fmt::format("tokens of source {}", sources.size());
            sources.emplace_back(std::vector{source.path}, request);
        }
        if (!config.validation.empty()) {
            request.name = "tokens to validate";
            request.trains = false;
            validation.emplace(config.validation, request);
        }
        auto const& first = sources.front().files();
        for_each_source([&](data_source const& source, std::size_t) {
            if (source.files().is_text() != first.is_text()) {
                refuse(fmt::format("'{}' is a {} file, but '{}' is a {} file; a run takes one kind", source.files().pieces().front().path,
                                   source.files().is_text() ? "text" : "token", first.pieces().front().path, first.is_text() ? "text" : "token"));
            }
            return false;
        });
        for (std::size_t token = 0; token < static_cast<std::size_t>(vocabulary); ++token) {
            double p = 0;
            for (std::size_t s = 0; s < sources.size(); ++s) {
                p += parts[s] * (static_cast<double>(sources[s].counts()[token]) / static_cast<double>(sources[s].training_tokens()));
            }
            entropy -= p > 0 ? p * std::log(p) : 0;
        }
    }

    static std::vector<double> parts_of(data_config const& config)
    {
        std::vector<double> parts;
        double sum = 0;
        for (auto const& source : config.sources) {
            sum += source.weight;
        }
        for (auto const& source : config.sources) {
            parts.push_back(source.weight / sum);
        }
        return parts.empty() ? std::vector{1.0} : parts;
    }

    /// Calls f(source, files of those before it) until it is true.
    template <class F>
    void for_each_source(F f) const
    {
        std::size_t before = 0;
        for (auto const& source : sources) {
            if (f(source, before)) {
                return;
            }
            before += source.files().pieces().size();
        }
        if (validation) {
            f(*validation, before);
        }
    }

    /// Fills one slice of a microbatch; `place` gives the source and window of a sequence.
    template <class Place>
    void fill(int slice, std::span<std::int32_t> tokens, std::span<std::int32_t> targets, Place place) const
    {
        auto const length = static_cast<std::size_t>(slice_tokens(shape));
        expects(slice >= 0 && slice < shape.slices, "a microbatch has no such slice");
        expects(tokens.size() == static_cast<std::size_t>(rows(shape)) && targets.size() == tokens.size(),
                "a microbatch has sequences x tokens tokens and as many targets");
        for (int q = 0; q < shape.sequences; ++q) {
            auto const from = static_cast<std::size_t>(q) * length;
            auto const& [source, window] = place(q);
            source->read(window, slice * slice_tokens(shape), tokens.subspan(from, length), targets.subspan(from, length));
        }
    }

    /// A sequence of an epoch of a source. No operation draws from these streams: steps before -2 have no other ones.
    token_window in_epoch(std::uint64_t seed, source_mix::place const& place) const
    {
        auto const& windows = sources[static_cast<std::size_t>(place.source)].training();
        auto const epoch = place.number / windows.count();
        random_key const key{.seed = seed, .step = step_id{-3 - epoch}, .microbatch = microbatch_id{place.source}, .layer = layer_id{-1}, .op = op_id{-1}};
        auto const stream = stream_of(key);
        auto const moved = scaled(random_fraction(stream, 0), windows.slack() + 1);
        return windows.nth(shuffled(stream, windows.count(), place.number % windows.count()), moved);
    }

    template <class Sum>
    auto summed(Sum of) const
    {
        auto sum = of(sources.front());
        for (std::size_t s = 1; s < sources.size(); ++s) {
            sum += of(sources[s]);
        }
        return sum;
    }
};

dataset::dataset(data_config const& config, int vocabulary, microbatch_shape shape, int microbatches)
    : impl_{std::make_shared<impl const>(config, vocabulary, shape, microbatches)}
{
}

void dataset::training_microbatch(std::uint64_t seed, step_id step, microbatch_id microbatch, std::span<std::int32_t> tokens, std::span<std::int32_t> targets,
                                  int slice) const
{
    // No operation of a model has layer -1, so dropout never draws from this stream.
    auto const stream = stream_of({.seed = seed, .step = step, .microbatch = microbatch, .layer = layer_id{-1}, .op = op_id{-1}});
    auto const& d = *impl_;
    d.fill(slice, tokens, targets, [&](int sequence) {
        auto const place = d.mix.of((step.value * d.microbatches + microbatch.value) * d.shape.sequences + sequence);
        auto const& source = d.sources[static_cast<std::size_t>(place.source)];
        auto const drawn = d.order == data_order::random;
        return std::pair{&source, drawn ? source.training().drawn(random_fraction(stream, static_cast<std::uint64_t>(sequence))) : d.in_epoch(seed, place)};
    });
}

void dataset::validation_microbatch(microbatch_id microbatch, std::span<std::int32_t> tokens, std::span<std::int32_t> targets, int slice) const
{
    // Multiples of the golden ratio: the first n of them are evenly spread for every n.
    auto const& d = *impl_;
    d.fill(slice, tokens, targets, [&](int sequence) {
        auto const nth = static_cast<std::int64_t>(microbatch.value) * d.shape.sequences + sequence;
        auto const place = d.validation ? source_mix::place{0, nth} : d.mix.of(nth);
        auto const& source = d.validation ? *d.validation : d.sources[static_cast<std::size_t>(place.source)];
        return std::pair{&source, source.validation().drawn(static_cast<std::uint64_t>(place.number) * 0x9e3779b97f4a7c15U)};
    });
}

std::optional<token_files::changed_file> dataset::change() const
{
    std::optional<token_files::changed_file> found;
    impl_->for_each_source([&](data_source const& source, std::size_t before) {
        found = source.files().change();
        if (found) {
            found->piece += before;
        }
        return found.has_value();
    });
    return found;
}

std::string dataset::path(std::size_t piece) const
{
    std::string found;
    impl_->for_each_source([&](data_source const& source, std::size_t before) {
        auto const& pieces = source.files().pieces();
        bool const here = piece - before < pieces.size();
        found = here ? pieces[piece - before].path : found;
        return here;
    });
    expects(!found.empty(), "a file is one of the dataset's");
    return found;
}

state_digest dataset::digest() const
{
    auto const& d = *impl_;
    auto sum = d.summed([](data_source const& source) { return source.digest(); });
    return d.validation ? sum += d.validation->digest() : sum;
}

std::string dataset::order() const
{
    auto const& d = *impl_;
    std::vector<std::string> words;
    if (d.order == data_order::epochs) {
        words.push_back("each sequence once per epoch");
    }
    for (std::size_t s = 0; s < d.parts.size() && d.parts.size() > 1; ++s) {
        words.push_back(fmt::format("{} of source {}", percent(d.parts[s]), s));
    }
    if (d.sources.front().document_token() >= 0) {
        words.push_back(fmt::format("within documents that end with token {}", d.sources.front().document_token()));
    }
    return fmt::format("{}", fmt::join(words, ", "));
}

std::int64_t dataset::training_tokens() const
{
    return impl_->summed([](data_source const& source) { return source.training_tokens(); });
}
std::int64_t dataset::validation_tokens() const
{
    auto const& d = *impl_;
    return d.validation ? d.validation->validation_tokens() : d.summed([](data_source const& source) { return source.validation_tokens(); });
}
double dataset::unigram_entropy() const { return impl_->entropy; }
bool dataset::is_text() const { return impl_->sources.front().files().is_text(); }

std::string dataset::description() const
{
    auto const& d = *impl_;
    std::size_t files = 0;
    d.for_each_source([&](data_source const& source, std::size_t) {
        files += source.files().pieces().size();
        return false;
    });
    auto const how = order();
    return fmt::format("{} {} file{}, {} {} to train on and {} to validate{}{}", files, is_text() ? "text" : "token", files == 1 ? "" : "s", training_tokens(),
                       is_text() ? "bytes" : "tokens", validation_tokens(), how.empty() ? "" : ", ", how);
}

}  // namespace rheo::inline v0
