// SPDX-License-Identifier: Apache-2.0
// When ranks begin, publish and give up checkpoints: two ranks of one pipeline in one process, whose votes the test settles.
#include "executor/train/checkpointing.hpp"

#include <chrono>
#include <filesystem>
#include <set>
#include <thread>

#include "support/catch.hpp"
#include "unit/executor/checkpoint/job_in_folder.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;
using small_job::job_in_folder;
namespace fs = std::filesystem;

namespace {

constexpr rank_id first{0};
constexpr rank_id second{1};
std::vector<rank_id> const members{first, second};

template <class Ready>
bool within_ten_seconds(Ready ready)
{
    for (auto const end = std::chrono::steady_clock::now() + 10s; !ready(); std::this_thread::sleep_for(1ms)) {
        if (std::chrono::steady_clock::now() > end) {
            return false;
        }
    }
    return true;
}

constexpr auto all_good = checkpointing::part_is_ready | checkpointing::has_not_failed;

bool ready(checkpointing const& rank)
{
    return within_ten_seconds([&] { return rank.consents() == all_good; });
}

}  // namespace

TEST_CASE("checkpointing: published when all ranks consent")
{
    job_in_folder job;
    checkpointing one{job.about, job.data, job.no_faults, launch_clock{}, first, {}};
    checkpointing two{job.about, job.data, job.no_faults, launch_clock{}, second, {}};
    for (auto* rank : {&one, &two}) {
        rank->committed(step_id{4}, false, generation_id{1}, members, job.both, job.state);
        CHECK_FALSE(rank->in_publication());
        rank->committed(step_id{5}, false, generation_id{1}, members, job.both, job.state);
    }
    REQUIRE((ready(one) && ready(two)));
    CHECK(job.folders() == std::set<std::string>{".step-5.1"});
    for (auto* rank : {&one, &two}) {
        rank->agreed(checkpointing::has_not_failed);  // another one was not ready
        CHECK_FALSE(rank->in_publication());
        rank->agreed(all_good);
        CHECK(rank->in_publication() == step_id{5});
    }
    REQUIRE((ready(one) && ready(two)));
    CHECK(job.folders() == std::set<std::string>{"step-5"});
    for (auto* rank : {&one, &two}) {
        rank->agreed(all_good);
        CHECK_FALSE(rank->in_publication());
        rank->committed(step_id{10}, false, generation_id{1}, members, job.both, job.state);
    }
    REQUIRE((ready(one) && ready(two)));
    CHECK(job.folders() == std::set<std::string>{".step-10.1", "step-5"});
}

TEST_CASE("checkpointing: unfinished parts end with their generation")
{
    job_in_folder job;
    checkpointing one{job.about, job.data, job.no_faults, launch_clock{}, first, {}};
    one.committed(step_id{5}, false, generation_id{1}, members, job.both, job.state);
    REQUIRE(ready(one));
    // The second rank dies while it writes, before any vote is settled.
    job.folder.write("run/.step-5.1/model-1.safetensors", "half");
    rank_id const left[] = {first};
    one.generation_ended(left);
    CHECK(one.consents() == all_good);
    CHECK(within_ten_seconds([&] { return !fs::exists(fs::path{job.config.run.folder} / ".step-5.1" / "part-0.json"); }));
    one.agreed(all_good);
    CHECK_FALSE(one.in_publication());

    one.committed(step_id{10}, false, generation_id{2}, members, job.alone, job.state);
    REQUIRE(ready(one));
    one.agreed(all_good);
    CHECK(one.in_publication() == step_id{10});
    REQUIRE(ready(one));
    one.agreed(all_good);
    CHECK(job.folders() == std::set<std::string>{"step-10"});  // and what was left behind is gone
    one.report(job.silent);
    CHECK(job.notes().find("no checkpoint") == std::string::npos);
    CHECK(find_newest_checkpoint(job.config.run.folder).newest->step() == step_id{10});
}

TEST_CASE("checkpointing: publishing ends when the publisher fails")
{
    job_in_folder job;
    checkpointing one{job.about, job.data, job.no_faults, launch_clock{}, first, {}};
    checkpointing two{job.about, job.data, job.no_faults, launch_clock{}, second, {}};
    for (auto* rank : {&one, &two}) {
        rank->committed(step_id{5}, false, generation_id{1}, members, job.both, job.state);
    }
    REQUIRE((ready(one) && ready(two)));
    for (auto* rank : {&one, &two}) {
        rank->agreed(all_good);
    }
    SECTION("the other one is lost")
    {
        rank_id const left[] = {first};
        one.generation_ended(left);
        CHECK(one.in_publication() == step_id{5});
        REQUIRE(ready(one));
        one.agreed(all_good);
        CHECK(job.folders() == std::set<std::string>{"step-5"});
    }
    SECTION("the one that publishes is lost")
    {
        rank_id const left[] = {second};
        two.generation_ended(left);
        CHECK_FALSE(two.in_publication());
        two.report(job.silent);
        CHECK(job.notes().find("the checkpoint of step 5 may not be there: rank 0 was lost while it published it") != std::string::npos);
    }
}

TEST_CASE("checkpointing: one failed part fails all; the next is tried")
{
    job_in_folder job;
    checkpointing one{job.about, job.data, job.no_faults, launch_clock{}, first, {}};
    one.committed(step_id{5}, false, generation_id{1}, members, job.both, job.state);
    REQUIRE(ready(one));
    one.agreed(0);  // the other one's disk is full
    CHECK(within_ten_seconds([&] { return job.folders().empty(); }));
    one.report(job.silent);
    CHECK(job.notes().find("no checkpoint of step 5: another rank could not write") != std::string::npos);
    one.committed(step_id{10}, false, generation_id{1}, members, job.both, job.state);
    CHECK(ready(one));
    CHECK(job.folders() == std::set<std::string>{".step-10.1"});
}

TEST_CASE("checkpointing: levels are reached one after the other")
{
    job_in_folder job;
    job.about.config.checkpoint.local = (job.folder.path / "local").string();
    job.about.config.checkpoint.publish_every = 2;
    job.about.run = run_identity{3};
    auto const local = local_folder(job.about.config.checkpoint.local, 0, job.about.run);
    std::filesystem::create_directories(local);
    job.about.config.plan.node_size = 2;
    checkpointing one{job.about, job.data, job.no_faults, launch_clock{}, first, {}};
    checkpointing two{job.about, job.data, job.no_faults, launch_clock{}, second, {}};
    auto const both = [&](auto const& action) {
        action(one);
        action(two);
    };
    auto const agree = [](checkpointing& rank) { rank.agreed(all_good); };
    auto const begin = [&](step_id step) {
        both([&](checkpointing& rank) { rank.committed(step, false, generation_id{1}, members, job.both, job.state); });
        REQUIRE((ready(one) && ready(two)));
    };
    begin(step_id{5});
    CHECK(local_parts(local).size() == 2);
    both(agree);  // level 1, and the end of it
    CHECK(job.folders().empty());

    begin(step_id{10});
    both(agree);
    CHECK_FALSE(one.in_publication());
    REQUIRE((ready(one) && ready(two)));
    CHECK(job.folders() == std::set<std::string>{".step-10.1"});
    both(agree);  // the parts are in the run folder
    CHECK(one.in_publication() == step_id{10});
    REQUIRE((ready(one) && ready(two)));
    both(agree);
    CHECK(job.folders() == std::set<std::string>{"step-10"});
    CHECK(within_ten_seconds([&] { return local_parts(local).front().step == step_id{10}; }));

    // What the run folder cannot have stays where it is safe.
    std::filesystem::rename(job.config.run.folder, job.config.run.folder + ".away");
    begin(step_id{15});
    both(agree);
    begin(step_id{20});
    both(agree);
    CHECK(within_ten_seconds([&] { return (one.consents() & checkpointing::has_not_failed) == 0; }));
    both([](checkpointing& rank) { rank.agreed(0); });
    std::filesystem::rename(job.config.run.folder + ".away", job.config.run.folder);
    CHECK(local_parts(local).back().step == step_id{20});
    one.report(job.silent);
    CHECK_THAT(job.notes(), ContainsSubstring("the checkpoint of step 20 is safe on node-local storage only: '") && ContainsSubstring("\"level\":\"local\""));
}
