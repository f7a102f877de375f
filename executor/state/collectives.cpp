// SPDX-License-Identifier: Apache-2.0
#include "executor/state/collectives.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace rheo::inline v0 {

namespace {

enum item : int { reduced_up, reduced_down, words_up, more_words_up, words_down, more_words_down };

/// Where a member stands in the binomial tree of all members.
struct tree {
    explicit tree(mpi::messenger const& messages)
    {
        auto const& members = messages.members().members;
        auto const self = messages.members().position_of(messages.members().self);
        auto const count = static_cast<int>(members.size());
        for (int bit = 1; bit < count; bit *= 2) {
            if ((self & bit) != 0) {
                parent = members[static_cast<std::size_t>(self - bit)];
                is_root = false;
                break;
            }
            if (self + bit < count) {
                children.push_back(members[static_cast<std::size_t>(self + bit)]);
            }
        }
    }

    bool is_root = true;
    rank_id parent{};
    std::vector<rank_id> children;  // nearest first
};

using words = std::vector<std::int64_t>;

/// Words whose number the receiver does not know: a message of at most so many says it and holds the first ones. Small enough for
/// any MPI to send at once.
constexpr std::size_t first_words = 128;

words first_message(words const& data)
{
    words first{static_cast<std::int64_t>(data.size())};
    first.insert(first.end(), data.begin(), data.begin() + static_cast<std::ptrdiff_t>(std::min(data.size(), first_words - 1)));
    return first;
}

/// Sends the same to all of them, to the last one first.
void send_words(mpi::messenger& messages, std::span<rank_id const> to, item head, item more, words const& data)
{
    auto const first = first_message(data);
    std::vector<mpi::messenger::ticket> sends;
    for (auto one = to.rbegin(); one != to.rend(); ++one) {
        sends.push_back(messages.send(*one, mpi::channel::scalars, head, std::span{first}));
        if (data.size() >= first_words) {
            sends.push_back(messages.send(*one, mpi::channel::scalars, more, std::span{data}.subspan(first_words - 1)));
        }
    }
    for (auto const ticket : sends) {
        messages.wait(ticket);
    }
}

words receive_words(mpi::messenger& messages, rank_id from, item head, item more)
{
    words first(first_words);
    messages.wait(messages.receive(from, mpi::channel::scalars, head, std::span{first}));
    words data(static_cast<std::size_t>(first.front()));
    auto const here = std::min(data.size(), first_words - 1);
    std::copy_n(first.begin() + 1, here, data.begin());
    if (here < data.size()) {
        messages.wait(messages.receive(from, mpi::channel::scalars, more, std::span{data}.subspan(here)));
    }
    return data;
}

void pass_down(mpi::messenger& messages, tree const& where, words& data)
{
    if (!where.is_root) {
        data = receive_words(messages, where.parent, words_down, more_words_down);
    }
    send_words(messages, where.children, words_down, more_words_down, data);
}

}  // namespace

void all_reduce(mpi::messenger& messages, step_scalars& scalars)
{
    // Both kinds in one message: maxima by their bits, then sums.
    tree const where{messages};
    auto const maxima = scalars.maxima.size();
    words all(maxima + scalars.sums.size());
    std::transform(scalars.maxima.begin(), scalars.maxima.end(), all.begin(), [](double value) { return std::bit_cast<std::int64_t>(value); });
    std::copy(scalars.sums.begin(), scalars.sums.end(), all.begin() + static_cast<std::ptrdiff_t>(maxima));
    words part(all.size());
    for (auto const child : where.children) {
        messages.wait(messages.receive(child, mpi::channel::scalars, reduced_up, std::span{part}));
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i] = i >= maxima ? all[i] + part[i] : std::bit_cast<double>(part[i]) > std::bit_cast<double>(all[i]) ? part[i] : all[i];
        }
    }
    if (!where.is_root) {
        messages.wait(messages.send(where.parent, mpi::channel::scalars, reduced_up, std::span<std::int64_t const>{all}));
        messages.wait(messages.receive(where.parent, mpi::channel::scalars, reduced_down, std::span{all}));
    }
    std::vector<mpi::messenger::ticket> sends;
    for (auto child = where.children.rbegin(); child != where.children.rend(); ++child) {
        sends.push_back(messages.send(*child, mpi::channel::scalars, reduced_down, std::span<std::int64_t const>{all}));
    }
    for (auto const ticket : sends) {
        messages.wait(ticket);
    }
    std::transform(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(maxima), scalars.maxima.begin(),
                   [](std::int64_t bits) { return std::bit_cast<double>(bits); });
    std::copy(all.begin() + static_cast<std::ptrdiff_t>(maxima), all.end(), scalars.sums.begin());
}

void wait_for_all(mpi::messenger& messages)
{
    step_scalars nothing;
    all_reduce(messages, nothing);
}

bool same_everywhere(mpi::messenger& messages, std::span<std::uint64_t const> numbers)
{
    step_scalars ends;  // of each half, the largest and the negative of the smallest
    for (auto const number : numbers) {
        for (auto const half : {number >> 32, number & 0xffffffffU}) {
            ends.maxima.push_back(static_cast<double>(half));
            ends.maxima.push_back(-static_cast<double>(half));
        }
    }
    all_reduce(messages, ends);
    bool same = true;
    for (std::size_t i = 0; i < ends.maxima.size(); i += 2) {
        same = same && ends.maxima[i] == -ends.maxima[i + 1];
    }
    return same;
}

std::vector<std::vector<std::int64_t>> all_gather(mpi::messenger& messages, std::span<std::int64_t const> mine)
{
    // Up the tree as a flat list of (position, length, words ...), down as a whole.
    tree const where{messages};
    auto const& generation = messages.members();
    std::vector<std::int64_t> all{generation.position_of(generation.self), static_cast<std::int64_t>(mine.size())};
    all.insert(all.end(), mine.begin(), mine.end());
    for (auto const child : where.children) {
        auto const part = receive_words(messages, child, words_up, more_words_up);
        all.insert(all.end(), part.begin(), part.end());
    }
    if (!where.is_root) {
        send_words(messages, {&where.parent, 1}, words_up, more_words_up, all);
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

std::vector<std::string> gather_texts(mpi::messenger& messages, std::string const& mine)
{
    std::vector<std::string> all;
    for (auto const& letters : all_gather(messages, std::vector<std::int64_t>(mine.begin(), mine.end()))) {
        all.emplace_back(letters.begin(), letters.end());
    }
    return all;
}

void broadcast(mpi::messenger& messages, std::vector<std::int64_t>& words) { pass_down(messages, tree{messages}, words); }

void broadcast(mpi::messenger& messages, std::string& text)
{
    std::vector<std::int64_t> size{std::ssize(text)};
    broadcast(messages, size);
    std::vector<std::int64_t> letters(text.begin(), text.end());
    letters.resize(static_cast<std::size_t>(size.front()));
    broadcast(messages, letters);
    text.assign(letters.begin(), letters.end());
}

}  // namespace rheo::inline v0
