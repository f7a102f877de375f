// SPDX-License-Identifier: Apache-2.0
#include "runtime/collectives.hpp"

#include <algorithm>
#include <cstddef>

namespace rheo::inline v0 {

namespace {

enum item : int { maxima_up, sums_up, maxima_down, sums_down, size_up, words_up, size_down, words_down };

/// Where a member stands in the binomial tree of all members.
struct tree {
    explicit tree(mpi::messenger const& messages)
    {
        auto const& members = messages.members().members;
        auto const me = messages.members().position_of(messages.members().me);
        auto const count = static_cast<int>(members.size());
        for (int bit = 1; bit < count; bit *= 2) {
            if ((me & bit) != 0) {
                parent = members[static_cast<std::size_t>(me - bit)];
                is_root = false;
                break;
            }
            if (me + bit < count) {
                children.push_back(members[static_cast<std::size_t>(me + bit)]);
            }
        }
    }

    bool is_root = true;
    rank_id parent{};
    std::vector<rank_id> children;  // nearest first
};

template <class T>
void send(mpi::messenger& messages, rank_id to, item what, std::vector<T> const& data)
{
    messages.wait(messages.send(to, mpi::channel::scalars, what, std::span<T const>{data}));
}

template <class T>
void receive(mpi::messenger& messages, rank_id from, item what, std::vector<T>& data)
{
    messages.wait(messages.receive(from, mpi::channel::scalars, what, std::span<T>{data}));
}

/// A vector whose length the receiver does not know.
void send_words(mpi::messenger& messages, rank_id to, item size, item words, std::vector<std::int64_t> const& data)
{
    send(messages, to, size, std::vector<std::int64_t>{static_cast<std::int64_t>(data.size())});
    if (!data.empty()) {
        send(messages, to, words, data);
    }
}

std::vector<std::int64_t> receive_words(mpi::messenger& messages, rank_id from, item size, item words)
{
    std::vector<std::int64_t> length(1);
    receive(messages, from, size, length);
    std::vector<std::int64_t> data(static_cast<std::size_t>(length[0]));
    if (!data.empty()) {
        receive(messages, from, words, data);
    }
    return data;
}

void pass_down(mpi::messenger& messages, tree const& where, std::vector<std::int64_t>& data)
{
    if (!where.is_root) {
        data = receive_words(messages, where.parent, size_down, words_down);
    }
    for (auto child = where.children.rbegin(); child != where.children.rend(); ++child) {
        send_words(messages, *child, size_down, words_down, data);
    }
}

}  // namespace

void all_reduce(mpi::messenger& messages, step_scalars& scalars)
{
    tree const where{messages};
    step_scalars part{scalars};
    for (auto const child : where.children) {
        receive(messages, child, maxima_up, part.maxima);
        receive(messages, child, sums_up, part.sums);
        for (std::size_t i = 0; i < part.maxima.size(); ++i) {
            scalars.maxima[i] = std::max(scalars.maxima[i], part.maxima[i]);
        }
        for (std::size_t i = 0; i < part.sums.size(); ++i) {
            scalars.sums[i] += part.sums[i];
        }
    }
    if (!where.is_root) {
        send(messages, where.parent, maxima_up, scalars.maxima);
        send(messages, where.parent, sums_up, scalars.sums);
        receive(messages, where.parent, maxima_down, scalars.maxima);
        receive(messages, where.parent, sums_down, scalars.sums);
    }
    for (auto child = where.children.rbegin(); child != where.children.rend(); ++child) {
        send(messages, *child, maxima_down, scalars.maxima);
        send(messages, *child, sums_down, scalars.sums);
    }
}

std::vector<std::vector<std::int64_t>> all_gather(mpi::messenger& messages, std::span<std::int64_t const> mine)
{
    // Up the tree as a flat list of (position, length, words ...), down as a whole.
    tree const where{messages};
    auto const& generation = messages.members();
    std::vector<std::int64_t> all{generation.position_of(generation.me), static_cast<std::int64_t>(mine.size())};
    all.insert(all.end(), mine.begin(), mine.end());
    for (auto const child : where.children) {
        auto const part = receive_words(messages, child, size_up, words_up);
        all.insert(all.end(), part.begin(), part.end());
    }
    if (!where.is_root) {
        send_words(messages, where.parent, size_up, words_up, all);
    }
    pass_down(messages, where, all);
    std::vector<std::vector<std::int64_t>> result(generation.members.size());
    for (std::size_t i = 0; i < all.size();) {
        auto const position = static_cast<std::size_t>(all[i]);
        auto const length = all[i + 1];
        auto const first = all.begin() + static_cast<std::ptrdiff_t>(i) + 2;
        result[position].assign(first, first + length);
        i += 2 + static_cast<std::size_t>(length);
    }
    return result;
}

void broadcast(mpi::messenger& messages, std::vector<std::int64_t>& words)
{
    pass_down(messages, tree{messages}, words);
}

}  // namespace rheo::inline v0
