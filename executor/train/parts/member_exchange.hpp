#pragma once
// SPDX-License-Identifier: Apache-2.0

// The exchange of a stage's group by messages of the generation.

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "executor/stage/group_exchange.hpp"

namespace rheo::inline v0 {

class member_exchange final : public group_exchange {
public:
    /// @param group the ranks of the group, this one among them  @param begins called before each exchange @pre `messages` outlives it
    member_exchange(
        std::vector<rank_id> const& group, mpi::messenger& messages, std::function<void(exchange_kind)> begins = [](exchange_kind) {})
        : group_{&group}, messages_{&messages}, begins_{std::move(begins)}
    {
    }

    /// @throws mpi::peer_lost
    void exchange(exchange_kind kind, std::span<outgoing const> out, std::span<incoming const> in) override
    {
        begins_(kind);
        std::vector<mpi::messenger::ticket> tickets;
        auto const rank = [&](int member) { return (*group_)[static_cast<std::size_t>(member)]; };
        for (auto const& one : in) {
            if (!one.data.empty()) {
                tickets.push_back(messages_->receive(rank(one.member), mpi::channel::shards, 0, one.data));
            }
        }
        for (auto const& one : out) {
            if (!one.data.empty()) {
                tickets.push_back(messages_->send(rank(one.member), mpi::channel::shards, 0, one.data));
            }
        }
        for (auto const ticket : tickets) {
            messages_->wait(ticket);
        }
    }

private:
    std::vector<rank_id> const* group_;
    mpi::messenger* messages_;
    std::function<void(exchange_kind)> begins_;
};

}  // namespace rheo::inline v0
