// SPDX-License-Identifier: Apache-2.0
// The checkpoint of the last state while a rank is lost: three ranks in one process, of which one dies in or after each reduction, and any
// of the others hears what came of it or does not. Each of these cases is tried.
#include <array>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "unit/executor/checkpoint/job_in_folder.hpp"

using namespace rheo;
using namespace std::chrono_literals;
using small_job::job_in_folder;

namespace {

constexpr int ranks = 3;
constexpr step_id last{7};

struct lost {};
struct alone_in_it {};  // the others make fewer reductions

/// The reductions of a generation; after the last one that is whole on all ranks there may be one that only some hear of.
class reductions {
public:
    explicit reductions(std::vector<int> members, int broken = -1, std::set<int> hear = {})
        : members_{std::move(members)}, broken_{broken}, hear_{std::move(hear)}
    {
    }

    std::int64_t largest(int rank, int which, std::int64_t value)
    {
        if (broken_ >= 0 && which > broken_) {
            throw lost{};
        }
        std::unique_lock lock{mutex_};
        if (rounds_.size() <= static_cast<std::size_t>(which)) {
            rounds_.resize(static_cast<std::size_t>(which) + 1);
        }
        auto& now = rounds_[static_cast<std::size_t>(which)];
        now.values.insert(value);
        changed_.notify_all();
        if (!changed_.wait_for(lock, 10s, [&] { return rounds_[static_cast<std::size_t>(which)].values.size() == members_.size(); })) {
            throw alone_in_it{};
        }
        if (which == broken_ && hear_.count(rank) == 0) {
            throw lost{};
        }
        return *rounds_[static_cast<std::size_t>(which)].values.rbegin();
    }

private:
    struct round {
        std::multiset<std::int64_t> values;
    };
    std::vector<int> members_;
    int broken_;
    std::set<int> hear_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<round> rounds_;
};

struct ended {
    bool lost = false;
    bool there = false;
    bool others_left = false;
    int reductions = 0;
};

/// All members save the last state, each in a thread.
std::array<ended, ranks> save(job_in_folder const& job, std::array<std::unique_ptr<checkpointing>, ranks> const& all, std::vector<int> const& members,
                              generation_id generation, reductions& by)
{
    std::vector<rank_id> alive;
    for (auto const rank : members) {
        alive.push_back(rank_id{rank});
    }
    tensor_holders holders(job.about.state.tensors.size());
    for (std::size_t t = 0; t < holders.size(); ++t) {
        holders[t] = job.about.state.tensors[t].is_parameter ? alive : std::vector<rank_id>{};
    }
    std::array<ended, ranks> ends;
    std::vector<std::thread> threads;
    for (auto const rank : members) {
        threads.emplace_back([&, rank] {
            auto& end = ends[static_cast<std::size_t>(rank)];
            try {
                end.there = all[static_cast<std::size_t>(rank)]->save_now(last, generation, holders, job.state,
                                                                          [&](std::int64_t value) { return by.largest(rank, end.reductions++, value); });
            } catch (lost const&) {
                end.lost = true;
            } catch (alone_in_it const&) {
                end.others_left = true;
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    return ends;
}

std::array<std::unique_ptr<checkpointing>, ranks> ranks_of(job_in_folder const& job)
{
    std::array<std::unique_ptr<checkpointing>, ranks> all;
    for (int rank = 0; rank < ranks; ++rank) {
        all[static_cast<std::size_t>(rank)] = std::make_unique<checkpointing>(job.about, job.data, job.no_faults, launch_clock{}, rank_id{rank}, std::nullopt);
    }
    return all;
}

}  // namespace

TEST_CASE("closing_checkpoint: saved once, then found")
{
    job_in_folder job;
    auto const all = ranks_of(job);
    int reductions_of_first = 0;
    for (bool const again : {false, true}) {
        reductions by{{0, 1, 2}};
        auto const ends = save(job, all, {0, 1, 2}, generation_id{1}, by);
        for (auto const& end : ends) {
            CHECK(end.there);
            CHECK(end.reductions == ends.front().reductions);
        }
        CHECK(job.folders() == std::set<std::string>{"step-7"});
        reductions_of_first = again ? reductions_of_first : ends.front().reductions;
    }
    CHECK(reductions_of_first == 4);  // the cases below try each of them
    CHECK(find_newest_checkpoint(job.config.run.folder).newest->step() == last);
}

TEST_CASE("closing_checkpoint: whatever a loss leaves known to whom")
{
    auto const victim = GENERATE(0, 1, 2);  // 0 publishes
    auto const broken = GENERATE(0, 1, 2, 3);
    auto const hear = GENERATE(range(0, 8));
    CAPTURE(victim, broken, hear);
    job_in_folder job;
    auto const all = ranks_of(job);
    std::set<int> heard;
    std::vector<int> left;
    std::vector<rank_id> members;
    for (int rank = 0; rank < ranks; ++rank) {
        if ((hear & (1 << rank)) != 0) {
            heard.insert(rank);
        }
        if (rank != victim) {
            left.push_back(rank);
            members.push_back(rank_id{rank});
        }
    }
    {
        reductions by{{0, 1, 2}, broken, heard};
        auto const ends = save(job, all, {0, 1, 2}, generation_id{1}, by);
        for (int rank = 0; rank < ranks; ++rank) {
            auto const& end = ends[static_cast<std::size_t>(rank)];
            CHECK(end.lost == (broken < 3 || heard.count(rank) == 0));
        }
    }
    for (auto const rank : left) {
        all[static_cast<std::size_t>(rank)]->generation_ended(members);
    }
    reductions by{left};
    auto const ends = save(job, all, left, generation_id{2}, by);
    for (auto const rank : left) {
        auto const& end = ends[static_cast<std::size_t>(rank)];
        CHECK(end.there);
        CHECK_FALSE(end.others_left);
        CHECK(end.reductions == ends[static_cast<std::size_t>(left.front())].reductions);
    }
    auto const found = find_newest_checkpoint(job.config.run.folder);
    CHECK(found.skipped.empty());
    REQUIRE(found.newest);
    CHECK(found.newest->step() == last);
    for (auto const rank : left) {  // what comes next begins from nothing
        CHECK(all[static_cast<std::size_t>(rank)]->consents() == (checkpointing::part_is_ready | checkpointing::has_not_failed));
    }
}

TEST_CASE("closing_checkpoint: a part that may be in publication stays")
{
    job_in_folder job;
    auto const all = ranks_of(job);
    reductions by{{0, 1, 2}, 1, {}};  // nobody hears whether all parts are ready
    save(job, all, {0, 1, 2}, generation_id{1}, by);
    rank_id const left[] = {rank_id{0}, rank_id{1}};
    all[1]->depart(left);
    CHECK(job.folder.read("run/.step-7.1/part-1.json") != "");
}
