// SPDX-License-Identifier: Apache-2.0
// Levels of a checkpoint before it is published: parts that grow, who keeps copies, folders of nodes. Their messages are tested by tests/system/resume/levels.sh.
#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <thread>

#include "executor/checkpoint/checkpoint_manifest.hpp"
#include "executor/checkpoint/levels/checkpoint_levels.hpp"
#include "executor/checkpoint/levels/local_folder.hpp"
#include "executor/checkpoint/levels/replica_routes.hpp"
#include "executor/checkpoint/part_files.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/checkpoint/small_job.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;

namespace {

part_progress const quietly{[](checkpoint_point) {}, [] {}};

checkpoint_part part_of_small_job() { return take_part(*small_job::state_after(step_id{3}), small_job::dealt(2), rank_id{1}, step_id{3}, generation_id{1}); }

std::vector<rank_id> ranks(std::initializer_list<int> numbers)
{
    std::vector<rank_id> all;
    for (auto const number : numbers) {
        all.push_back(rank_id{number});
    }
    return all;
}

/// The routes of a part, in their order.
std::vector<replica_route> routes_of(std::vector<replica_route> const& all, rank_id origin)
{
    std::vector<replica_route> some;
    std::copy_if(all.begin(), all.end(), std::back_inserter(some), [&](auto const& route) { return route.origin == origin; });
    return some;
}

}  // namespace

TEST_CASE("levels: copies lie on nodes of their own, in a chain")
{
    for (int const node_size : {1, 2, 3}) {
        for (int const copies : {0, 1, 2, 5}) {
            for (auto const& members : {ranks({0}), ranks({0, 1, 2, 3, 4, 5}), ranks({0, 2, 3, 7, 8, 11}), ranks({4, 5, 9})}) {
                auto const routes = replica_routes(members, members, node_size, copies);
                auto const expected = std::min(copies, nodes_of(members, node_size) - 1);
                std::set<std::tuple<rank_id, rank_id, int>> names;
                for (auto const& route : routes) {
                    CHECK(names.emplace(route.from, route.to, route.item).second);
                    CHECK(std::binary_search(members.begin(), members.end(), route.to));
                }
                for (auto const origin : members) {
                    auto const chain = routes_of(routes, origin);
                    REQUIRE(std::ssize(chain) == expected);
                    std::set<int> nodes{origin.value / node_size};
                    auto from = origin;
                    for (auto const& route : chain) {
                        CHECK(route.from == from);
                        CHECK(nodes.insert(route.to.value / node_size).second);
                        from = route.to;
                    }
                }
            }
        }
    }
}

TEST_CASE("levels: ranks of a node share the copies that it keeps")
{
    auto const members = ranks({0, 1, 2, 3, 4, 5, 6, 7});
    std::map<rank_id, int> loads;
    for (auto const& route : replica_routes(members, members, 4, 1)) {
        ++loads[route.to];
    }
    CHECK(loads.size() == 8);
    CHECK(std::all_of(loads.begin(), loads.end(), [](auto const& load) { return load.second == 1; }));
    CHECK(replica_routes(ranks({5}), members, 4, 1) == std::vector<replica_route>{{rank_id{5}, rank_id{5}, rank_id{0}, 0}});
}

TEST_CASE("levels: a part is copied while it grows")
{
    temporary_folder const folder;
    auto const part = part_of_small_job();
    write_part(folder.path / "direct", part, quietly);
    growing_part growing{folder.path / "local", rank_id{1}, sizes_of(part)};
    bytes copied;
    std::thread behind{[&] { copied = copy_part(growing, folder.path / "shared", quietly); }};
    auto const about = format_state(
        {{.version = "1", .step = step_id{3}, .generation = generation_id{1}, .tensors = {}, .fingerprint = {}, .config = {}, .data_digest = {}, .files = {}},
         {}});
    write_part(growing, part, about, quietly);
    behind.join();
    for (auto const& name : {model_file(rank_id{1}), state_file(rank_id{1}), part_file(rank_id{1})}) {
        CHECK(folder.read("local/" + name) == folder.read("direct/" + name));
        CHECK(folder.read("shared/" + name) == folder.read("direct/" + name));
    }
    CHECK(copied == bytes{growing.bytes() + std::ssize(folder.read("direct/" + part_file(rank_id{1})))});
    CHECK(growing.texts() == texts_in(folder.path / "local", rank_id{1}));
    CHECK(growing.sizes() == sizes_in(folder.path / "local", rank_id{1}));
    std::vector<std::byte> across(200);  // the end of one file and the beginning of the next
    growing.read(growing.sizes()[0] - 100, across);
    auto const both = folder.read("direct/" + model_file(rank_id{1})) + folder.read("direct/" + state_file(rank_id{1}));
    CHECK(std::equal(across.begin(), across.end(), std::as_bytes(std::span{both}).begin() + growing.sizes()[0] - 100));
}

TEST_CASE("levels: who copies a part that fails is not left waiting")
{
    temporary_folder const folder;
    auto const part = part_of_small_job();
    growing_part growing{folder.path / "no" / "folder", rank_id{1}, sizes_of(part)};
    std::string message;
    std::thread behind{[&] {
        try {
            copy_part(growing, folder.path / "shared", quietly);
        } catch (exit_error const& error) {
            message = error.what();
        }
    }};
    CHECK_THROWS_AS(write_part(growing, part, {}, quietly), exit_error);
    behind.join();
    CHECK_THAT(message, ContainsSubstring("was not finished, so it was not copied to"));
}

TEST_CASE("levels: a part stays once all ranks know that it is safe")
{
    temporary_folder const folder;
    auto const members = ranks({1});
    auto const local = local_folder((folder.path / "{node}").string(), 0, run_identity{7});
    std::filesystem::create_directories(local);
    auto const wait = [](checkpoint_levels const& levels) {
        while (!levels.is_local() && levels.message().empty()) {
            std::this_thread::yield();
        }
    };
    {
        checkpoint_levels levels{local, 2, 1, rank_id{1}, [](checkpoint_point) {}};
        levels.begin(part_of_small_job(), "about", {step_id{3}, generation_id{1}, members}, members);
        wait(levels);
        CHECK(levels.copies() == 0);  // one node
        CHECK(levels.is_copied());
        levels.give_up();  // nobody knows
    }
    CHECK(local_parts(local).empty());
    {
        checkpoint_levels levels{local, 2, 1, rank_id{1}, [](checkpoint_point) {}};
        levels.begin(part_of_small_job(), "about", {step_id{3}, generation_id{1}, members}, members);
        wait(levels);
        levels.keep_local();
        levels.give_up();
    }
    CHECK(local_parts(local) == std::vector<local_part>{{step_id{3}, generation_id{1}, rank_id{1}}});
    {
        checkpoint_levels levels{local, 2, 1, rank_id{1}, [](checkpoint_point) {}};
        levels.drop_before(step_id{3});
        CHECK(local_parts(local).size() == 1);
        levels.drop_before(step_id{4});
    }
    CHECK(!std::filesystem::exists(local));
    checkpoint_levels levels{local, 2, 1, rank_id{1}, [](checkpoint_point) {}};  // its folder is gone
    levels.begin(part_of_small_job(), "about", {step_id{4}, generation_id{1}, members}, members);
    wait(levels);
    CHECK_THAT(levels.message(), ContainsSubstring("cannot be made"));
}

TEST_CASE("levels: a run is known by its identity, not its path")
{
    temporary_folder const folder;
    CHECK(identity_of(folder.path) == run_identity{});
    auto const first = give_identity(folder.path);
    CHECK(identity_of(folder.path) == first);
    CHECK(give_identity(folder.path) != first);
    folder.write("run-id", "what?\n");
    CHECK(identity_of(folder.path) == run_identity{});
    CHECK(local_folder("/nvme/{node}/x", 12, run_identity{255}) == "/nvme/12/x/00000000000000ff");
}

TEST_CASE("levels: only whole names are parts")
{
    temporary_folder const folder;
    for (auto const* const name : {"step-3.1/part-0.json", "step-3.1/part-12.json", "step-20.2/part-1.json", "step-3.1/model-0.safetensors",
                                   "step-3/part-0.json", "step-x.1/part-0.json", ".step-3.1/part-0.json", "step-3.1/part-.json", "step-3.1/part-1.json.old"}) {
        std::filesystem::create_directories((folder.path / name).parent_path());
        folder.write(name, "");
    }
    using part = local_part;
    CHECK(local_parts(folder.path) == std::vector{part{step_id{3}, generation_id{1}, rank_id{0}}, part{step_id{3}, generation_id{1}, rank_id{12}},
                                                  part{step_id{20}, generation_id{2}, rank_id{1}}});
    drop_local_before(folder.path, step_id{20});
    CHECK(local_parts(folder.path) == std::vector{part{step_id{20}, generation_id{2}, rank_id{1}}});
    CHECK(std::filesystem::exists(folder.path / "step-x.1"));  // another's
    CHECK(local_parts(folder.path / "none").empty());
    CHECK_THAT(no_local_folder(folder.path, INT64_MAX), ContainsSubstring("MiB free: expected"));
    CHECK(no_local_folder(folder.path, 1).empty());
}
