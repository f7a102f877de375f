// SPDX-License-Identifier: Apache-2.0
#include "executor/text/bpe_model.hpp"

#include <algorithm>
#include <bit>
#include <queue>
#include <utility>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/text/byte_level.hpp"
#include "executor/text/utf8.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::size_t short_word = 48;  ///< symbols up to which searching all pairs each time beats a heap (measured)
constexpr std::uint64_t no_pair = ~std::uint64_t{0};

std::uint64_t pair_of(token_id left, token_id right) { return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right); }

std::uint64_t place_of(std::uint64_t pair) { return (pair * 0x9e3779b97f4a7c15U) >> 20; }

}  // namespace

bpe_model::bpe_model(bpe_description description) : description_{std::move(description)}
{
    auto const& d = description_;
    bytes_.fill(-1);
    if (d.byte_level) {
        texts_.reserve(d.vocabulary.size());  // views into its elements stay good
        for (auto const& [token, id] : d.vocabulary) {
            if (auto bytes = bytes_of_byte_level(token)) {
                words_.emplace(texts_.emplace_back(*std::move(bytes)), id);
            }
        }
        for (int byte = 0; byte < 256; ++byte) {
            std::string const text(1, static_cast<char>(static_cast<unsigned char>(byte)));
            if (auto const found = words_.find(text); found != words_.end()) {
                bytes_[static_cast<std::size_t>(byte)] = found->second;
            }
        }
    } else {
        for (auto const& [token, id] : d.vocabulary) {
            words_.emplace(token, id);
        }
        for (unsigned byte = 0; byte < 256 && d.byte_fallback; ++byte) {
            bytes_[byte] = id(fmt::format("<0x{:02X}>", byte)).value_or(-1);
        }
    }
    if (d.unknown) {
        unknown_ = id(*d.unknown);
        if (!unknown_) {
            throw json_error{fmt::format("has model.unk_token = '{}', which is not in its vocabulary", *d.unknown)};
        }
    }
    add_merges();
}

void bpe_model::add_merges()
{
    auto const& merges = description_.merges;
    table_.assign(std::bit_ceil(2 * merges.size() + 2), {no_pair, {}});
    mask_ = table_.size() - 1;
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
        auto const& [left, right] = merges[rank];
        auto const a = id(left);
        auto const b = id(right);
        auto const made = id(left + right);
        if (!a || !b || !made) {
            throw json_error{fmt::format("has the merge '{}' and '{}' (number {}), but '{}' is not in its vocabulary", left, right, rank,
                                         !a   ? left
                                         : !b ? right
                                              : left + right)};
        }
        auto const pair = pair_of(*a, *b);
        auto at = place_of(pair) & mask_;
        while (table_[at].pair != no_pair && table_[at].pair != pair) {
            at = (at + 1) & mask_;
        }
        table_[at] = {pair, {static_cast<std::int32_t>(rank), *made}};  // of a pair that is there twice, the last counts, as in Hugging Face's
    }
}

std::optional<token_id> bpe_model::id(std::string_view token) const
{
    auto const found = description_.vocabulary.find(std::string{token});
    return found == description_.vocabulary.end() ? std::nullopt : std::optional{found->second};
}

bool bpe_model::begins_words_with(std::string_view mark) const
{
    if (!id(mark)) {
        return false;
    }
    return std::none_of(description_.merges.begin(), description_.merges.end(), [&](auto const& merge) {
        auto const whole = merge.left + merge.right;
        bool other = false;  // something that is no mark was seen
        for (std::size_t at = 0; at < whole.size();) {
            auto const is_mark = std::string_view{whole}.substr(at).starts_with(mark);
            if (is_mark && other) {
                return true;
            }
            other = other || !is_mark;
            at += is_mark ? mark.size() : utf8_at(whole, at).bytes;
        }
        return false;
    });
}

bpe_model::merged const* bpe_model::find(token_id left, token_id right) const
{
    auto const pair = pair_of(left, right);
    for (auto at = place_of(pair) & mask_; table_[at].pair != no_pair; at = (at + 1) & mask_) {
        if (table_[at].pair == pair) {
            return &table_[at].made;
        }
    }
    return nullptr;
}

void bpe_model::first_symbols(std::string_view word, std::vector<token_id>& symbols) const
{
    std::optional<token_id> pending;  // unknown, not yet put down: the next may be fused with it
    auto const put_pending = [&] {
        if (pending) {
            symbols.push_back(*std::exchange(pending, std::nullopt));
        }
    };
    for (std::size_t at = 0; at < word.size();) {
        auto const length = description_.byte_level ? 1 : utf8_at(word, at).bytes;
        auto const text = word.substr(at, length);
        at += length;
        auto known = description_.byte_level ? bytes_[static_cast<unsigned char>(text[0])] : token_id{-1};
        if (!description_.byte_level) {
            auto const found = words_.find(text);
            known = found == words_.end() ? -1 : found->second;
        }
        if (known >= 0) {
            put_pending();
            symbols.push_back(known);
            continue;
        }
        auto const has_bytes = description_.byte_fallback && !description_.byte_level &&
                               std::all_of(text.begin(), text.end(), [&](char c) { return bytes_[static_cast<unsigned char>(c)] >= 0; });
        if (has_bytes) {  // what is pending stays so, as in Hugging Face's
            for (char const c : text) {
                symbols.push_back(bytes_[static_cast<unsigned char>(c)]);
            }
        } else if (unknown_) {
            if (!description_.fuse_unknown) {
                put_pending();
            }
            pending = unknown_;
        }
    }
    put_pending();
}

void bpe_model::merge_short(std::vector<token_id>& symbols) const
{
    std::array<merged, short_word> next{};  // what symbol i and the one after it make
    auto const look = [&](std::size_t i) {
        auto const* const found = i + 1 < symbols.size() ? find(symbols[i], symbols[i + 1]) : nullptr;
        next[i] = found != nullptr ? *found : merged{INT32_MAX, 0};
    };
    for (std::size_t i = 0; i < symbols.size(); ++i) {
        look(i);
    }
    while (symbols.size() > 1) {
        std::size_t best = 0;
        for (std::size_t i = 1; i + 1 < symbols.size(); ++i) {
            if (next[i].rank < next[best].rank) {
                best = i;
            }
        }
        if (next[best].rank == INT32_MAX) {
            return;
        }
        symbols[best] = next[best].id;
        symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
        std::copy(next.begin() + static_cast<std::ptrdiff_t>(best) + 2, next.begin() + static_cast<std::ptrdiff_t>(symbols.size()) + 1,
                  next.begin() + static_cast<std::ptrdiff_t>(best) + 1);
        look(best);
        if (best > 0) {
            look(best - 1);
        }
    }
}

void bpe_model::merge_long(std::vector<token_id>& symbols) const
{
    struct candidate {
        std::int32_t rank;
        std::int32_t at;
        token_id left;
        token_id right;
        bool operator>(candidate const& other) const { return std::pair{rank, at} > std::pair{other.rank, other.at}; }
    };
    auto const count = static_cast<std::int32_t>(symbols.size());
    std::vector<symbol> list(symbols.size());
    std::priority_queue<candidate, std::vector<candidate>, std::greater<>> queue;
    auto const at = [&](std::int32_t i) -> symbol& { return list[static_cast<std::size_t>(i)]; };
    auto const look = [&](std::int32_t i) {
        if (i >= 0 && at(i).after < count) {
            auto const left = at(i).id;
            auto const right = at(at(i).after).id;
            if (auto const* const found = find(left, right)) {
                queue.push({found->rank, i, left, right});
            }
        }
    };
    for (std::int32_t i = 0; i < count; ++i) {
        at(i) = {symbols[static_cast<std::size_t>(i)], i - 1, i + 1};
    }
    for (std::int32_t i = 0; i < count; ++i) {
        look(i);
    }
    while (!queue.empty()) {
        auto const best = queue.top();
        queue.pop();
        auto& left = at(best.at);
        if (left.id != best.left || left.after >= count || at(left.after).id != best.right) {
            continue;  // one of them was merged meanwhile
        }
        auto const gone = left.after;
        left.id = find(best.left, best.right)->id;
        left.after = at(gone).after;
        at(gone).id = -1;
        if (left.after < count) {
            at(left.after).before = best.at;
        }
        look(best.at);
        look(left.before);
    }
    symbols.clear();
    for (std::int32_t i = 0; i < count; i = at(i).after) {
        symbols.push_back(at(i).id);
    }
}

void bpe_model::encode(std::string_view word, std::vector<token_id>& out) const
{
    if (description_.ignore_merges) {
        if (auto const found = words_.find(word); found != words_.end()) {
            out.push_back(found->second);
            return;
        }
    }
    thread_local std::vector<token_id> symbols;
    symbols.clear();
    first_symbols(word, symbols);
    if (symbols.size() > static_cast<std::size_t>(INT32_MAX)) {
        throw exit_error{exit_code::bad_data, fmt::format("text: a word has {} bytes, expected at most {} symbols in one", word.size(), INT32_MAX)};
    }
    symbols.size() <= short_word ? merge_short(symbols) : merge_long(symbols);
    out.insert(out.end(), symbols.begin(), symbols.end());
}

}  // namespace rheo::inline v0
