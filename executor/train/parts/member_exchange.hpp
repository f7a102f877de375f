#pragma once
// SPDX-License-Identifier: Apache-2.0

// The exchange of a stage's group by the transport of a section; what the processor addresses goes by messages of MPI.

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "executor/stage/group_exchange.hpp"
#include "executor/transport/transport.hpp"

namespace rheo::inline v0 {

class member_exchange final : public group_exchange {
public:
    /// @param group the ranks of the group, this one among them  @param by_mpi of the generation of `messages`  @param begins called before each exchange
    /// @pre all but `begins` outlive it
    member_exchange(
        std::vector<rank_id> const& group, mpi::messenger& messages, transport& by_mpi, transport& by,
        std::function<void(exchange_kind)> begins = [](exchange_kind) {})
        : group_{&group}, messages_{&messages}, by_mpi_{&by_mpi}, by_{&by}, begins_{std::move(begins)}
    {
    }

    bool is_direct() const override { return by_->is_direct(); }

    /// @throws mpi::peer_lost
    void exchange(exchange_kind kind, std::span<outgoing const> out, std::span<incoming const> in) override { exchange_by(*by_mpi_, kind, out, in); }
    void exchange_directly(exchange_kind kind, std::span<outgoing const> out, std::span<incoming const> in) override { exchange_by(*by_, kind, out, in); }

private:
    void exchange_by(transport& by, exchange_kind kind, std::span<outgoing const> out, std::span<incoming const> in)
    {
        begins_(kind);
        auto const rank = [&](int member) { return (*group_)[static_cast<std::size_t>(member)]; };
        std::vector<transport::outgoing> sent;
        for (auto const& one : out) {
            sent.push_back({rank(one.to), one.data});
        }
        std::vector<transport::incoming> received;
        for (auto const& one : in) {
            received.push_back({rank(one.from), one.data});
        }
        for (auto const ticket : by.exchange(mpi::channel::shards, *group_, sent, received)) {
            messages_->wait_until([&] { return by.done(ticket); });
        }
    }

    std::vector<rank_id> const* group_;
    mpi::messenger* messages_;
    transport* by_mpi_;
    transport* by_;
    std::function<void(exchange_kind)> begins_;
};

}  // namespace rheo::inline v0
