// SPDX-License-Identifier: Apache-2.0
// Event files, read back by a reader of their own: frames, checksums, values; and curves that never go back, whatever the writers of a run go through.
#include "executor/records/monitor/tensorboard_log.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "../event_reader.hpp"
#include "executor/records/earlier_run.hpp"
#include "executor/records/monitor/event_file.hpp"
#include "executor/records/records.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

double loss_after(std::int64_t steps) { return 4.0 / static_cast<double>(steps); }

step_record step(std::int64_t number)
{
    return {.step = step_id{number},
            .of_steps = 400,
            .attempt = {},
            .loss = loss_after(number + 1),
            .gradient_norm = 0.5,
            .learning_rate = 0.001,
            .tokens = 2048,
            .duration = seconds{0.5},
            .ranks = 3};
}

run_config with_curves(temporary_folder const& folder)
{
    run_config config;
    config.run.folder = folder.path.string();
    config.run.trace = false;
    config.run.tensorboard = true;
    return config;
}

/// One point per step, ascending, each with the loss of its step.
void check_loss(shown_curves const& curves, std::int64_t steps)
{
    auto const& loss = curves.at("train/loss");
    REQUIRE(std::ssize(loss) == steps);
    for (std::int64_t k = 0; k < steps; ++k) {
        CHECK(loss[static_cast<std::size_t>(k)] == std::pair{k + 1, static_cast<float>(loss_after(k + 1))});
    }
}

}  // namespace

TEST_CASE("tensorboard: the test's CRC-32C is that of RFC 3720")
{
    CHECK(crc32c("123456789") == 0xE3069283U);
    CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAU);
    CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43U);
}

TEST_CASE("tensorboard: records have TFRecord's frame")
{
    std::mt19937_64 random{7};
    for (std::size_t size = 0; size < 300; ++size) {
        std::string data;
        for (std::size_t i = 0; i < size; ++i) {
            data += static_cast<char>(random());
        }
        auto const record = tf_record(data);
        REQUIRE(record.size() == size + 16);
        event_bytes in{record};
        CHECK(in.fixed<std::uint64_t>() == size);
        CHECK(in.fixed<std::uint32_t>() == masked(crc32c(record.substr(0, 8))));
        CHECK(in.take(size) == data);
        CHECK(in.fixed<std::uint32_t>() == masked(crc32c(data)));
    }
}

TEST_CASE("tensorboard: events have their time, step, tags and values")
{
    tagged_scalar const points[] = {{"train/loss", 2.5}, {std::string(200, 'x'), -0.125}, {"n", std::numeric_limits<double>::quiet_NaN()}};
    auto const events = events_of(version_event(12.5) + session_start_event(13.0, 300) + scalars_event(1764380440.125, 1234567890123, points));
    REQUIRE(events.size() == 3);
    CHECK(events[0].file_version == "brain.Event:2");
    CHECK(events[0].wall_time == 12.5);
    CHECK(events[1].session_status == 1);
    CHECK(events[1].step == 300);
    CHECK(events[2].wall_time == 1764380440.125);
    CHECK(events[2].step == 1234567890123);
    REQUIRE(events[2].scalars.size() == 3);
    CHECK(events[2].scalars[0] == std::pair{std::string{"train/loss"}, 2.5F});
    CHECK(events[2].scalars[1] == std::pair{std::string(200, 'x'), -0.125F});
    CHECK(std::isnan(events[2].scalars[2].second));
}

TEST_CASE("tensorboard: a run has its curves under PyTorch's tags")
{
    temporary_folder folder;
    {
        records writer(with_curves(folder), rank_id{0}, true);
        writer.start({generation_id{0}, step_id{0}, 3}, true);
        auto first = step(0);
        first.energy = joules{1024};
        first.model_rate = {3e12};
        first.compute = {8e12};
        writer.step(first);
        auto redone = step(1);
        redone.redone = true;
        writer.step(redone);
        writer.step(step(1));
        writer.evaluation({step_id{2}, 3.25});
    }
    auto const curves = curves_of(folder.path);
    check_loss(curves, 2);
    using points = std::vector<std::pair<std::int64_t, float>>;
    CHECK(curves.at("validation/loss") == points{{2, 3.25F}});
    CHECK(curves.at("train/grad_norm") == points{{1, 0.5F}, {2, 0.5F}});
    CHECK(curves.at("train/learning_rate") == points{{1, 0.001F}, {2, 0.001F}});
    CHECK(curves.at("train/tokens_per_second") == points{{1, 4096.0F}, {2, 4096.0F}});
    CHECK(curves.at("train/step_seconds") == points{{1, 0.5F}, {2, 0.5F}});
    CHECK(curves.at("train/ranks") == points{{1, 3.0F}, {2, 3.0F}});
    CHECK(curves.at("train/mfu") == points{{1, 0.375F}});
    CHECK(curves.at("energy/joules_per_step") == points{{1, 1024.0F}});
    CHECK(curves.at("energy/joules_per_token") == points{{1, 0.5F}});
    CHECK(curves.at("memory/process_gib").size() == 2);
    CHECK(curves.at("memory/process_gib")[0].second > 0.0F);
}

TEST_CASE("tensorboard: the next writer adds what the last one did not")
{
    temporary_folder folder;
    auto const config = with_curves(folder);
    records other(config, rank_id{1}, true);
    {
        records first(config, rank_id{0}, true);
        first.start({generation_id{0}, step_id{0}, 3}, true);
        other.start({generation_id{0}, step_id{0}, 3}, false);
        for (std::int64_t k = 0; k < 5; ++k) {
            first.step(step(k));
            other.step(step(k));
        }
    }
    auto const files = event_files(folder.path);
    REQUIRE(files.size() == 1);
    std::filesystem::resize_file(files[0], std::filesystem::file_size(files[0]) - 5);  // killed within a write
    other.step(step(5));
    other.set_reporter(true);
    other.step(step(6));
    other.set_reporter(true);  // after a later recovery
    other.step(step(7));
    CHECK(event_files(folder.path).size() == 2);
    check_loss(curves_of(folder.path), 8);
}

TEST_CASE("tensorboard: repeated steps have one point each")
{
    temporary_folder folder;
    auto const config = with_curves(folder);
    std::int64_t from = 0;
    for (int launch = 0; launch < 4; ++launch) {  // each goes back to step `from` by a new process, then to 2 before its end by itself
        records writer(config, rank_id{launch % 2}, true);
        writer.start({generation_id{2 * launch}, step_id{from}, 3, from > 0}, true);
        auto const goal = from + 6;
        for (auto k = from; k < goal; ++k) {
            if (k > 0 && k % 2 == 0) {
                writer.evaluation({step_id{k}, 10.0 + static_cast<double>(k)});
            }
            writer.step(step(k));
        }
        writer.start({generation_id{2 * launch + 1}, step_id{goal - 2}, 3, true}, true);
        writer.evaluation({step_id{goal - 2}, 10.0 + static_cast<double>(goal - 2)});
        writer.step(step(goal - 2));
        from = goal - 2;
    }
    auto const curves = curves_of(folder.path);
    check_loss(curves, from + 1);
    auto const& validation = curves.at("validation/loss");
    for (std::size_t k = 0; k < validation.size(); ++k) {
        auto const after = 2 * static_cast<std::int64_t>(k + 1);
        CHECK(validation[k] == std::pair{after, 10.0F + static_cast<float>(after)});
    }
    CHECK(validation.back().first == from);
    CHECK(event_files(folder.path).size() == 4);
}

TEST_CASE("tensorboard: a run that had no curves gets all of them")
{
    temporary_folder folder;
    auto config = with_curves(folder);
    config.run.tensorboard = false;
    {
        records writer(config, rank_id{0}, true);
        writer.start({generation_id{0}, step_id{0}, 3}, true);
        for (std::int64_t k = 0; k < 2000; ++k) {
            writer.step(step(k));
        }
    }
    CHECK(event_files(folder.path).empty());
    config.run.tensorboard = true;
    records writer(config, rank_id{0}, true);
    writer.start({generation_id{1}, step_id{1990}, 3, true}, true);
    writer.step(step(1990));
    check_loss(curves_of(folder.path), 1991);
}

TEST_CASE("tensorboard: an earlier run takes its curves along")
{
    temporary_folder folder;
    auto const config = with_curves(folder);
    {
        records writer(config, rank_id{0}, true);
        writer.start({generation_id{0}, step_id{0}, 3}, true);
        writer.step(step(0));
    }
    auto const aside = set_run_aside(folder.path);
    CHECK(event_files(folder.path).empty());
    check_loss(curves_of(aside), 1);
}
