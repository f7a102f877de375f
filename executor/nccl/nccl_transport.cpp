// SPDX-License-Identifier: Apache-2.0
#include "executor/nccl/nccl_transport.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "executor/nccl/error.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::nccl {

namespace {

using clock = std::chrono::steady_clock;

constexpr transport::ticket nothing = static_cast<transport::ticket>(-1);  // a message of no bytes

constexpr std::int32_t word_of_message = 0x5248454f;  // what messages carry first

/// What a connection proves itself with: a word that goes out, what a link or a sum makes of it, and a word of each member.
std::size_t words_of(connection const& one) { return 2 + (one.exchanges ? one.members.size() : 0); }

std::size_t words_of(std::vector<connection> const& all)
{
    return std::accumulate(all.begin(), all.end(), std::size_t{0}, [](std::size_t sum, connection const& one) { return sum + words_of(one); });
}

/// For blocks of each.
std::vector<int> room_for(std::vector<connection> const& all, int multiprocessors)
{
    auto const groups = static_cast<int>(std::count_if(all.begin(), all.end(), [](connection const& one) { return one.is_group(); }));
    auto const shares = shares_of(static_cast<int>(all.size()) - groups, groups, multiprocessors);
    if (!shares) {
        throw error{success, fmt::format("the plan connects this rank {} times, and its share of the device is {} multiprocessors: a connection needs one",
                                         all.size(), multiprocessors)};
    }
    std::vector<int> room;
    std::transform(all.begin(), all.end(), std::back_inserter(room), [&](connection const& one) { return one.is_group() ? shares->group : shares->link; });
    return room;
}

}  // namespace

int most_connections()
{
    char const* const given = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    return std::max(0, (given == nullptr ? 8 : std::atoi(given)) - 2);
}

nccl_transport::nccl_transport(std::shared_ptr<library const> calls, compute_backend& backend, mpi::messenger& messages, std::vector<connection> all,
                               std::vector<quiet_communicator> kept, int multiprocessors)
    : calls_{std::move(calls)}, backend_{&backend}, messages_{&messages}, words_{backend.own(), words_of(all)}
{
    expects(std::is_sorted(all.begin(), all.end()), "connections are in the order that all ranks have");
    auto starts = agree_on_starts(*calls_, messages, all, room_for(all, multiprocessors), std::move(kept));
    for (std::size_t c = 0; c < all.size(); ++c) {
        channels_.push_back({.about = std::move(all[c]),
                             .id = starts[c].id,
                             .members = std::move(starts[c].kept),
                             .operations = starts[c].operations,
                             .most_blocks = starts[c].most_blocks,
                             .stream = backend.make_stream()});
    }
}

bool nccl_transport::come_up(seconds patience)
{
    while (up_ < channels_.size()) {
        auto& next = channels_[up_];
        auto const& about = next.about;
        if (!next.members) {
            since_ = clock::now();
            next.members.emplace(calls_, next.id, static_cast<int>(about.members.size()), about.position_of(self()), next.most_blocks);
        }
        if (!next.members->settled()) {
            if (seconds const waited{std::chrono::duration<double>(clock::now() - *since_).count()}; patience.count > 0 && waited > patience) {
                throw error{success, fmt::format("NCCL's communicator of {} has not come up within {:.0f} s", text_of(about), patience.count)};
            }
            return false;
        }
        ++up_;
    }
    return true;
}

void nccl_transport::prove()
{
    std::vector<std::int32_t> words;
    for (auto const& one : channels_) {
        words.push_back(one.about.is_group() ? 1 : word_of_message);
        words.resize(words.size() + words_of(one.about) - 1);
    }
    backend_->copy(words_.data(), words.data(), words.size() * sizeof(std::int32_t));
    backend_->wait();
    std::vector<ticket> operations;
    auto* own = words_.data();
    for (std::size_t c = 0; c < channels_.size(); own += words_of(channels_[c++].about)) {
        auto const& about = channels_[c].about;
        operations.push_back(about.is_group()                  ? begin(c, {.kind = operation_kind::sum_of_32, .from = own, .to = own + 1, .count = 1})
                             : about.members.front() == self() ? begin(c, {.kind = operation_kind::send, .from = own, .count = sizeof *own})
                                                               : begin(c, {.kind = operation_kind::receive, .to = own + 1, .count = sizeof *own}));
        std::vector<outgoing> out;
        std::vector<incoming> in;
        for (std::size_t m = 0; about.exchanges && m < about.members.size(); ++m) {
            if (about.members[m] != self()) {
                out.push_back({about.members[m], std::as_bytes(std::span{own, 1})});
                in.push_back({about.members[m], std::as_writable_bytes(std::span{own + 2 + m, 1})});
            }
        }
        operations.push_back(begin_exchange(c, out, in));
    }
    for (auto const begun : operations) {
        messages_->wait_until([&] { return done(begun); });
    }
    auto const arrived = copied_from(*backend_, words_.data(), words_.size());
    auto const* word = arrived.data();
    for (auto const& one : channels_) {
        auto const& about = one.about;
        auto const check = [&](std::int32_t carried, std::int32_t expected) {
            if (carried != expected) {
                failure_ = fmt::format("NCCL's communicator of {} carries {} in place of {}", text_of(about), carried, expected);
                messages_->lose();
            }
        };
        check(word[1], about.is_group() ? static_cast<std::int32_t>(about.members.size()) : about.members.front() == self() ? 0 : word_of_message);
        for (std::size_t m = 0; about.exchanges && m < about.members.size(); ++m) {
            check(word[2 + m], about.members[m] == self() ? 0 : 1);
        }
        word += words_of(about);
    }
}

std::size_t nccl_transport::place_of(connection const& link) const
{
    auto const found = std::lower_bound(channels_.begin(), channels_.end(), link, [](channel const& a, connection const& b) { return a.about < b; });
    expects(found != channels_.end() && found->about == link, "ranks exchange what the plan connects");
    return static_cast<std::size_t>(found - channels_.begin());
}

std::size_t nccl_transport::group_of(reduction_id which) const
{
    auto const found = std::find_if(channels_.begin(), channels_.end(),
                                    [&](channel const& one) { return std::find(one.about.sums.begin(), one.about.sums.end(), which) != one.about.sums.end(); });
    expects(found != channels_.end(), "ranks sum what the plan has them hold together");
    return static_cast<std::size_t>(found - channels_.begin());
}

std::size_t nccl_transport::group_of(mpi::channel kind, std::span<rank_id const> members) const
{
    auto const of_stage = kind == mpi::channel::shards;
    auto const found = std::find_if(channels_.begin(), channels_.end(), [&](channel const& one) {
        return one.about.exchanges && (one.about.kind == mpi::channel::shards) == of_stage && std::ranges::equal(one.about.members, members);
    });
    expects(found != channels_.end(), "ranks exchange what the plan has them exchange");
    return static_cast<std::size_t>(found - channels_.begin());
}

transport::ticket nccl_transport::send(rank_id to, mpi::channel kind, int, std::span<std::byte const> data)
{
    return begin(place_of(link(self(), to, kind)), {.kind = operation_kind::send, .from = data.data(), .count = data.size()});
}

transport::ticket nccl_transport::receive(rank_id from, mpi::channel kind, int, std::span<std::byte> data)
{
    return begin(place_of(link(from, self(), kind)), {.kind = operation_kind::receive, .to = data.data(), .count = data.size()});
}

std::vector<transport::ticket> nccl_transport::exchange(mpi::channel kind, std::span<rank_id const> group, std::span<outgoing const> out,
                                                        std::span<incoming const> in)
{
    return {begin_exchange(group_of(kind, group), out, in)};
}

transport::ticket nccl_transport::begin_exchange(std::size_t at, std::span<outgoing const> out, std::span<incoming const> in)
{
    auto const& about = channels_[at].about;
    operation what{.kind = operation_kind::exchange};
    for (auto const& one : out) {
        if (!one.data.empty()) {
            what.out.push_back({about.position_of(one.to), one.data});
        }
    }
    for (auto const& one : in) {
        if (!one.data.empty()) {
            what.in.push_back({about.position_of(one.from), one.data});
        }
    }
    what.count = what.out.size() + what.in.size();
    return begin(at, std::move(what));
}

transport::ticket nccl_transport::sum(reduction_id which, std::span<std::int32_t const> mine, std::int32_t* total, bool is_last)
{
    return begin(group_of(which),
                 {.kind = operation_kind::sum_of_32, .from = mine.data(), .to = total, .count = mine.size(), .sums = which, .is_last = is_last});
}

transport::ticket nccl_transport::sum(reduction_id which, std::span<std::int64_t const> mine, std::int64_t* total, bool is_last)
{
    return begin(group_of(which),
                 {.kind = operation_kind::sum_of_64, .from = mine.data(), .to = total, .count = mine.size(), .sums = which, .is_last = is_last});
}

transport::ticket nccl_transport::begin(std::size_t at, operation what)
{
    if (what.count == 0) {
        return nothing;
    }
    auto which = operations_.size();
    if (free_.empty()) {
        operations_.emplace_back();
    } else {
        which = free_.back();
        free_.pop_back();
    }
    what.at = at;
    operations_[which] = std::move(what);
    channels_[at].waiting.push_back(which);
    advance(channels_[at]);
    return which;
}

void nccl_transport::put(channel& at, operation const& what)
{
    auto const& members = *at.members;
    auto const where = at.stream->in_order();
    switch (what.kind) {
    case operation_kind::send: return members.send({static_cast<std::byte const*>(what.from), what.count}, 1, where);
    case operation_kind::receive: return members.receive({static_cast<std::byte*>(what.to), what.count}, 0, where);
    case operation_kind::exchange: return members.exchange(what.out, what.in, where);
    case operation_kind::sum_of_32:
        return members.sum(std::span{static_cast<std::int32_t const*>(what.from), what.count}, static_cast<std::int32_t*>(what.to), where);
    case operation_kind::sum_of_64:
        return members.sum(std::span{static_cast<std::int64_t const*>(what.from), what.count}, static_cast<std::int64_t*>(what.to), where);
    }
}

/// What goes into the stream next, if it is there: messages in their order, the parts of reductions in theirs.
std::optional<transport::ticket> nccl_transport::next_of(channel& at, std::vector<operation> const& all)
{
    auto const found = std::find_if(at.waiting.begin(), at.waiting.end(), [&](ticket which) {
        return at.about.sums.empty() || all[which].sums.value < 0 || all[which].sums == at.about.sums[at.turn];
    });
    if (found == at.waiting.end()) {
        return std::nullopt;
    }
    auto const next = *found;
    at.waiting.erase(found);
    if (all[next].is_last) {
        at.turn = (at.turn + 1) % at.about.sums.size();
    }
    return next;
}

/// Operations go into the stream one by one, as NCCL has done with the call before.
void nccl_transport::advance(channel& at)
{
    try {
        for (;;) {
            if (!at.settling) {
                at.settling = next_of(at, operations_);
                if (!at.settling) {
                    return;
                }
                put(at, operations_[*at.settling]);
                ++at.operations;
            }
            if (!at.members->settled()) {
                return;
            }
            at.last = at.stream->mark();
            operations_[*std::exchange(at.settling, std::nullopt)].mark = at.last;
        }
    } catch (error const& e) {
        failure_ = fmt::format("{}: {}", text_of(at.about), e.what());
        messages_->lose();
    }
}

bool nccl_transport::done(ticket which)
{
    if (which == nothing) {
        return true;
    }
    auto& one = operations_[which];
    auto& at = channels_[one.at];
    std::for_each(channels_.begin(), channels_.end(), [this](channel& each) { advance(each); });  // others may wait for what is not in a stream yet
    bool const ended = one.mark && at.stream->passed(*one.mark);
    try {
        at.members->settled();  // it is healthy: what has ended has ended whole
    } catch (error const& e) {
        failure_ = fmt::format("{}: {}", text_of(at.about), e.what());
        messages_->lose();
    }
    if (ended) {
        free_.push_back(which);
    }
    return ended;
}

/// As far as this rank sees.
bool nccl_transport::is_quiet(channel& at)
{
    try {
        return at.members && at.waiting.empty() && !at.settling && at.members->settled() && at.stream->passed(at.last);
    } catch (std::exception const&) {
        return false;
    }
}

std::vector<quiet_communicator> nccl_transport::take_quiet()
{
    std::vector<quiet_communicator> quiet;
    for (auto& one : channels_) {
        if (is_quiet(one)) {
            quiet.push_back({one.about, one.id, one.operations, one.most_blocks, *std::exchange(one.members, {})});
        }
    }
    abandon();
    return quiet;
}

void nccl_transport::abandon() noexcept
{
    for (auto& one : channels_) {
        if (!is_quiet(one)) {
            one.members.reset();
        }
        one.waiting.clear();
        one.settling.reset();
        one.turn = 0;
    }
    for (auto& one : channels_) {
        try {
            for (auto const last = one.stream->mark(); !one.stream->passed(last);) {
                std::this_thread::yield();
            }
        } catch (std::exception const&) {  // the device itself has failed: nothing runs there any more
        }
    }
    operations_.clear();
    free_.clear();
}

}  // namespace rheo::inline v0::nccl
