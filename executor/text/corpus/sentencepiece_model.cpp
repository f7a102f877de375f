// SPDX-License-Identifier: Apache-2.0
#include "executor/text/corpus/sentencepiece_model.hpp"

#ifdef RHEO_HAS_SENTENCEPIECE
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>
#endif

#include <fmt/format.h>

#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

#ifdef RHEO_HAS_SENTENCEPIECE

namespace {

[[noreturn]] void refuse(std::string const& what, sentencepiece::util::Status const& status)
{
    throw exit_error{exit_code::bad_data, fmt::format("tokenizer: {}: {}", what, status.message())};
}

class sentences final : public sentencepiece::SentenceIterator {
public:
    explicit sentences(std::function<bool(std::string&)> const& next) : next_{next} { Next(); }
    bool done() const override { return done_; }
    void Next() override { done_ = !next_(value_); }
    std::string const& value() const override { return value_; }
    sentencepiece::util::Status status() const override { return {}; }

private:
    std::function<bool(std::string&)> const& next_;
    std::string value_;
    bool done_ = false;
};

}  // namespace

struct sentencepiece_model::library {
    sentencepiece::SentencePieceProcessor processor;
};

sentencepiece_model::sentencepiece_model(std::string_view bytes)
{
    auto const made = std::make_shared<library>();
    if (auto const status = made->processor.LoadFromSerializedProto(absl::string_view{bytes.data(), bytes.size()}); !status.ok()) {
        refuse("this is not a SentencePiece model", status);
    }
    library_ = made;
}

void sentencepiece_model::encode(std::string_view text, std::vector<token_id>& out) const
{
    std::vector<int> ids;
    if (auto const status = library_->processor.Encode(absl::string_view{text.data(), text.size()}, &ids); !status.ok()) {
        refuse("SentencePiece cannot encode this text", status);
    }
    out.insert(out.end(), ids.begin(), ids.end());
}

std::string sentencepiece_model::decode(std::span<token_id const> tokens) const
{
    for (auto const id : tokens) {
        if (id < 0 || id >= vocabulary()) {
            throw exit_error{exit_code::bad_data, fmt::format("tokenizer: there is no token {} among {}", id, vocabulary())};
        }
    }
    std::string text;
    if (auto const status = library_->processor.Decode(std::vector<int>(tokens.begin(), tokens.end()), &text); !status.ok()) {
        refuse("SentencePiece cannot decode these tokens", status);
    }
    return text;
}

std::int64_t sentencepiece_model::vocabulary() const { return library_->processor.GetPieceSize(); }

std::optional<token_id> sentencepiece_model::id(std::string_view token) const
{
    auto const id = library_->processor.PieceToId(absl::string_view{token.data(), token.size()});
    return library_->processor.IdToPiece(id) == token ? std::optional<token_id>{id} : std::nullopt;  // what is unknown has the id of <unk>
}

std::string sentencepiece_model::token(token_id id) const { return id >= 0 && id < vocabulary() ? library_->processor.IdToPiece(id) : std::string{}; }

std::optional<token_id> sentencepiece_model::end_of_text() const
{
    auto const id = library_->processor.eos_id();
    return id >= 0 ? std::optional<token_id>{id} : std::nullopt;
}

std::string train_sentencepiece(sentencepiece_training const& training)
{
    std::unordered_map<std::string, std::string> const options{
        {"model_type", training.kind},
        {"vocab_size", fmt::format("{}", training.vocabulary)},
        {"num_threads", fmt::format("{}", training.threads)},
        {"byte_fallback", "true"},
        {"character_coverage", "0.9995"},
        {"normalization_rule_name", "identity"},
        {"remove_extra_whitespaces", "false"},
        {"split_digits", "true"},
        {"input_sentence_size", "0"},
        {"shuffle_input_sentence", "false"},
        {"max_sentence_length", "65536"},
        {"minloglevel", "2"},
    };
    sentences from{training.next_sentence};
    std::string bytes;
    if (auto const status = sentencepiece::SentencePieceTrainer::Train(options, &from, &bytes); !status.ok()) {
        refuse("SentencePiece cannot train this", status);
    }
    return bytes;
}

#else

struct sentencepiece_model::library {};

namespace {

[[noreturn]] void refuse()
{
    throw exit_error{exit_code::environment, "tokenizer: this rheo was built without SentencePiece; install libsentencepiece-dev and build it again"};
}

}  // namespace

sentencepiece_model::sentencepiece_model(std::string_view) { refuse(); }
void sentencepiece_model::encode(std::string_view, std::vector<token_id>&) const { refuse(); }
std::string sentencepiece_model::decode(std::span<token_id const>) const { refuse(); }
std::int64_t sentencepiece_model::vocabulary() const { refuse(); }
std::optional<token_id> sentencepiece_model::id(std::string_view) const { refuse(); }
std::string sentencepiece_model::token(token_id) const { refuse(); }
std::optional<token_id> sentencepiece_model::end_of_text() const { refuse(); }
std::string train_sentencepiece(sentencepiece_training const&) { refuse(); }

#endif

}  // namespace rheo::inline v0
