// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/frontier/frontier_input.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "rheo/energy/frontier/activity_network.hpp"
#include "rheo/energy/profile/profile_csv.hpp"
#include "rheo/energy/profile/split_backward.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

struct suffix {
    std::string_view name;
    double factor;
};

constexpr suffix times[] = {{"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}, {"s", 1.0}, {"", 1.0}};
constexpr suffix powers[] = {{"kW", 1e3}, {"mW", 1e-3}, {"W", 1.0}, {"", 1.0}};

/// A number with one of the suffixes.
template <std::size_t N>
double number_with(std::string const& option, std::string_view text, suffix const (&suffixes)[N])
{
    double value = 0.0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    auto const rest = text.substr(static_cast<std::size_t>(end - text.data()));
    for (auto const& s : suffixes) {
        if (error == std::errc{} && rest == s.name && value >= 0.0 && value < 1e9) {
            return value * s.factor;
        }
    }
    throw exit_error{exit_code::usage, fmt::format("{} is '{}', but it is a number like 0.1{}", option, text, suffixes[0].name)};
}

/// A unit that no computation is shorter than, and in which the longest can be counted. @throws exit_error
void expect_unit_fits(seconds unit, seconds shortest, seconds longest, frontier_options const& options)
{
    if (unit > shortest) {
        throw exit_error{exit_code::usage, fmt::format("--unit {} is longer than the shortest computation of {}, which takes {:g} s: choose at most that",
                                                       options.unit, options.profile, shortest.count)};
    }
    if (longest / unit >= std::numeric_limits<std::int32_t>::max()) {
        throw exit_error{exit_code::usage, fmt::format("--unit {} is too short: a computation of {} takes {:g} s, more units than can be counted", options.unit,
                                                       options.profile, longest.count)};
    }
}

std::string file_text(std::string const& name)
{
    std::ifstream file{name, std::ios::binary};
    if (!file) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: this profile cannot be read", name)};
    }
    return {std::istreambuf_iterator<char>{file}, {}};
}

}  // namespace

seconds time_option(std::string const& name, std::string const& text) { return {text.empty() ? 0.0 : number_with(name, text, times)}; }

frontier_input read_input(frontier_options const& options)
{
    auto const schedule = parse_schedule(options.schedule);
    if (!schedule) {
        throw exit_error{exit_code::usage, schedule.error()};
    }
    auto measured = parse_profile(file_text(options.profile), options.profile);
    if (!measured) {
        throw exit_error{exit_code::bad_data, measured.error()};
    }
    auto const blocking = options.blocking_power.empty() ? blocking_of(*measured, {}) : watts{number_with("--blocking-power", options.blocking_power, powers)};
    frontier_request const request{blocking, options.fit == "hull" ? cost_fit::hull : cost_fit::exponential, time_option("--unit", options.unit)};
    if (!options.unit.empty() && request.unit < nanoseconds(1.0)) {
        throw exit_error{exit_code::usage, "--unit is at least 1ns"};
    }
    auto shortest = seconds{std::numeric_limits<double>::max()};
    seconds longest{0.0};
    for (auto const& row : measured->rows) {
        if (is_compute(row.kind)) {
            shortest = std::min(shortest, row.time);
            longest = std::max(longest, row.time);
        }
    }
    if (!options.unit.empty()) {
        expect_unit_fits(request.unit, shortest, longest, options);
    }
    if (options.input_gradient_share > 0.0) {
        measured = with_split_backwards(*std::move(measured), options.input_gradient_share);
    }
    return {*schedule, *std::move(measured), request, shortest};
}

made_network network_for(program const& p, frontier_input const& input, frontier_options const& options)
{
    auto network = make_event_network(array_view{&p, 1}, {{transfer_times(input.measured, p)}, {}});
    auto made = make_activity_network(std::move(network.network), input.measured, input.request);
    if (!made) {
        bool whole = false;
        bool split = false;
        for (auto const& row : input.measured.rows) {
            whole = whole || row.kind == instruction_kind::backward;
            split = split || row.kind == instruction_kind::input_gradient;
        }
        throw exit_error{exit_code::bad_data,
                         fmt::format("{}: {}{}", options.profile, made.error(),
                                     whole && !split ? "; the schedule splits backwards: --input-gradient-share 0.5 takes half of each measured one" : "")};
    }
    auto const units = length_at(made->activities, curve_end::cheapest);
    if (units >= std::numeric_limits<std::int32_t>::max()) {
        throw exit_error{exit_code::usage,
                         fmt::format("--microbatches {} at units of {:g} s: the slowest iteration takes {:.0f} s, more units than can be counted; "
                                     "choose fewer microbatches or a --unit of {:.0f}us or more",
                                     options.microbatches, made->activities.unit.count, static_cast<double>(units) * made->activities.unit.count,
                                     std::ceil(static_cast<double>(units) * in_microseconds(made->activities.unit) / 2e9))};
    }
    return *std::move(made);
}

progress_bar::progress_bar() : terminal_{isatty(STDERR_FILENO) != 0} {}

void progress_bar::show(double share)
{
    if (!terminal_ || std::chrono::steady_clock::now() - begin_ < std::chrono::milliseconds{200}) {
        return;
    }
    if (auto const cells = static_cast<int>(share * 40.0); cells != drawn_) {
        drawn_ = cells;
        fmt::print(stderr, "\r[{:<40}] {:3.0f} %", std::string(static_cast<std::size_t>(cells), '='), share * 100.0);
        std::fflush(stderr);
    }
}

void progress_bar::clear()
{
    if (drawn_ >= 0) {
        fmt::print(stderr, "\r{:50}\r", "");
        drawn_ = -1;
    }
}

}  // namespace rheo::cli
