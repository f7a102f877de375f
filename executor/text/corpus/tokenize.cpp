// SPDX-License-Identifier: Apache-2.0
#include "executor/text/corpus/tokenize.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "executor/os/background_thread.hpp"
#include "executor/text/utf8.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

/// A document, or a stretch of one, with its tokens.
struct encoded_part {
    document_part source;
    std::vector<token_id> tokens;
    chunk_end end{};
    std::int64_t replaced = 0;
};

struct encoded_batch {
    text_batch source;
    std::vector<encoded_part> parts;
    std::exception_ptr error;
    bool done = false;
};

/// What one thread does with a batch.
class batch_encoder {
public:
    batch_encoder(text_model const& model, tokenize_options const& options) : encoder_{model}, options_{options} {}

    void encode(encoded_batch& batch)
    {
        for_each_text(batch.source.lines, options_.field, [&](std::string text, std::string const& where) {
            auto const own = text.size();
            encode_part(where, {nullptr, std::move(text), own, true, true}, batch.parts);
        });
        for (auto& part : batch.source.parts) {
            auto const where = fmt::format("'{}'", *part.path);
            encode_part(where, std::move(part), batch.parts);
        }
        batch.source = {};
    }

private:
    text_encoder encoder_;
    tokenize_options const& options_;

    void encode_part(std::string const& where, document_part part, std::vector<encoded_part>& to)
    {
        auto& made = to.emplace_back();
        made.replaced = make_valid(part, where);
        made.source = std::move(part);
        auto const& source = made.source;
        made.tokens.reserve(source.own / 3);
        made.end = encoder_.encode({source.text, source.own, source.begins, source.begins, source.ends}, made.tokens);
        if (source.begins && source.ends) {
            made.source.text = {};  // nothing is encoded again
        }
    }

    /// Own bytes and context apart: both begin with a character.
    std::int64_t make_valid(document_part& part, std::string const& where) const
    {
        auto const at = first_invalid(part.text);
        if (at == part.text.size()) {
            return 0;
        }
        if (options_.refuse_invalid && at < part.own) {
            throw exit_error{
                exit_code::bad_data,
                fmt::format("text: {} has bytes that are not UTF-8, the first is 0x{:02x}; convert it (iconv), or replace them with --invalid=replace", where,
                            static_cast<unsigned char>(part.text[at]))};
        }
        auto context = part.text.substr(part.own);
        part.text.resize(part.own);
        auto const replaced = replace_invalid(part.text);
        replace_invalid(context);
        part.own = part.text.size();
        part.text += context;
        return replaced;
    }
};

/// Threads that encode batches in any order; they are taken in the order in which they were given.
class encoding_threads {
public:
    encoding_threads(text_model const& model, tokenize_options const& options) : encoding_threads{}  // so that those that were started end if one cannot be
    {
        for (int i = 0; i < options.threads; ++i) {
            threads_.push_back(background_thread([this, encoder = batch_encoder{model, options}]() mutable { run(encoder); }));
        }
    }
    ~encoding_threads()
    {
        {
            std::lock_guard const lock{mutex_};
            ends_ = true;
        }
        work_.notify_all();
        for (auto& thread : threads_) {
            thread.join();
        }
    }
    encoding_threads(encoding_threads const&) = delete;
    encoding_threads& operator=(encoding_threads const&) = delete;

    void give(text_batch batch)
    {
        {
            std::lock_guard const lock{mutex_};
            auto& made = batches_.emplace_back(std::make_unique<encoded_batch>());
            made->source = std::move(batch);
            waiting_.push_back(made.get());
        }
        work_.notify_one();
    }

    std::size_t given() const { return batches_.size(); }  // only this thread adds and takes

    /// The batch that was given first. @pre there is one
    std::unique_ptr<encoded_batch> take()
    {
        std::unique_lock lock{mutex_};
        done_.wait(lock, [&] { return batches_.front()->done; });
        auto first = std::move(batches_.front());
        batches_.pop_front();
        return first;
    }

private:
    std::mutex mutex_;
    std::condition_variable work_;
    std::condition_variable done_;
    std::deque<std::unique_ptr<encoded_batch>> batches_;
    std::deque<encoded_batch*> waiting_;
    bool ends_ = false;
    std::vector<std::thread> threads_;

    encoding_threads() = default;

    void run(batch_encoder& encoder)
    {
        for (;;) {
            encoded_batch* batch = nullptr;
            {
                std::unique_lock lock{mutex_};
                work_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
                if (ends_) {
                    return;
                }
                batch = waiting_.front();
                waiting_.pop_front();
            }
            try {
                encoder.encode(*batch);
            } catch (...) {
                batch->error = std::current_exception();
            }
            {
                std::lock_guard const lock{mutex_};
                batch->done = true;
            }
            done_.notify_one();
        }
    }
};

/// Puts the parts together: writes tokens, and encodes a stretch again that the one before did not end at.
class joiner {
public:
    joiner(text_model const& model, tokenize_options const& options, token_file_writer& out, tokenize_counts& counts)
        : encoder_{model},
          options_{options},
          special_{options.special_tokens ? special_tokens_of(model) : post_processor{}},
          minds_beginnings_{minds_beginnings(model)},
          out_{out},
          counts_{counts}
    {
    }

    void take(encoded_part& part)
    {
        counts_.replaced += part.replaced;
        if (part.source.begins) {
            out_.write(special_.before);
            left_.clear();
            enough_ = 0;
            skip_ = 0;
            behind_token_ = false;
        } else if (skip_ >= part.source.own && !part.source.ends) {
            skip_ -= part.source.own;  // all of it was encoded with the one before
            return;
        } else if (!part.source.ends && left_.size() + part.source.own < enough_) {
            left_.append(part.source.text, 0, part.source.own);
            return;
        } else if (skip_ > 0 || !left_.empty() || (behind_token_ && minds_beginnings_)) {
            encode_again(part);
        }
        out_.write(part.tokens);
        auto const own = part.source.own;
        skip_ = part.end.at > own ? part.end.at - own : 0;
        left_ = part.end.at < own && !part.source.ends ? part.source.text.substr(part.end.at, own - part.end.at) : std::string{};
        enough_ = 2 * left_.size();
        behind_token_ = part.end.behind_token;
        if (part.source.ends) {
            end_document();
        }
    }

private:
    text_encoder encoder_;
    tokenize_options const& options_;
    post_processor special_;
    bool minds_beginnings_;
    token_file_writer& out_;
    tokenize_counts& counts_;
    std::string left_;        ///< of the stretch before, not encoded yet
    std::size_t enough_ = 0;  ///< bytes with which it is worth another try: twice as many, so that a word of many stretches costs linear time
    std::size_t skip_ = 0;    ///< bytes that were encoded with it
    bool behind_token_ = false;

    void encode_again(encoded_part& part)
    {
        ++counts_.recut;
        part.source.text = left_ + part.source.text.substr(skip_);
        part.source.own = left_.size() + part.source.own - skip_;
        part.tokens.clear();
        part.end = encoder_.encode({part.source.text, part.source.own, false, behind_token_, part.source.ends}, part.tokens);
    }

    void end_document()
    {
        out_.write(special_.after);
        ++counts_.documents;
        if (options_.document_token && (special_.after.empty() || special_.after.back() != *options_.document_token)) {
            out_.write({&*options_.document_token, 1});
        }
    }
};

}  // namespace

tokenize_counts tokenize_files(text_model const& model, std::vector<std::string> const& paths, tokenize_options const& options, token_file_writer& out)
{
    corpus_reader reader{paths, {options.batch_bytes, options.context_bytes, cut_rule_of(model)}};
    tokenize_counts counts;
    joiner join{model, options, out, counts};
    encoding_threads threads{model, options};
    auto const most = static_cast<std::size_t>(2 * options.threads + 1);
    for (auto more = true; more || threads.given() > 0;) {
        while (more && threads.given() < most) {
            auto batch = reader.next();
            more = batch.has_value();
            if (more) {
                threads.give(*std::move(batch));
            }
        }
        if (threads.given() > 0) {
            auto const batch = threads.take();
            if (batch->error) {
                std::rethrow_exception(batch->error);
            }
            for (auto& part : batch->parts) {
                join.take(part);
            }
        }
    }
    counts.files = static_cast<std::int64_t>(reader.files());
    counts.bytes = reader.bytes();
    counts.tokens = out.count();
    return counts;
}

}  // namespace rheo::inline v0
