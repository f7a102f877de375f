// SPDX-License-Identifier: Apache-2.0
#include "executor/state/messenger_transport.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace rheo::inline v0 {

namespace {

/// MPI keeps the messages between two ranks in order, so one item is enough.
constexpr int stream_item = 0;

}  // namespace

messenger_transport::~messenger_transport()
{
    // After a loss nothing is under way. After another error messages may still be, and then their buffers stay.
    if (under_way()) {
        new std::deque<array<std::byte>>{std::move(buffers_)};
    }
}

std::byte* messenger_transport::buffer(std::size_t slot, std::size_t bytes)
{
    while (buffers_.size() <= slot) {
        buffers_.emplace_back(memory_);
    }
    if (buffers_[slot].size() < bytes) {
        buffers_[slot].resize(bytes);
    }
    return buffers_[slot].data();
}

bool messenger_transport::under_way() const
{
    return std::any_of(tickets_.begin(), tickets_.end(), [](ticket const& t) { return t.has_value(); });
}

template <class Work>
auto messenger_transport::unless_lost(Work const& work)
{
    try {
        return work();
    } catch (mpi::peer_lost const&) {  // the messenger has completed everything
        tickets_.clear();
        throw;
    }
}

messenger_transport::ticket& messenger_transport::ticket_of(std::size_t slot)
{
    tickets_.resize(std::max(tickets_.size(), slot + 1));
    return tickets_[slot];
}

void messenger_transport::send(std::size_t slot, int peer, void const* data, std::size_t bytes)
{
    messages_.beat();
    std::span<std::byte const> const all{static_cast<std::byte const*>(data), bytes};
    auto const started = unless_lost([&] { return messages_.send(rank_id{peer}, mpi::channel::copy, stream_item, all); });
    ticket_of(slot) = started;
}

void messenger_transport::receive(std::size_t slot, int peer, void* data, std::size_t bytes)
{
    messages_.beat();
    std::span<std::byte> const all{static_cast<std::byte*>(data), bytes};
    auto const started = unless_lost([&] { return messages_.receive(rank_id{peer}, mpi::channel::copy, stream_item, all); });
    ticket_of(slot) = started;
}

bool messenger_transport::look()
{
    under_way_.clear();
    slots_.clear();
    for (std::size_t slot = 0; slot < tickets_.size(); ++slot) {
        if (tickets_[slot]) {
            under_way_.push_back(*tickets_[slot]);
            slots_.push_back(slot);
        }
    }
    for (auto const place : messages_.done_among(under_way_)) {
        tickets_[slots_[place]].reset();
        ended_.push_back(slots_[place]);
    }
    return !ended_.empty();
}

std::vector<std::size_t> const& messenger_transport::ended(bool wait)
{
    ended_.clear();
    if (!wait) {
        unless_lost([&] { return look(); });
    } else if (under_way()) {
        unless_lost([&] { messages_.wait_until([&] { return look(); }); });
    }
    return ended_;
}

}  // namespace rheo::inline v0
