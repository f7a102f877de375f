// SPDX-License-Identifier: Apache-2.0
// A thousand simulated ranks tell each other what they hold, compare their plans, wait for each other and agree on who lives: messages and
// agreements in all, of the rank that has most of them, and one after the other. None grows with the square of the ranks.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "executor/mpi/survivors.hpp"
#include "executor/state/collectives.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

int rounds_of(int ranks)  // log2, rounded up
{
    int rounds = 0;
    while (1 << rounds < ranks) {
        ++rounds;
    }
    return rounds;
}

/// Runs the same on all ranks. Their names have gaps, as after losses.
template <class Work>
mpi::network simulated(int ranks, Work work)
{
    mpi::network all;
    std::vector<rank_id> names;
    for (int r = 0; r < ranks; ++r) {
        names.push_back(rank_id{r});
    }
    REQUIRE(all.run(ranks, [&](int r) {
        mpi::generation const members{names, names[static_cast<std::size_t>(r)]};
        mpi::messenger messages{members, all};
        work(messages, r);
    }));
    return all;
}

/// What a rank says: some say more than one message holds.
std::vector<std::int64_t> words_of(int rank)
{
    std::vector<std::int64_t> words(static_cast<std::size_t>(rank % 7 == 3 ? 200 : rank % 5));
    std::generate(words.begin(), words.end(), [&, next = std::int64_t{1000} * rank]() mutable { return next++; });
    return words;
}

}  // namespace

TEST_CASE("messages: exchange takes four messages per rank")
{
    for (int const ranks : {1, 2, 3, 8, 17, 32, 100, 1000}) {
        bool right = true;
        auto const counts = simulated(ranks, [&](mpi::messenger& messages, int rank) {
            auto const all = all_gather(messages, words_of(rank));
            for (int r = 0; r < ranks; ++r) {
                right = right && all[static_cast<std::size_t>(r)] == words_of(r);
            }
        });
        CHECK(right);
        CHECK(counts.messages <= 4 * (ranks - 1));
        CHECK(counts.polls <= counts.messages + 4 * ranks * rounds_of(ranks));
        CHECK(counts.longest <= 2 * rounds_of(ranks));
        CHECK(*std::max_element(counts.sent.begin(), counts.sent.end()) <= 2 * (rounds_of(ranks) + 1));
    }
}

TEST_CASE("messages: collectives take two messages per rank")
{
    for (int const ranks : {1, 2, 3, 8, 17, 32, 100, 1000}) {
        int same = 0;
        int different = 0;
        std::vector<std::uint64_t> const plan{0x123456789abcdef0U, 0xffffffffffffffffU};
        auto const compared = simulated(ranks, [&](mpi::messenger& messages, int) { same += same_everywhere(messages, plan); });
        simulated(ranks, [&](mpi::messenger& messages, int rank) {
            auto own = plan;
            own[1] -= rank == ranks - 1 ? 1 : 0;  // the last bit on the last rank
            different += !same_everywhere(messages, own);
        });
        bool right = true;
        auto const reduced = simulated(ranks, [&](mpi::messenger& messages, int rank) {
            step_scalars scalars{{-1.0 * rank, 0.5 * rank}, {rank, 1}};
            all_reduce(messages, scalars);
            right = right && scalars.maxima == std::vector{0.0, 0.5 * (ranks - 1)} &&
                    scalars.sums == std::vector<std::int64_t>{std::int64_t{ranks} * (ranks - 1) / 2, ranks};
        });
        int here = 0;
        auto const waited = simulated(ranks, [&](mpi::messenger& messages, int) {
            ++here;
            wait_for_all(messages);
            right = right && here == ranks;
        });
        CHECK(right);
        CHECK(same == ranks);
        CHECK(different == (ranks > 1 ? ranks : 0));
        for (auto const* counts : {&compared, &reduced, &waited}) {
            CHECK(counts->messages == 2 * (ranks - 1));
            CHECK(counts->longest <= 2 * rounds_of(ranks));
        }
    }
}

TEST_CASE("messages: few agreements name the survivors exactly")
{
    std::mt19937 random{31};
    for (int const ranks : {1, 2, 8, 31, 32, 64, 1000}) {
        for (int const losses : {0, 1, 2, 5, ranks / 2}) {
            if (losses >= ranks) {
                continue;
            }
            // Each of these members knows of some of the losses, all together know of all.
            constexpr int observers = 5;
            std::vector<std::vector<bool>> known(observers, std::vector<bool>(static_cast<std::size_t>(ranks), true));
            std::vector<bool> lives(static_cast<std::size_t>(ranks), true);
            for (int l = 0; l < losses; ++l) {
                auto const lost = random() % static_cast<unsigned>(ranks);
                lives[lost] = false;
                known[random() % observers][lost] = false;
                known[random() % observers][lost] = false;
            }
            // An agreement is the "and" of the n-th call of each.
            mpi::network all;
            std::vector<std::vector<int>> votes(observers);
            std::vector<std::vector<bool>> results(observers);
            REQUIRE(all.run(observers, [&](int self) {
                auto& mine = votes[static_cast<std::size_t>(self)];
                results[static_cast<std::size_t>(self)] = mpi::agree_on_survivors(known[static_cast<std::size_t>(self)], [&](int bits) {
                    mine.push_back(bits);
                    all.made_progress();
                    auto const call = mine.size();
                    while (std::any_of(votes.begin(), votes.end(), [&](auto const& theirs) { return theirs.size() < call; })) {
                        all.yield();
                    }
                    all.made_progress();
                    for (auto const& theirs : votes) {
                        bits &= theirs[call - 1];
                    }
                    return bits;
                });
            }));
            for (auto const& result : results) {
                CHECK(result == lives);
            }
            auto const calls = static_cast<int>(votes.front().size());
            CHECK(calls == static_cast<int>(votes.back().size()));
            CHECK(calls <= 1 + 2 * losses);                                  // for a few losses: 3 at 1,000 ranks, which took 33
            CHECK(calls <= 2 + ranks / 31 + ranks / 62 + ranks / 124 + 10);  // and never much more than asking for each
        }
    }
}
