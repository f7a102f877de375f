// SPDX-License-Identifier: Apache-2.0
// What is written can be read, bit for bit, no matter who wrote which part of it; and older checkpoints go only for newer ones.
#include "executor/checkpoint/checkpoint_writer.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "executor/checkpoint/checkpoint_publish.hpp"
#include "executor/checkpoint/part_files.hpp"
#include "executor/records/earlier_run.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/checkpoint/small_job.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;
namespace fs = std::filesystem;

namespace {

std::set<std::string> names_in(fs::path const& folder)
{
    std::set<std::string> names;
    for (auto const& entry : fs::directory_iterator{folder}) {
        names.insert(entry.path().filename().string());
    }
    return names;
}

}  // namespace

TEST_CASE("writing: checkpoint holds the state's bits, nothing else")
{
    for (int const ranks : {1, 2, 5}) {
        temporary_folder const run;
        auto const end = small_job::write(run.path, step_id{7}, ranks);
        INFO(end.message);
        REQUIRE(end.state == writer_state::published);
        CHECK(names_in(run.path) == std::set<std::string>{"step-7"});
        auto const names = names_in(run.path / "step-7");
        CHECK(names.size() == 1 + 2 * static_cast<std::size_t>(ranks));
        CHECK(names.contains("manifest.json"));
        auto const found = find_newest_checkpoint(run.path);
        REQUIRE(found.newest);
        CHECK(found.skipped.empty());
        CHECK(found.newest->step() == step_id{7});
        CHECK(small_job::same(*found.newest, *small_job::state_after(step_id{7})));
        CHECK_FALSE(small_job::same(*found.newest, *small_job::state_after(step_id{8})));
        CHECK(found.newest->manifest().fingerprint == std::vector<fingerprint_line>{{"seed", "1"}, {"BLAS", "any"}});
        CHECK(found.newest->manifest().config == "schema = 1\n");
    }
}

TEST_CASE("writing: parameters are dealt to holders evenly")
{
    auto const& state = small_job::info();
    std::vector<std::vector<rank_id>> holders;
    for (auto const& tensor : state.tensors) {  // two pipelines: ranks 0 and 4 hold the first layers, 2 and 7 the last
        holders.emplace_back();
        for (auto const layer : tensor.layers) {
            auto const low = layer.value < 2;
            for (rank_id const r : {rank_id{low ? 0 : 2}, rank_id{low ? 4 : 7}}) {
                if (std::find(holders.back().begin(), holders.back().end(), r) == holders.back().end()) {
                    holders.back().push_back(r);
                }
            }
        }
    }
    auto const writers = deal_writing(state, holders);
    std::int64_t largest = 0;
    std::map<int, std::int64_t> loads;
    for (std::size_t t = 0; t < writers.size(); ++t) {
        if (!state.tensors[t].is_parameter) {
            CHECK(writers[t] == rank_id{-1});
            continue;
        }
        CHECK(std::find(holders[t].begin(), holders[t].end(), writers[t]) != holders[t].end());
        loads[writers[t].value] += elements(state.tensors[t].shape);
        largest = std::max(largest, elements(state.tensors[t].shape));
    }
    CHECK(loads.size() == 4);
    CHECK(std::abs(loads[0] - loads[4]) <= largest);
    CHECK(std::abs(loads[2] - loads[7]) <= largest);
    auto turned = holders;
    for (auto& some : turned) {
        std::reverse(some.begin(), some.end());
    }
    CHECK(deal_writing(state, turned) == writers);
}

TEST_CASE("writing: keep_last removes the oldest after publishing")
{
    temporary_folder const run;
    for (int step = 1; step <= 5; ++step) {
        bool seen = false;
        auto const end = small_job::write(run.path, step_id{step}, 2, 2, 1, [&](checkpoint_point point) {
            if (point == checkpoint_point::published) {
                auto const steps = checkpoint_steps(run.path);
                CHECK(steps.back() == step_id{step});
                CHECK(steps.size() == static_cast<std::size_t>(std::min(step, 3)));
                seen = true;
            }
        });
        REQUIRE(end.state == writer_state::published);
        CHECK(seen);
    }
    CHECK(checkpoint_steps(run.path) == std::vector{step_id{4}, step_id{5}});
    CHECK(names_in(run.path) == std::set<std::string>{"step-4", "step-5"});
}

TEST_CASE("writing: abandoned part leaves nothing; writer recovers")
{
    temporary_folder const run;
    auto const state = small_job::state_after(step_id{3});
    auto const writers = small_job::dealt(1);
    checkpoint_writer writer{run.path};
    auto const begin = [&] { writer.begin(take_part(*state, writers, rank_id{0}, step_id{3}, generation_id{1})); };
    for (int i = 0; i < 20; ++i) {
        begin();
        writer.abandon();
    }
    writer.wait();
    CHECK(names_in(run.path).empty());
    begin();
    REQUIRE(writer.wait() == writer_state::ready);
    writer.abandon();
    CHECK(writer.wait() == writer_state::idle);
    CHECK(names_in(run.path).empty());
    begin();
    REQUIRE(writer.wait() == writer_state::ready);
    CHECK(writer.written().step == step_id{3});
    CHECK(writer.written().written.count > 12 * 19 * 8);
    writer.publish(small_job::publication(*state, step_id{3}, generation_id{1}, 1));
    CHECK(writer.wait() == writer_state::published);
    CHECK(small_job::same(find_newest_checkpoint(run.path).newest.value(), *state));
}

TEST_CASE("writing: drops parts of ended generations only")
{
    temporary_folder const run;
    auto const state = small_job::state_after(step_id{3});
    auto const writers = small_job::dealt(2);
    checkpoint_writer lost{run.path};
    lost.begin(take_part(*state, writers, rank_id{1}, step_id{3}, generation_id{4}));
    REQUIRE(lost.wait() == writer_state::ready);
    lost.hand_over();  // the process is gone: nobody removes its files
    run.write(".step-2.removed/manifest.json", "half removed");
    checkpoint_writer writer{run.path};
    writer.begin(take_part(*state, writers, rank_id{0}, step_id{3}, generation_id{5}));
    CHECK(writer.wait() == writer_state::ready);
    drop_unfinished_checkpoints(run.path, generation_id{5});
    CHECK(names_in(run.path) == std::set<std::string>{".step-3.5"});
    CHECK(find_newest_checkpoint(run.path).skipped.empty());

    run.write(".step-2.4/part-1.json", "left by a job that was killed");
    run.write(".step-4.5/part-1.json", "being written");
    REQUIRE(small_job::write(run.path, step_id{1}, 1, 0, 1, {}, generation_id{5}).state == writer_state::published);
    CHECK(names_in(run.path) == std::set<std::string>{".step-3.5", ".step-4.5", "step-1"});
}

TEST_CASE("writing: never publishes missing or stale parts")
{
    temporary_folder const run;
    auto const state = small_job::state_after(step_id{3});
    checkpoint_writer writer{run.path};
    writer.begin(take_part(*state, small_job::dealt(2), rank_id{0}, step_id{3}, generation_id{1}));
    REQUIRE(writer.wait() == writer_state::ready);
    writer.publish(small_job::publication(*state, step_id{3}, generation_id{1}, 2));
    CHECK(writer.wait() == writer_state::failed);
    CHECK_THAT(writer.message(), Catch::Matchers::ContainsSubstring("part-1.json' cannot be opened: No such file"));
    CHECK(names_in(run.path).empty());

    writer.begin(take_part(*state, small_job::dealt(2), rank_id{0}, step_id{3}, generation_id{1}));
    REQUIRE(writer.wait() == writer_state::ready);
    writer.publish(small_job::publication(*state, step_id{3}, generation_id{1}, 1));  // rank 1 had tensors to write, too
    CHECK(writer.wait() == writer_state::failed);
    CHECK_THAT(writer.message(), Catch::Matchers::ContainsSubstring("manifest.json' does not have each element of '"));
    CHECK(names_in(run.path).empty());
}

TEST_CASE("writing: existing step: same kept, bad set aside")
{
    temporary_folder const run;
    REQUIRE(small_job::write(run.path, step_id{3}, 2).state == writer_state::published);
    auto const before = fs::last_write_time(run.path / "step-3" / "manifest.json");
    REQUIRE(small_job::write(run.path, step_id{3}, 1).state == writer_state::published);
    CHECK(fs::last_write_time(run.path / "step-3" / "manifest.json") == before);

    fs::resize_file(run.path / "step-3" / "state-1.safetensors", 100);
    REQUIRE(small_job::write(run.path, step_id{3}, 3).state == writer_state::published);
    CHECK(names_in(run.path) == std::set<std::string>{"before-1", "step-3"});
    CHECK(fs::file_size(run.path / "before-1" / "step-3" / "state-1.safetensors") == 100);
    CHECK(small_job::same(find_newest_checkpoint(run.path).newest.value(), *small_job::state_after(step_id{3})));

    REQUIRE(small_job::write(run.path, step_id{3}, 1, 0, 2).state == writer_state::published);
    CHECK(names_in(run.path) == std::set<std::string>{"before-1", "before-2", "step-3"});
    CHECK(small_job::same(checkpoint{run.path / "before-2" / "step-3"}, *small_job::state_after(step_id{3})));
    CHECK(small_job::same(checkpoint{run.path / "step-3"}, *small_job::state_after(step_id{3}, 2)));
    CHECK(set_run_aside(run.path) == run.path / "before-3");
    CHECK(names_in(run.path) == std::set<std::string>{"before-1", "before-2", "before-3"});
    CHECK(set_run_aside(run.path).empty());
}

TEST_CASE("writing: what must not be called is refused with a sentence")
{
    temporary_folder const run;
    auto const state = small_job::state_after(step_id{1});
    checkpoint_writer writer{run.path};
    CHECK_THROWS_AS(writer.hand_over(), precondition_error);
    writer.begin(take_part(*state, small_job::dealt(1), rank_id{0}, step_id{1}, generation_id{1}));
    CHECK_THROWS_AS(writer.begin({}), precondition_error);
    CHECK(writer.wait() == writer_state::ready);
    std::vector<std::vector<rank_id>> const nobody(small_job::info().tensors.size());
    CHECK_THROWS_AS(deal_writing(small_job::info(), nobody), precondition_error);
}

TEST_CASE("writing: a part copied beside training has the same bytes")
{
    temporary_folder const run;
    auto const state = small_job::state_after(step_id{3});
    auto const writers = small_job::dealt(2);
    part_progress const quietly{[](checkpoint_point) {}, [] {}};
    write_part(run.path / "now", take_part(*state, writers, rank_id{1}, step_id{3}, generation_id{1}), quietly);
    auto const part = take_part(*state, writers, rank_id{1}, step_id{3}, generation_id{1}, snapshot_kind::beside);
    REQUIRE(part.copies != nullptr);
    part.copies->release();
    for (tensor_id t{0}; at(t) < small_job::info().tensors.size(); ++t) {  // the training continues
        if (state->holds(t)) {
            for (auto* values : {&state->tensor(t).parameter, &state->tensor(t).first_moment, &state->tensor(t).second_moment}) {
                std::fill(values->floats().begin(), values->floats().end(), 0.0F);
            }
        }
    }
    write_part(run.path / "beside", part, quietly);
    for (auto const& name : {model_file(rank_id{1}), state_file(rank_id{1}), part_file(rank_id{1})}) {
        CHECK(run.read("beside/" + name) == run.read("now/" + name));
    }
}

TEST_CASE("writing: arrays are copied whole or given up")
{
    std::vector<float> large(3 * state_snapshot::piece_elements + 5);
    for (std::size_t i = 0; i < large.size(); ++i) {
        large[i] = static_cast<float>(i % 8191);
    }
    std::vector<float> small{1, 2, 3};
    auto const before = large;
    for (int i = 0; i < 20; ++i) {
        state_snapshot copies{{large, {}, small}};
        copies.release();
        std::fill(large.begin(), large.end(), -1.0F);
        CHECK(std::ranges::equal(copies.array(0), before));
        CHECK(copies.array(1).empty());
        CHECK(std::ranges::equal(copies.array(2), small));
        large = before;
    }
    state_snapshot copies{{large, small}};
    copies.give_up();
    std::fill(large.begin(), large.end(), -1.0F);
    for (std::size_t array : {0U, 1U}) {
        try {
            auto const copy = copies.array(array);
            CHECK(std::ranges::equal(copy, array == 0 ? before : small));
        } catch (exit_error const& error) {
            CHECK_THAT(error.what(), ContainsSubstring("given up before it was whole"));
        }
    }
}
