// SPDX-License-Identifier: Apache-2.0
#include "operation.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "modes.hpp"

namespace standin {

namespace {

/// Sums wrap around.
template <class T>
void combine(std::byte* total, std::byte const* more, std::size_t bytes, int reduction)
{
    for (std::size_t k = 0; k < bytes; k += sizeof(T)) {
        T a;
        T b;
        std::memcpy(&a, total + k, sizeof a);
        std::memcpy(&b, more + k, sizeof b);
        if (reduction == ncclMax) {
            a = std::max(a, b);
        } else {
            __builtin_add_overflow(a, b, &a);
        }
        std::memcpy(total + k, &a, sizeof a);
    }
}

/// A new order each time, and in each process.
std::minstd_rand& dice()
{
    static std::minstd_rand all{std::random_device{}()};
    return all;
}

}  // namespace

std::uint64_t operation::begin_of(std::uint64_t chunk) const { return std::min<std::uint64_t>(chunk * channel::chunk, what_.bytes); }

bool operation::put_next(outgoing& o, room const& all) const
{
    auto& c = all.between(all.rank(), o.to);
    if (o.chunks == chunks() || c.put.load(std::memory_order_relaxed) != c.taken.load(std::memory_order_acquire)) {
        return false;
    }
    c.of = what_;
    std::copy_n(o.data + begin_of(o.chunks), bytes_of(o.chunks), c.data);
    ++o.chunks;
    c.put.fetch_add(1, std::memory_order_release);
    return true;
}

bool operation::is_filled(incoming const& i, room const& all) const
{
    auto const& c = all.between(i.from, all.rank());
    if (i.chunks == chunks() || c.put.load(std::memory_order_acquire) == c.taken.load(std::memory_order_relaxed)) {
        return false;
    }
    if (c.of != what_) {
        end_loudly("rank " + std::to_string(all.rank()) + " has a " + sentence_of(what_) + ", and rank " + std::to_string(i.from) + " a " + sentence_of(c.of));
    }
    return true;
}

bool operation::take_next(incoming& i, room const& all) const
{
    if (!is_filled(i, all)) {
        return false;
    }
    auto& c = all.between(i.from, all.rank());
    std::copy_n(c.data, bytes_of(i.chunks), i.data + begin_of(i.chunks));
    ++i.chunks;
    c.taken.fetch_add(1, std::memory_order_release);
    return true;
}

bool operation::combine_next(room const& all)
{
    auto const ready = [&](incoming const& i) { return is_filled(i, all); };
    auto const gone_out = [&](outgoing const& o) { return o.chunks > kept_; };
    if (kept_ == chunks() || !std::all_of(in_.begin(), in_.end(), ready) || !std::all_of(out_.begin(), out_.end(), gone_out)) {
        return false;
    }
    std::vector<std::byte const*> parts{own_.from + begin_of(kept_)};
    for (auto const& i : in_) {
        parts.push_back(all.between(i.from, all.rank()).data);
    }
    std::shuffle(parts.begin(), parts.end(), dice());
    auto const bytes = bytes_of(kept_);
    std::vector<std::byte> total(parts[0], parts[0] + bytes);
    for (std::size_t k = 1; k < parts.size(); ++k) {
        what_.type == ncclInt32 ? combine<std::int32_t>(total.data(), parts[k], bytes, what_.reduction)
                                : combine<std::int64_t>(total.data(), parts[k], bytes, what_.reduction);
    }
    std::copy(total.begin(), total.end(), own_.to + begin_of(kept_));
    ++kept_;
    for (auto& i : in_) {
        ++i.chunks;
        all.between(i.from, all.rank()).taken.fetch_add(1, std::memory_order_release);
    }
    return true;
}

bool operation::keep()
{
    if (own_.to == nullptr || kept_ == chunks()) {
        return false;
    }
    std::memmove(own_.to, own_.from, what_.bytes);
    kept_ = chunks();
    return true;
}

bool operation::advance(room const& all, bool eager)
{
    for (bool moves = true; moves;) {
        moves = is_combined_ ? combine_next(all) : keep();
        for (auto& o : out_) {
            moves |= put_next(o, all);
        }
        for (auto& i : in_) {
            moves |= !is_combined_ && take_next(i, all);
        }
    }
    auto const is_taken = [&](outgoing const& o) {
        auto const& c = all.between(all.rank(), o.to);
        bool const is_on_its_way = eager && what_.what == kind::message;
        return o.chunks == chunks() && (is_on_its_way || c.taken.load(std::memory_order_acquire) == c.put.load(std::memory_order_relaxed));
    };
    auto const is_in = [&](incoming const& i) { return i.chunks == chunks(); };
    return (own_.to == nullptr || kept_ == chunks()) && std::all_of(out_.begin(), out_.end(), is_taken) && std::all_of(in_.begin(), in_.end(), is_in);
}

void operation::poison_from(std::byte* data, std::uint64_t chunk) const
{
    if (data != nullptr) {
        std::fill(data + begin_of(chunk), data + what_.bytes, std::byte{0xff});
    }
}

void operation::poison()
{
    poison_from(own_.to, kept_);
    for (auto const& i : in_) {
        poison_from(i.data, i.chunks);
    }
}

bool operation::shares_channel(operation const& other) const
{
    auto const meet = [](auto const& mine, auto const& theirs, auto peer) {
        return std::any_of(mine.begin(), mine.end(),
                           [&](auto const& a) { return std::any_of(theirs.begin(), theirs.end(), [&](auto const& b) { return a.*peer == b.*peer; }); });
    };
    return meet(out_, other.out_, &outgoing::to) || meet(in_, other.in_, &incoming::from);
}

bool operations::advance(room const& all, bool eager)
{
    bool is_all = true;
    for (auto one = all_.begin(); one != all_.end(); ++one) {
        bool const waits = std::any_of(all_.begin(), one, [&](member const& earlier) { return !earlier.is_done && earlier.what.shares_channel(one->what); });
        one->is_done = one->is_done || (!waits && one->what.advance(all, eager));
        is_all = is_all && one->is_done;
    }
    return is_all;
}

void operations::poison()
{
    for (auto& one : all_) {
        if (!one.is_done) {
            one.what.poison();
        }
    }
}

std::uint64_t operations::bytes() const
{
    std::uint64_t sum = 0;
    for (auto const& one : all_) {
        sum += one.what.what().bytes;
    }
    return sum;
}

}  // namespace standin
