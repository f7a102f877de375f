// SPDX-License-Identifier: Apache-2.0
// The published frontier of GPT-3 175B on 8 stages of A100-SXM, 12 microbatches, 1F1B: met row by row with the
// published cost model; with the hull the same programs take less energy at every time, at real clocks.
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "rheo/energy/clocks/bucket_clocks.hpp"
#include "rheo/energy/clocks/round_to_clocks.hpp"
#include "rheo/energy/frontier/certificate.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/energy/profile/profile_csv.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr watts blocking{83.64};
constexpr watts waiting = blocking * 8.0;

std::optional<std::string> shared_file(std::string const& name)
{
    auto const* shared = std::getenv("RHEO_SHARED");
    if (shared == nullptr) {
        WARN("RHEO_SHARED names no folder with public profiles: skipped");
        return std::nullopt;
    }
    std::ifstream file{std::string{shared} + "/data/perseus/gpt3-175b_a100-sxm_" + name};
    REQUIRE(file);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

struct comparison {
    int rows = 0;
    int above = 0;
    double gained = 0.0;
};

/// The hull against the published method at the time that the latter's plans really take.
comparison compare(program const& p, profile const& measured, int stride)
{
    auto const network = make_event_network(p);
    auto const fitted = *make_activity_network(network, measured, {blocking, cost_fit::exponential});
    auto const hull = *make_activity_network(network, measured, {blocking, cost_fit::hull});
    auto const theirs = make_frontier(fitted.activities, waiting, frontier_begin::slowest);
    auto const ours = make_frontier(hull.activities, waiting);
    auto const buckets = buckets_of(fitted, blocking);
    auto const real_clocks = make_real_frontier(ours, hull.options, blocking, slowest_time(ours));
    comparison result;
    for (auto time = theirs.vertices.back().time; time <= theirs.vertices.front().time; time += ticks{stride}) {
        auto const published = at_bucket_clocks(fitted, plan_at(theirs, time), buckets, blocking);
        auto const end = published.time;
        auto const real = round_to_clocks(real_clocks, end);
        REQUIRE(real);
        auto const energy = total_energy(ours, real->cost, std::min(end, slowest_time(ours))).count;  // beyond T* we end earlier
        auto const published_energy = total_energy(ours, published.cost, end).count;
        result.rows += 1;
        result.above += energy > published_energy + 1e-6 ? 1 : 0;
        result.gained += published_energy - energy;
    }
    return result;
}

}  // namespace

TEST_CASE("published: the published frontier is met row by row")
{
    auto const text = shared_file("profile.csv");
    auto const expected = shared_file("mb12_frontier.csv");
    if (!text || !expected) {
        return;
    }
    auto const measured = parse_profile(*text, "profile.csv");
    REQUIRE(measured);
    auto const made =
        *make_activity_network(make_event_network(one_f_one_b::program({.ranks = 8, .microbatches = 12})), *measured, {blocking, cost_fit::exponential});
    auto const f = make_frontier(made.activities, waiting, frontier_begin::slowest);
    std::istringstream lines{*expected};
    std::string line;
    std::getline(lines, line);
    auto time = f.vertices.front().time;
    int rows = 0;
    for (; std::getline(lines, line); ++rows) {
        time -= ticks{1};  // the published rows begin one step below the slowest plan
        double published_time = 0.0;
        double published_energy = 0.0;
        char comma = 0;
        std::istringstream{line} >> published_time >> comma >> published_energy;
        REQUIRE(time.count * 0.001 == published_time);
        REQUIRE(total_energy(f, plan_at(f, time).cost, time_of(f, time)).count == Approx(published_energy).margin(1e-6).epsilon(0.0));
    }
    CHECK(rows == 639);
    CHECK(time == f.vertices.back().time);
}

TEST_CASE("published: the hull beats the published rounding")
{
    auto const text = shared_file("profile.csv");
    if (!text) {
        return;
    }
    auto const measured = *parse_profile(*text, "profile.csv");
    for (int microbatches : {4, 8, 12, 16}) {
        for (bool flushed : {false, true}) {
            schedule_shape const shape{.ranks = 8, .microbatches = microbatches};
            auto const result = compare(flushed ? gpipe::program(shape) : one_f_one_b::program(shape), measured, microbatches == 12 && !flushed ? 1 : 13);
            CAPTURE(microbatches, flushed, result.rows, result.gained / result.rows);
            CHECK(result.rows > 20);
            CHECK(result.above == 0);
            CHECK(result.gained > 0.0);
        }
    }
}

TEST_CASE("published: savings alone and beside a straggler")
{
    auto const text = shared_file("profile.csv");
    if (!text) {
        return;
    }
    auto const measured = *parse_profile(*text, "profile.csv");
    auto const made = *make_activity_network(make_event_network(one_f_one_b::program({.ranks = 8, .microbatches = 12})), measured, {blocking});
    auto const f = make_frontier(made.activities, waiting, frontier_begin::slowest);  // a straggler is waited for: that time is paid anyway
    auto const highest = at_highest_clocks(made.activities, made.options, blocking);
    auto const fastest = at_fastest_clocks(made.activities, made.options, blocking).time;
    auto const real_clocks = make_real_frontier(f, made.options, blocking, fastest * 1.5);
    auto const saved = [&](double factor) {
        auto const real = round_to_clocks(real_clocks, fastest * factor);
        REQUIRE(real);
        REQUIRE(real->time <= fastest * factor);
        return 1.0 - total_energy(f, real->cost, fastest * factor) / total_energy(f, highest.cost, fastest * factor);
    };
    CHECK(saved(1.0) > 0.152);
    CHECK(saved(1.2) > 0.24);
    auto const fitted = *make_activity_network(made.activities.network, measured, {blocking, cost_fit::exponential});
    auto const theirs = make_frontier(fitted.activities, waiting, frontier_begin::slowest);
    auto const buckets = buckets_of(fitted, blocking);
    for (auto time = theirs.vertices.back().time; time <= theirs.vertices.front().time; time += ticks{10}) {  // of theirs, each that is done in time
        auto const published = at_bucket_clocks(fitted, plan_at(theirs, time), buckets, blocking);
        for (double const late : {1.01, 1.05, 1.1, 1.2, 1.5}) {
            if (auto const end = fastest * late; published.time <= end) {
                CHECK(1.0 - total_energy(f, published.cost, end) / total_energy(f, highest.cost, end) <= saved(late));
            }
        }
    }
}

TEST_CASE("published: reproduces the published savings")
{
    auto const text = shared_file("profile.csv");
    if (!text) {
        return;
    }
    auto const measured = *parse_profile(*text, "profile.csv");
    auto const network = make_event_network(one_f_one_b::program({.ranks = 8, .microbatches = 12}));
    auto const fitted = *make_activity_network(network, measured, {blocking, cost_fit::exponential});
    auto const f = make_frontier(fitted.activities, waiting);
    joules highest{0.0};
    for (auto const which : fitted.activities.curve_of) {
        auto const& option = fitted.options[static_cast<std::size_t>(which)].front();
        highest += option.energy - blocking * option.time;
    }
    auto const saved = [&](double factor) {
        auto const time = fastest_time(f) * factor;
        return 1.0 - total_energy(f, cost_within(f, time), time) / (highest + waiting * time);
    };
    CHECK(saved(1.0) == Approx(0.1520).margin(5e-5));
    CHECK(saved(1.2) == Approx(0.2489).margin(5e-5));
}

TEST_CASE("published: every 25th vertex of the real frontier is proved")
{
    auto const text = shared_file("profile.csv");
    if (!text) {
        return;
    }
    auto const measured = *parse_profile(*text, "profile.csv");
    auto const made = *make_activity_network(make_event_network(one_f_one_b::program({.ranks = 8, .microbatches = 12})), measured, {blocking});
    auto const f = make_frontier(made.activities, waiting);
    for (std::size_t k = 0; k < f.vertices.size(); k += 25) {
        auto const checked = verify(f.activities, certify(f, f.vertices[k].time));
        REQUIRE(checked.error.empty());
        REQUIRE(checked.cost == f.vertices[k].cost);
    }
}
