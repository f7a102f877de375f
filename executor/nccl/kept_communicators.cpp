// SPDX-License-Identifier: Apache-2.0
#include "executor/nccl/kept_communicators.hpp"

#include <algorithm>
#include <utility>

#include "executor/nccl/error.hpp"

namespace rheo::inline v0::nccl {

namespace {

/// What a member says of a connection.
struct held {
    unique_id id{};
    std::uint64_t operations = 0;
    int room = 0;  ///< for blocks
    bool is_kept = false;

    bool is_that_of(held const& other) const
    {
        return is_kept && other.is_kept && operations == other.operations && std::ranges::equal(id.internal, other.id.internal);
    }
};

bool is_healthy(communicator const& one)
{
    try {
        return one.settled();
    } catch (error const&) {
        return false;
    }
}

}  // namespace

std::vector<connection_start> agree_on_starts(library const& calls, mpi::messenger& messages, std::vector<connection> const& all, std::vector<int> const& room,
                                              std::vector<quiet_communicator> kept)
{
    auto const self = messages.members().self;
    std::vector<connection_start> starts(all.size());
    std::vector<std::vector<held>> known(all.size());  // of each member; this rank first
    std::vector<mpi::messenger::ticket> tickets;
    auto const as_bytes = [](auto& value) { return std::span{reinterpret_cast<char*>(&value), sizeof value}; };
    auto const wait = [&] {
        for (auto const ticket : std::exchange(tickets, {})) {
            messages.wait(ticket);
        }
    };
    for (std::size_t c = 0; c < all.size(); ++c) {
        auto const& members = all[c].members;
        auto const found =
            std::find_if(kept.begin(), kept.end(), [&](auto const& one) { return one.about.kind == all[c].kind && one.about.members == members; });
        known[c].resize(members.size());
        auto& mine = known[c].front();
        mine.room = room[c];
        if (found != kept.end() && found->most_blocks <= room[c] && is_healthy(found->members)) {
            mine = {found->id, found->operations, room[c], true};
            starts[c] = {found->id, std::move(found->members), found->operations, found->most_blocks};
        }
        if (members.front() != self) {
            tickets.push_back(messages.send(members.front(), mpi::channel::control, 0, std::span<char const>{as_bytes(mine)}));
            continue;
        }
        for (std::size_t m = 1; m < members.size(); ++m) {
            tickets.push_back(messages.receive(members[m], mpi::channel::control, 0, as_bytes(known[c][m])));
        }
    }
    wait();
    struct named {
        unique_id id{};
        int most_blocks = 0;
    };
    std::vector<named> names(all.size());
    for (std::size_t c = 0; c < all.size(); ++c) {
        auto const& members = all[c].members;
        if (members.front() != self) {
            tickets.push_back(messages.receive(members.front(), mpi::channel::control, 0, as_bytes(names[c])));
            continue;
        }
        bool const stays = std::all_of(known[c].begin(), known[c].end(), [&](held const& one) { return one.is_that_of(known[c].front()); });
        auto const& least = *std::min_element(known[c].begin(), known[c].end(), [](held const& a, held const& b) { return a.room < b.room; });
        names[c] = stays ? named{starts[c].id, starts[c].most_blocks} : named{calls.new_id(), least.room};
        for (std::size_t m = 1; m < members.size(); ++m) {
            tickets.push_back(messages.send(members[m], mpi::channel::control, 0, std::span<char const>{as_bytes(names[c])}));
        }
    }
    wait();
    for (std::size_t c = 0; c < all.size(); ++c) {
        if (!std::ranges::equal(names[c].id.internal, starts[c].id.internal)) {
            starts[c] = {.id = names[c].id, .most_blocks = names[c].most_blocks};
        }
    }
    return starts;
}

}  // namespace rheo::inline v0::nccl
