// SPDX-License-Identifier: Apache-2.0
#include "executor/text/token_encoder.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "executor/text/utf8.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

std::uint64_t hash_of(std::string_view word)
{
    std::uint64_t hash = word.size() * 0x9e3779b97f4a7c15U;
    std::size_t at = 0;
    for (; at + 8 <= word.size(); at += 8) {
        std::uint64_t eight = 0;
        std::memcpy(&eight, word.data() + at, 8);
        hash = (hash ^ eight) * 0xff51afd7ed558ccdU;
        hash ^= hash >> 32;
    }
    std::uint64_t rest = 0;
    std::memcpy(&rest, word.data() + at, word.size() - at);
    hash = (hash ^ rest) * 0xff51afd7ed558ccdU;
    return hash ^ hash >> 29;
}

/// The part of an open text before which nothing that follows can begin an added token.
std::size_t without_tokens_to_come(std::string_view text, std::size_t longest)
{
    auto limit = text.size() - std::min(text.size(), longest);
    while (limit > 0 && limit < text.size() && is_utf8_continuation(text[limit])) {
        --limit;
    }
    return limit;
}

/// Whether a word begins at a blank: no merge joins across it.
bool is_cut_before_blank(std::string_view text, std::size_t at, std::string_view mark)
{
    return at > 0 && at < text.size() && text[at] == ' ' && text[at - 1] != ' ' && !text.substr(0, at).ends_with(mark);
}

std::size_t last_cut_before_blank(std::string_view text, std::size_t least, std::size_t most, std::string_view mark)
{
    for (auto at = std::min(most, text.size()); at-- > least + 1;) {
        if (is_cut_before_blank(text, at, mark)) {
            return at;
        }
    }
    return 0;
}

}  // namespace

token_encoder::token_encoder(tokenizer const& with) : tokenizer_{with}, memory_{std::make_unique<remembered[]>(places)} {}

chunk_end token_encoder::encode(text_chunk const& chunk, std::vector<token_id>& out)
{
    expects(chunk.own <= chunk.text.size(), "a chunk's own bytes are within its text");
    expects((chunk.begins_text && chunk.ends_text && chunk.own == chunk.text.size()) || tokenizer_.cuts() != tokenizer::cutting::never,
            "texts are cut only for a tokenizer whose tokens a cut cannot change");
    out_ = &out;
    auto const& added = tokenizer_.parts().added;
    auto const limit = chunk.ends_text ? chunk.text.size() : without_tokens_to_come(chunk.text, added.longest());
    std::size_t at = 0;
    bool behind_token = false;
    for (auto const& part : added.cut(chunk.text, false)) {
        if (part.begin >= limit) {
            break;
        }
        if (part.token != nullptr) {
            out.push_back(part.token->id);
            at = part.end;
            behind_token = true;
            if (at >= chunk.own) {
                return {at, true};
            }
            continue;
        }
        auto const open = !chunk.ends_text && (part.end > limit || part.end == chunk.text.size());  // what ends it may be part of a longer token
        auto const end = open ? limit : part.end;
        auto const first = part.begin == 0;
        auto const done = encode_segment({.text = chunk.text.substr(part.begin, end - part.begin),
                                          .target = chunk.own > part.begin ? chunk.own - part.begin : 0,
                                          .begins_text = first && chunk.begins_text,
                                          .begins_part = first ? chunk.begins_part : true,
                                          .open = open});
        behind_token = behind_token && done == 0;
        at = part.begin + done;
        if (at >= chunk.own || at < end) {
            return {at, behind_token};
        }
    }
    return {at, behind_token};
}

std::size_t token_encoder::encode_segment(segment const& s)
{
    if (!s.open && s.target >= s.text.size()) {
        encode_closed(s);
        return s.text.size();
    }
    return tokenizer_.cuts() == tokenizer::cutting::between_matches ? encode_between_matches(s) : encode_before_blanks(s);
}

void token_encoder::encode_closed(segment const& s)
{
    auto const& p = tokenizer_.parts();
    auto const each = [this](std::string_view piece) { encode_piece(piece); };
    auto const words = [&](std::string_view text, bool begins) {
        auto const step = p.words.resumable_step();
        if (step != std::size_t{0}) {
            p.words.split(text, begins, 0, each);
            return;
        }
        auto const& pattern = std::get<split_by_regex>(p.words.steps()[0]).pattern;  // the usual case, without a list of its matches
        auto const last = p.words.steps().size() == 2 && p.words.is_byte_level();
        auto const put = [&](std::size_t begin, std::size_t end) {
            auto const piece = text.substr(begin, end - begin);
            last ? encode_word(piece) : p.words.split(piece, begins && begin == 0, 1, each);
        };
        std::size_t at = 0;
        while (at < text.size()) {
            auto const match = pattern.find(text, at);
            if (match.is != regex::status::found) {
                put(at, text.size());
                break;
            }
            if (match.begin > at) {
                put(at, match.begin);
            }
            put(match.begin, match.end);
            at = match.end;
        }
    };
    if (p.normalize.changes_nothing() && !p.added.any_in(true)) {
        words(s.text, s.begins_text);
        return;
    }
    auto const text = p.normalize.apply(s.text, s.begins_part);
    for (auto const& part : p.added.cut(text, true)) {
        if (part.token != nullptr) {
            out_->push_back(part.token->id);
        } else {
            words(std::string_view{text}.substr(part.begin, part.end - part.begin), s.begins_text && part.begin == 0);
        }
    }
}

std::size_t token_encoder::encode_between_matches(segment const& s)
{
    auto const& p = tokenizer_.parts();
    auto text = s.text;
    auto const* const form = p.normalize.only_form();
    if (form != nullptr && s.open) {  // what follows may be composed with the last character
        while (!text.empty() && !is_stable(*form, utf8_at(text, utf8_before(text, text.size())).code)) {
            text = text.substr(0, utf8_before(text, text.size()));
        }
        text = text.empty() ? text : text.substr(0, utf8_before(text, text.size()));
    }
    auto const normalized = form != nullptr ? normalize_with_places(*form, text) : normalized_text{std::string{text}, {}};
    std::string_view const whole = normalized.text;
    auto const step = *p.words.resumable_step();
    auto const& pattern = std::get<split_by_regex>(p.words.steps()[step]).pattern;

    struct {
        std::size_t source = 0;
        std::size_t tokens = 0;
    } sure{0, out_->size()};  // up to here it is known, and there the text can be cut
    bool done = false;
    auto const reach = [&](std::size_t at) {
        auto const source = normalized.source_of(at);
        if (source != std::string::npos) {
            sure = {source, out_->size()};
            done = source >= s.target;
        }
    };
    auto const match_run = [&](std::size_t begin, std::size_t end, bool open) {
        auto const run = whole.substr(0, end);
        for (auto at = begin; at < end && !done;) {
            auto const match = pattern.find(run, at, open);
            if (match.is == regex::status::undecided) {
                return false;
            }
            auto const next = match.is == regex::status::found ? match.begin : end;
            if (next > at) {
                p.words.split(run.substr(at, next - at), false, step + 1, [this](std::string_view piece) { encode_piece(piece); });
                reach(next);
            }
            if (!done && match.is == regex::status::found) {
                p.words.split(run.substr(next, match.end - next), false, step + 1, [this](std::string_view piece) { encode_piece(piece); });
                reach(match.end);
            }
            at = match.is == regex::status::found ? match.end : end;
        }
        return true;
    };
    auto const limit = s.open ? without_tokens_to_come(whole, p.added.longest()) : whole.size();
    for (auto const& part : p.added.cut(whole, true)) {
        if (part.begin >= limit || done) {
            break;
        }
        if (part.token != nullptr) {
            out_->push_back(part.token->id);
            reach(part.end);
            continue;
        }
        auto const open = s.open && (part.end > limit || part.end == whole.size());
        auto const end = open ? limit : part.end;
        auto decided = true;
        auto const run = [&](std::size_t from, std::size_t to) {
            if (decided && !done) {
                decided = match_run(part.begin + from, part.begin + to, open && part.begin + to == end);
            }
        };
        if (step == 0) {
            run(0, end - part.begin);
        } else {
            digit_runs(std::get<split_digits>(p.words.steps()[0]), whole.substr(part.begin, end - part.begin), run);
        }
        if (!decided) {
            break;
        }
    }
    out_->resize(sure.tokens);
    return sure.source;
}

std::size_t token_encoder::encode_before_blanks(segment const& s)
{
    auto const& mark = tokenizer_.word_mark();
    auto end = s.target;
    while (end < s.text.size() && !is_cut_before_blank(s.text, end, mark)) {
        ++end;
    }
    if (end >= s.text.size()) {
        end = s.open ? last_cut_before_blank(s.text, 0, s.text.size(), mark) : s.text.size();
    }
    if (end > 0) {
        encode_closed({s.text.substr(0, end), end, s.begins_text, s.begins_part, false});
    }
    return end;
}

void token_encoder::encode_piece(std::string_view piece)
{
    auto const& mark = tokenizer_.word_mark();
    if (mark.empty()) {
        encode_word(piece);
        return;
    }
    std::size_t begin = 0;
    for (auto at = piece.find(mark, mark.size()); at != std::string_view::npos; at = piece.find(mark, at + mark.size())) {
        if (!piece.substr(begin, at - begin).ends_with(mark)) {
            encode_word(piece.substr(begin, at - begin));
            begin = at;
        }
    }
    encode_word(piece.substr(begin));
}

void token_encoder::encode_word(std::string_view word)
{
    auto& out = *out_;
    auto const& model = tokenizer_.parts().model;
    if (word.size() > std::tuple_size_v<decltype(remembered::word)>) {
        model.encode(word, out);
        return;
    }
    auto& place = memory_[hash_of(word) % places];
    if (place.bytes == word.size() && std::memcmp(place.word.data(), word.data(), word.size()) == 0) {
        out.insert(out.end(), place.tokens.begin(), place.tokens.begin() + place.count);
        return;
    }
    auto const before = out.size();
    model.encode(word, out);
    auto const count = out.size() - before;
    if (count <= place.tokens.size() && !word.empty()) {
        place.bytes = static_cast<std::uint8_t>(word.size());
        place.count = static_cast<std::uint8_t>(count);
        std::memcpy(place.word.data(), word.data(), word.size());
        std::copy(out.begin() + static_cast<std::ptrdiff_t>(before), out.end(), place.tokens.begin());
    }
}

std::size_t find_cut(tokenizer const& with, std::string_view text, std::size_t least, std::size_t most)
{
    most = std::min(most, text.size());
    if (with.cuts() == tokenizer::cutting::never || most <= least) {
        return 0;
    }
    if (with.cuts() == tokenizer::cutting::before_blanks) {
        return last_cut_before_blank(text, least, most, with.word_mark());
    }
    auto const is_blank = [&](std::size_t at) { return static_cast<unsigned char>(text[at]) <= ' '; };
    for (auto at = most; at-- > least + 1;) {
        if (text[at - 1] == '\n' && !is_blank(at) && !is_utf8_continuation(text[at])) {
            return at;
        }
    }
    for (auto at = most; at-- > least + 1;) {
        if (text[at] == ' ' && !is_blank(at - 1)) {
            return at;
        }
    }
    for (auto at = most; at-- > least + 1;) {
        if (!is_utf8_continuation(text[at])) {
            return at;
        }
    }
    return 0;
}

}  // namespace rheo::inline v0
