// SPDX-License-Identifier: Apache-2.0
// Which communicators three ranks of a job go on with in another plan, on the stand-in: those that all members have kept, at the same point.
#include "executor/nccl/kept_communicators.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "support/catch.hpp"
#include "support/mpi_ranks.hpp"

using namespace rheo;

namespace {

constexpr rank_id ranks[]{rank_id{0}, rank_id{1}, rank_id{2}};

nccl::connection const first_link = nccl::link(ranks[0], ranks[1], mpi::channel::activation);
nccl::connection const second_link = nccl::link(ranks[1], ranks[2], mpi::channel::activation);
nccl::connection const all_three = nccl::holders_of({reduction_id{0}}, {ranks[0], ranks[1], ranks[2]}, false);
nccl::connection const outer_two = nccl::members_of_stage({ranks[0], ranks[2]});

bool are_alike(nccl::unique_id const& a, nccl::unique_id const& b) { return std::ranges::equal(a.internal, b.internal); }

struct job_of_three {
    mpi_ranks ranks_of_job;
    std::shared_ptr<nccl::library const> calls = std::make_shared<nccl::library const>(RHEO_STANDIN_NCCL);

    int room = 8 - self().value;  ///< on each rank another

    rank_id self() const { return ranks_of_job.self(); }
    std::vector<nccl::connection> mine(std::vector<nccl::connection> const& all) const
    {
        std::vector<nccl::connection> here;
        std::copy_if(all.begin(), all.end(), std::back_inserter(here),
                     [&](auto const& one) { return std::ranges::find(one.members, self()) != one.members.end(); });
        return here;
    }
    std::vector<nccl::connection_start> agree(std::vector<nccl::connection> const& all, std::vector<nccl::quiet_communicator> kept)
    {
        auto const here = mine(all);
        return nccl::agree_on_starts(*calls, ranks_of_job.messages, here, std::vector<int>(here.size(), room), std::move(kept));
    }
    /// Communicators that are up, each after so many operations.
    std::vector<nccl::quiet_communicator> up(std::vector<nccl::connection> const& all, std::uint64_t operations)
    {
        auto starts = agree(all, {});
        std::vector<nccl::quiet_communicator> quiet;
        for (std::size_t c = 0; c < starts.size(); ++c) {
            auto const about = mine(all)[c];
            nccl::communicator made{calls, starts[c].id, static_cast<int>(about.members.size()), about.position_of(self())};
            while (!made.settled()) {
            }
            quiet.push_back({about, starts[c].id, operations, starts[c].most_blocks, std::move(made)});
        }
        return quiet;
    }
    /// How many ranks say so; all of them know.
    int count(bool says)
    {
        int sum = says ? 1 : 0;
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        return sum;
    }
};

std::vector<nccl::unique_id> ids_of(std::vector<nccl::quiet_communicator> const& quiet)
{
    std::vector<nccl::unique_id> ids;
    std::transform(quiet.begin(), quiet.end(), std::back_inserter(ids), [](auto const& one) { return one.id; });
    return ids;
}

}  // namespace

TEST_CASE("kept_communicators: a new one has one name on all members")
{
    job_of_three job;
    std::vector const all{first_link, second_link, all_three, outer_two};
    auto const mine = job.mine(all);
    auto const starts = job.agree(all, {});
    for (std::size_t c = 0; c < starts.size(); ++c) {
        CHECK_FALSE(starts[c].kept);
        CHECK(starts[c].operations == 0);
        CHECK(starts[c].most_blocks == 8 - mine[c].members.back().value);  // of the least room
        auto id = starts[c].id;
        if (mine[c] == all_three) {
            MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
        }
        CHECK(are_alike(id, starts[c].id));
    }
}

TEST_CASE("kept_communicators: quiet ones go on in another plan")
{
    job_of_three job;
    auto kept = job.up({first_link, second_link, all_three}, 7);
    auto const ids = ids_of(kept);
    auto const starts = job.agree({first_link, second_link, all_three}, std::move(kept));
    REQUIRE(starts.size() == ids.size());
    for (std::size_t c = 0; c < starts.size(); ++c) {
        CHECK(starts[c].kept);
        CHECK(are_alike(starts[c].id, ids[c]));
        CHECK(starts[c].operations == 7);
        CHECK(starts[c].most_blocks == 8 - job.mine({first_link, second_link, all_three})[c].members.back().value);
    }
}

TEST_CASE("kept_communicators: the other members decide, too")
{
    enum class fault { gone, other_operations, other_name, no_room };
    for (auto const wrong : {fault::gone, fault::other_operations, fault::other_name, fault::no_room}) {
        for (auto const by : ranks) {
            CAPTURE(static_cast<int>(wrong), by.value);
            job_of_three job;
            auto kept = job.up({all_three}, 7);
            auto const id = kept.front().id;
            if (job.self() == by) {
                switch (wrong) {
                case fault::gone: kept.clear(); break;
                case fault::other_operations: ++kept.front().operations; break;
                case fault::other_name: kept.front().id = job.calls->new_id(); break;
                case fault::no_room: job.room = 5; break;
                }
            }
            auto const starts = job.agree({all_three}, std::move(kept));
            CHECK_FALSE(starts.front().kept);
            CHECK_FALSE(are_alike(starts.front().id, id));
            CHECK(starts.front().operations == 0);
        }
    }
}

TEST_CASE("kept_communicators: only those of a plan's connections stay")
{
    job_of_three job;
    auto kept = job.up({first_link, all_three}, 3);
    auto const all = std::vector{second_link, all_three};
    auto const starts = job.agree(all, std::move(kept));
    auto const mine = job.mine(all);
    for (std::size_t c = 0; c < starts.size(); ++c) {
        CHECK(starts[c].kept.has_value() == (mine[c].kind == mpi::channel::reduce_sums));
    }
    CHECK(job.count(std::ranges::any_of(starts, [](auto const& one) { return one.kept.has_value(); })) == 3);
}
