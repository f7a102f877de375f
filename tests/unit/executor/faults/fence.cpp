// SPDX-License-Identifier: Apache-2.0
// Only one membership ends a generation; a second one is refused, and so is a rank that comes back.
#include "executor/faults/fence.hpp"

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

link_generation ending(int generation, std::uint64_t launch, std::vector<rank_id> members)
{
    return {.launch = launch_id{launch}, .ended = generation_id{generation}, .members = std::move(members)};
}

}  // namespace

TEST_CASE("fence: first membership wins the generation")
{
    temporary_folder folder;
    auto const first = ending(1, 7, {rank_id{0}, rank_id{2}});
    CHECK(link_generation_file(folder.path, first, rank_id{2}));
    CHECK(folder.read("after-1") == "rheo generation 2\nlaunch 7\nmembers 0 2\n");
    CHECK(link_generation_file(folder.path, first, rank_id{0}));
    CHECK_FALSE(link_generation_file(folder.path, ending(1, 7, {rank_id{1}, rank_id{3}}), rank_id{1}));
    CHECK_FALSE(link_generation_file(folder.path, ending(1, 8, {rank_id{0}, rank_id{2}}), rank_id{0}));  // of another launch
    CHECK(folder.read("after-1") == "rheo generation 2\nlaunch 7\nmembers 0 2\n");
    CHECK(link_generation_file(folder.path, ending(2, 7, {rank_id{0}}), rank_id{0}));
    CHECK(std::distance(std::filesystem::directory_iterator{folder.path}, {}) == 2);  // nothing else is left
}

TEST_CASE("fence: files of ranks that died are cleaned up")
{
    temporary_folder folder;
    for (auto const* name : {".after-1.1", ".after-2.3", ".after-3.2", ".after-x", ".after-1"}) {
        folder.write(name, "");
    }
    auto const next = ending(2, 7, {rank_id{0}, rank_id{2}});
    CHECK(link_generation_file(folder.path, next, rank_id{2}));
    CHECK(std::filesystem::exists(folder.path / ".after-1.1"));  // the lowest member removes them
    CHECK(link_generation_file(folder.path, next, rank_id{0}));
    CHECK_FALSE(std::filesystem::exists(folder.path / ".after-1.1"));
    for (auto const* name : {"after-2", ".after-2.3", ".after-3.2", ".after-x", ".after-1"}) {  // of this generation another member may be linking its own
        CHECK(std::filesystem::exists(folder.path / name));
    }
}

TEST_CASE("fence: next launch continues the generation count")
{
    temporary_folder folder;
    CHECK(last_generation(folder.path) == generation_id{0});
    CHECK(last_generation(folder.path / "not-there") == generation_id{0});
    for (auto const* name : {"after-0", "after-11", "after-2", "after-x", "after-99x", "before-50"}) {
        folder.write(name, "");
    }
    CHECK(last_generation(folder.path) == generation_id{12});
}

TEST_CASE("fence: a folder that cannot be used is a sentence")
{
    temporary_folder folder;
    CHECK_THROWS_AS(link_generation_file(folder.path / "not-there", ending(0, 1, {rank_id{0}}), rank_id{0}), exit_error);
}

TEST_CASE("fence: follows a renamed folder, not a removed one")
{
    temporary_folder folder;
    auto const run = folder.path / "run";
    std::filesystem::create_directory(run);
    fence here{run, rank_id{2}};
    auto const first = ending(1, 7, {rank_id{0}, rank_id{2}});
    here.prepare(first);
    std::filesystem::rename(run, folder.path / "elsewhere");
    CHECK(here.link(first));
    CHECK(folder.read("elsewhere/after-1") == "rheo generation 2\nlaunch 7\nmembers 0 2\n");
    CHECK_FALSE(std::filesystem::exists(run));
    std::filesystem::remove_all(folder.path / "elsewhere");
    CHECK_THROWS_AS(here.link(ending(2, 7, {rank_id{2}})), exit_error);
}

TEST_CASE("fence: link can be retried when the disk is full")
{
    temporary_folder folder;
    auto const first = ending(1, 7, {rank_id{0}, rank_id{2}});
    auto const second = ending(2, 7, {rank_id{2}});
    std::filesystem::create_directory(folder.path / ".after.2");  // no process can write a file of this name
    fence here{folder.path, rank_id{2}};
    CHECK_THROWS_AS(here.link(first), folder_not_writable);
    CHECK(link_generation_file(folder.path, first, rank_id{0}));
    CHECK(here.link(first));
    CHECK_THROWS_AS(here.link(second), folder_not_writable);
    std::filesystem::remove(folder.path / ".after.2");
    CHECK(here.link(second));
    here.prepare(second);
    auto const room = std::filesystem::file_size(folder.path / ".after.2");
    CHECK(room > folder.read("after-2").size());
    CHECK(here.link(ending(3, 7, {rank_id{2}})));
    CHECK(folder.read("after-3") == "rheo generation 4\nlaunch 7\nmembers 2\n");
}
