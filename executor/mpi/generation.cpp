// SPDX-License-Identifier: Apache-2.0
#include "executor/mpi/generation.hpp"

#include <utility>

#include <range/v3/algorithm/contains.hpp>

#include <range/v3/algorithm/count_if.hpp>

#include <range/v3/view/enumerate.hpp>

#include <range/v3/view/zip.hpp>

#include "executor/mpi/polling.hpp"
#include "executor/mpi/survivors.hpp"

namespace rheo::inline v0::mpi {

namespace {

/// Who lives as far as this rank knows: position -> lives. Those that depart do not, even while they still run.
std::vector<bool> known_alive(communicator const& comm, std::vector<rank_id> const& initial_ranks, std::vector<rank_id> const& departed)
{
    std::vector<bool> lives(static_cast<std::size_t>(comm.size()), true);
    for (auto const& [position, rank] : ranges::views::enumerate(initial_ranks)) {
        lives[position] = !ranges::contains(departed, rank);
    }
    for (auto const position : get_failed(comm)) {
        lives[static_cast<std::size_t>(position)] = false;
    }
    return lives;
}

}  // namespace

generation first_generation(MPI_Comm caller, generation_id id, int pairs)
{
    generation first;
    first.id = id;
    first.spare_comms = communicator_pool{caller, pairs};
    first.comms = first.spare_comms.take();
    first.members = first.comms.initial_ranks;
    first.self = rank_id{first.recovery().rank()};
    return first;
}

generation next_generation(generation last, std::vector<rank_id> const& departed)
{
    generation next;
    next.id = generation_id{last.id.value + 1};
    next.self = last.self;
    next.spare_comms = std::move(last.spare_comms);
    next.comms = next.spare_comms.take();
    // No rank has acknowledged the losses yet, so only the bits of these agreements have a meaning.
    auto const lives =
        agree_on_survivors(known_alive(next.recovery(), next.comms.initial_ranks, departed), [&](int bits) { return agree(next.recovery(), bits).bits; });
    for (auto const& [rank, is_alive] : ranges::views::zip(next.comms.initial_ranks, lives)) {
        if (is_alive) {
            next.members.push_back(rank);
        }
    }
    if (!next.has(next.self)) {
        throw excluded_from_job{"the other ranks count this one as lost and continue without it"};
    }
    // Those that were agreed on as lost are acknowledged, once this rank, too, has heard of each of them.
    auto const lost = lives.size() - next.members.size();
    for (polling pace;; pace.pause()) {
        auto const failed = get_failed(next.recovery());
        auto const known = ranges::count_if(failed, [&](int position) { return !lives[static_cast<std::size_t>(position)]; });
        if (static_cast<std::size_t>(known) == lost) {
            ack_failed(next.recovery(), failed);  // one more may be among them: then there are more losses than the members say, and the generation is broken
            return next;
        }
        make_progress(next.recovery());
    }
}

end_of_members end_of_generation(generation last, bool voted, int vote)
{
    last.revoke();
    if (!voted) {
        agree(last.recovery(), vote);
    }
    auto const pair = last.spare_comms.take();
    auto const lives =
        agree_on_survivors(known_alive(pair.recovery, pair.initial_ranks, {last.self}), [&](int bits) { return agree(pair.recovery, bits).bits; });
    auto const failed = get_failed(pair.recovery);
    int lowest = 0;
    while (std::find(failed.begin(), failed.end(), lowest) != failed.end()) {
        ++lowest;
    }
    return {std::none_of(lives.begin(), lives.end(), [](bool one) { return one; }), lowest == pair.recovery.rank()};
}

communicator survivors_of(generation last) { return last.members == last.comms.initial_ranks ? std::move(last.comms.data) : shrink(last.data()); }

}  // namespace rheo::inline v0::mpi
