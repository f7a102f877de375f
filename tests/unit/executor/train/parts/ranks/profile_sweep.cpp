// SPDX-License-Identifier: Apache-2.0
// A sweep on emulated devices: what a trainer calls in a step, in its order. Rank 1 takes and draws three times as much as rank 0.
#include "executor/train/parts/profile_sweep.hpp"

#include <filesystem>

#include "rheo/energy/profile/profile_csv.hpp"
#include "rheo/model/state.hpp"
#include "support/catch.hpp"
#include "support/mpi_ranks.hpp"
#include "unit/executor/train/parts/kept_records.hpp"

using namespace rheo;

namespace {

constexpr gpt_shape shape{.vocabulary = 19, .context = 6, .width = 8, .heads = 2, .blocks = 2};

/// Where a sweep runs: a device with two clocks, and one stage of all layers.
struct swept_job {
    kept_records kept;
    job about;
    std::unique_ptr<rank_device> device;
    mpi_ranks here;
    std::vector<layer_id> cuts{layer_id{0}};

    explicit swept_job(std::string const& file = "profile.csv")
    {
        about.model = gpt_model(shape);
        about.config.model = shape;
        about.config.power.device = power_source::emulated;
        about.config.power.sweep = file.empty() ? file : (kept.folder.path / file).string();
        cuts.push_back(layer_id{about.layers()});
        profile layers;
        for (double const clock : {1400.0, 1000.0}) {
            layers.rows.push_back({rank_id{-1}, stage_id{0}, instruction_kind::forward, {clock}, milliseconds(1.0), {1.0}});
        }
        auto opened = rank_device::open(about.config.power, layers, rank_id{0}, 0);
        device = opened ? std::move(*opened) : nullptr;
    }

    std::string csv() const { return kept.folder.read("profile.csv"); }

    /// A step in which four forwards of the one stage took and drew this in all. @return whether the sweep ended with it
    bool step(profile_sweep& sweep, bool committed, seconds took, joules drew)
    {
        double const times = here.is_reporter() ? 1.0 : 3.0;
        took = {took.count * times};
        drew = {drew.count * times};
        sweep.begin_section(here.messages);
        step_totals totals;
        totals.device_clocks = sweep.clocks();
        totals.computing = {static_cast<std::int64_t>(drew.count * 1e9)};
        counted = counted + drew + joules{1.0};
        now = now + took + seconds{0.5};
        sweep.reduced(totals, counted, now);
        return sweep.settled(committed, {{{0, instruction_kind::forward}, {4, took, drew}}}, cuts, here.is_reporter());
    }

    joules counted{};
    seconds now{};
};

}  // namespace

TEST_CASE("profile_sweep: off without a device or a file")
{
    swept_job with;
    REQUIRE(with.device);
    CHECK_FALSE(profile_sweep{with.about, nullptr, with.kept.record}.runs());
    swept_job without{""};
    profile_sweep off{without.about, without.device.get(), without.kept.record};
    CHECK_FALSE(off.runs());
    off.close(without.here.messages, true);
    CHECK(without.kept.notes().empty());
}

TEST_CASE("profile_sweep: each clock is tried, measured and written")
{
    swept_job all;
    REQUIRE(all.device);
    profile_sweep sweep{all.about, all.device.get(), all.kept.record};
    sweep_rule const rule;
    int steps = 0;
    for (double const clock : {1400.0, 1000.0}) {
        for (int n = 0; n < rule.settle + rule.measure; ++n, ++steps) {
            REQUIRE(sweep.runs());
            CHECK_FALSE(all.step(sweep, false, {99.0}, {99.0}));  // an attempt that is not committed does not count
            CHECK(sweep.clocks() == 2);
            auto const row = sweep.row(3);
            CHECK(std::vector<megahertz>{row.begin(), row.end()} == std::vector<megahertz>(3, megahertz{clock}));
            bool const last = steps == 2 * (rule.settle + rule.measure) - 1;
            auto const settles = n < rule.settle;
            CHECK(all.step(sweep, true, settles ? seconds{77.0} : seconds{4.0 * 1400.0 / clock}, settles ? joules{77.0} : joules{8.0 * clock / 1400.0}) ==
                  last);
        }
    }
    CHECK_FALSE(sweep.runs());
    CHECK_FALSE(std::filesystem::exists(all.about.config.power.sweep));
    all.step(sweep, true, {1.0}, {1.0});  // the next section exchanges what was measured, and its end writes it

    CHECK(std::filesystem::exists(all.about.config.power.sweep) == all.here.is_reporter());
    if (!all.here.is_reporter()) {
        return;
    }
    auto const read = parse_profile(all.csv(), "profile.csv");
    REQUIRE(read);
    CHECK(read->rows.size() == 2 * static_cast<std::size_t>(all.about.layers()));
    for (double const clock : {1400.0, 1000.0}) {
        seconds time{};
        joules energy{};
        for (auto const& row : read->rows) {
            time = row.clock == megahertz{clock} ? time + row.time : time;
            energy = row.clock == megahertz{clock} ? energy + row.energy : energy;
        }
        CHECK(time.count == Approx(2.0 * 1400.0 / clock).epsilon(1e-3));  // of one forward of all layers: the mean of both ranks
        CHECK(energy.count == Approx(4.0 * clock / 1400.0).epsilon(1e-3));
    }
    CHECK(blocking_of(*read, {}).count == Approx(2.0).epsilon(1e-3));  // a joule in half a second, waiting
    REQUIRE(all.kept.notes().size() == 1);
    std::filesystem::remove(all.about.config.power.sweep);
    sweep.close(all.here.messages, true);  // it is written once
    CHECK_FALSE(std::filesystem::exists(all.about.config.power.sweep));
    CHECK(all.kept.notes().size() == 1);
}

TEST_CASE("profile_sweep: a job that ends early keeps what it measured")
{
    swept_job all;
    REQUIRE(all.device);
    profile_sweep sweep{all.about, all.device.get(), all.kept.record};
    sweep_rule const rule;
    for (int n = 0; n < 2 * (rule.settle + rule.measure) - 1; ++n) {
        CHECK_FALSE(all.step(sweep, true, {4.0 + n}, {8.0 - n}));
    }
    CHECK(sweep.runs());
    sweep.close(all.here.messages, all.here.is_reporter());
    CHECK(std::filesystem::exists(all.about.config.power.sweep) == all.here.is_reporter());
    if (all.here.is_reporter()) {
        auto const read = parse_profile(all.csv(), "profile.csv");
        CAPTURE(read.error());
        REQUIRE(read);
        CHECK(read->rows.size() == 2 * static_cast<std::size_t>(all.about.layers()));
    }
}
