// SPDX-License-Identifier: Apache-2.0
// `rheo frontier`: from a profile and a schedule to the time-energy frontier, as a table, JSON, CSV, a picture or a
// header. It plans only; no clock is touched here.

#include "cli/commands.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "rheo/frequency/certificate.hpp"
#include "rheo/frequency/clock_plan.hpp"
#include "rheo/frequency/frontier.hpp"
#include "rheo/frequency/make_project.hpp"
#include "rheo/frequency/profile_csv.hpp"
#include "rheo/frequency/realise.hpp"
#include "rheo/frequency/svg.hpp"
#include "rheo/frequency/switching.hpp"
#include "rheo/schedule/any_schedule.hpp"

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
    throw refusal{2, fmt::format("{} is '{}', but it is a number like 0.1{}", option, text, suffixes[0].name)};
}

std::string file_text(std::string const& name)
{
    std::ifstream file{name, std::ios::binary};
    if (!file) {
        throw refusal{4, fmt::format("{}: this profile cannot be read", name)};
    }
    return {std::istreambuf_iterator<char>{file}, {}};
}

void write_file(std::string const& name, std::string const& text)
{
    std::ofstream file{name, std::ios::binary};
    file << text;
    if (!file.flush()) {
        throw refusal{5, fmt::format("{}: this file cannot be written", name)};
    }
}

/// The program of the family that has as many stages as the profile, on as many ranks as that takes.
program program_for(any_schedule const& schedule, int stages, frontier_options const& options)
{
    std::string why = fmt::format("it has no program of {} stages", stages);
    for (int ranks = stages; ranks >= 1; --ranks) {
        schedule_shape const shape{.ranks = ranks, .microbatches = options.microbatches};
        if (auto const fault = fault_of(schedule, shape); fault != shape_fault::none) {
            why = ranks == stages ? sentence_of(fault) : why;
            continue;
        }
        auto result = make_program(schedule, shape);
        if (stages_per_copy(result) == stages && result.slices == 1) {
            return result;
        }
    }
    throw refusal{2, fmt::format("the schedule {} does not go with {}: {}", options.schedule, options.profile, why)};
}

/// A bar on the terminal, from the slowest plan to the fastest, once it has taken long enough to be noticed.
class progress_bar {
public:
    progress_bar(ticks from, ticks to) : from_{from}, to_{to} {}

    void operator()(ticks now)
    {
        auto const elapsed = std::chrono::steady_clock::now() - begin_;
        if (!terminal_ || elapsed < std::chrono::milliseconds{200}) {
            return;
        }
        auto const share = from_ > to_ ? (from_ - now) / (from_ - to_) : 1.0;
        if (auto const cells = static_cast<int>(share * 40.0); cells != drawn_) {
            drawn_ = cells;
            fmt::print(stderr, "\r[{:<40}] {:3.0f} %{}", std::string(static_cast<std::size_t>(cells), '='), share * 100.0, now == to_ ? "\n" : "");
        }
    }

private:
    ticks from_;
    ticks to_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    bool terminal_ = isatty(STDERR_FILENO) != 0;
    int drawn_ = -1;
};

/// How many ticks the network takes with every operation at one end of its curve.
ticks end_of(project const& p, bool slowest)
{
    std::vector<std::int64_t> when(static_cast<std::size_t>(p.network.events));
    for (auto const& arc : p.network.arcs) {
        auto const* curve = curve_of(p, arc);
        auto const length = curve != nullptr && slowest ? curve->times.back() : least_time(p, arc);
        auto& end = when[static_cast<std::size_t>(arc.to)];
        end = std::max(end, when[static_cast<std::size_t>(arc.from)] + length.count);
    }
    return {static_cast<std::int32_t>(std::min<std::int64_t>(when.back(), std::numeric_limits<std::int32_t>::max()))};
}

/// Everything the command knows in the end.
struct study {
    program what;
    made_project made;
    watts blocking;
    rheo::frontier curve;
    seconds highest_time;      ///< of an iteration at the highest clocks
    nanojoules highest_cost;
    clocked_plan chosen;
    proof checked;             ///< of the relaxation at the chosen time

    joules at_highest(seconds time) const { return total_energy(curve, highest_cost, std::max(time, highest_time)); }
    joules at_chosen() const { return total_energy(curve, chosen.cost, chosen.time); }
};

study make_study(frontier_options const& options)
{
    auto const schedule = parse_schedule(options.schedule);
    if (!schedule) {
        throw refusal{2, schedule.reason};
    }
    auto const measured = parse_profile(file_text(options.profile), options.profile);
    if (!measured) {
        throw refusal{4, measured.reason};
    }
    auto const stages = stages_of(measured.what);
    study s{program_for(*schedule.schedule, stages, options), {}, {number_with("--blocking-power", options.blocking_power, powers)}, {}, {}, {}, {}, {}};
    frontier_request const request{s.blocking, options.fit == "hull" ? cost_fit::hull : cost_fit::exponential,
        {options.unit.empty() ? 0.0 : number_with("--unit", options.unit, times)}};
    if (!options.unit.empty() && request.unit < nanoseconds(1.0)) {
        throw refusal{2, "--unit is at least 1ns"};
    }
    auto network = make_event_network(std::span{&s.what, 1}, {{transfer_times(measured.what, s.what)}, {}});
    s.made = make_project(std::move(network.network), measured.what, request);
    if (!s.made) {
        throw refusal{4, fmt::format("{}: {}", options.profile, s.made.reason)};
    }
    auto const& p = s.made.what;
    s.curve = make_frontier(p, s.blocking * static_cast<double>(s.what.rows.size()),
        request.fit == cost_fit::hull ? frontier_begin::least_energy : frontier_begin::slowest, progress_bar{end_of(p, true), end_of(p, false)});
    detail::clock_choice highest{p, s.made.options, s.blocking, 0};
    for (std::size_t k = 0; k < highest.operations(); ++k) {
        highest.choose(k, 0);
    }
    s.highest_time = nanoseconds(static_cast<double>(highest.run()));
    s.highest_cost = {highest.cost()};
    auto const deadline = options.deadline.empty() ? s.highest_time : seconds{number_with("--deadline", options.deadline, times)};
    auto const time_option = [](std::string const& name, std::string const& text) {
        return seconds{text.empty() ? 0.0 : number_with(name, text, times)};
    };
    switching_rule const rule{time_option("--switch-latency", options.switch_latency), time_option("--dwell", options.dwell)};
    auto const real = realise(s.curve, s.made.options, s.blocking, deadline, rule);
    if (!real) {
        throw refusal{3, fmt::format("--deadline {}: {} ({:.6f} s)", options.deadline, real.reason, s.highest_time.count)};
    }
    s.chosen = real.plan;
    auto const within = std::clamp(deadline, fastest_time(s.curve), slowest_time(s.curve));
    s.checked = verify(p, certify(s.curve, at(s.curve, within).plan.time));
    return s;
}

/// Times to show: `count` of them evenly from the slowest to the fastest, or one each `step`.
std::vector<ticks> shown(rheo::frontier const& f, int step)
{
    std::vector<ticks> result;
    for (auto time = f.vertices.back().time; time <= f.vertices.front().time; time += ticks{step}) {
        result.insert(result.begin(), time);
    }
    return result;
}

void print_csv(study const& s)
{
    auto const step = std::max<std::int64_t>(1, 1'000'000 / in_whole_nanoseconds(s.curve.what.unit));
    fmt::print("time,energy\n");
    for (auto const time : shown(s.curve, static_cast<int>(step))) {
        auto const when = time_of(s.curve, time);
        fmt::print("{},{}\n", when.count, total_energy(s.curve, plan_at(s.curve, time).cost, when).count);
    }
}

void print_json(study const& s, frontier_options const& options)
{
    nlohmann::ordered_json clocks;
    std::size_t k = 0;
    for (std::size_t row = 0; row < s.what.rows.size(); ++row) {
        clocks.push_back(nlohmann::ordered_json::array());
        for (auto const& i : s.what.rows[row]) {
            if (is_compute(i.kind)) {
                clocks.back().push_back({{"instruction", to_string(i)}, {"clock_MHz", s.chosen.options[k++].clock.count}});
            }
        }
    }
    nlohmann::ordered_json points;
    for (auto const& v : s.curve.vertices) {
        points.push_back({{"time_s", time_of(s.curve, v.time).count}, {"energy_J", total_energy(s.curve, v.cost, time_of(s.curve, v.time)).count}});
    }
    nlohmann::ordered_json const report{{"schedule", options.schedule}, {"ranks", s.what.rows.size()}, {"microbatches", options.microbatches},
        {"fit", options.fit}, {"unit_s", s.curve.what.unit.count}, {"blocking_power_W", s.blocking.count},
        {"highest_clocks", {{"time_s", s.highest_time.count}, {"energy_J", s.at_highest(s.highest_time).count}}},
        {"chosen", {{"time_s", s.chosen.time.count}, {"energy_J", s.at_chosen().count},
            {"proved", s.checked.reason.empty()}, {"clock_changes", switches(s.made.what.network, s.chosen)}, {"rounding_loss_J", in_joules(s.chosen.cost - s.checked.bound).count}, {"clocks", clocks}}},
        {"frontier", points}};
    fmt::print("{}\n", report.dump(2));
}

void print_table(study const& s, frontier_options const& options)
{
    fmt::print("{} on {} ranks, {} microbatches: {} computations, {} points, times in units of {:g} ms, {:g} W per waiting device\n\n", options.schedule,
        s.what.rows.size(), options.microbatches, s.made.what.curve_of.size(), s.curve.vertices.size(), in_milliseconds(s.curve.what.unit), s.blocking.count);
    fmt::print("     time s   of fastest    least energy J   at real clocks J   saved to highest clocks\n");
    auto const from = s.highest_time;
    auto const to = slowest_time(s.curve);
    int const rows = 10;
    for (int k = 0; k <= rows; ++k) {
        auto const time = from + (to - from) * (static_cast<double>(k) / rows);
        auto const real = realise(s.curve, s.made.options, s.blocking, time);
        auto const relaxed = at(s.curve, std::max(time, fastest_time(s.curve)));
        if (!real || !relaxed || time < from) {
            continue;
        }
        auto const energy = total_energy(s.curve, real.plan.cost, time);
        fmt::print("{:11.6f} {:12.4f} {:17.3f} {:18.3f} {:22.2f} %\n", time.count, time / from,
            total_energy(s.curve, relaxed.plan.cost, time).count, energy.count, 100.0 * (1.0 - energy / s.at_highest(time)));
    }
    fmt::print("\nhighest clocks   {:.6f} s   {:.3f} J\n", s.highest_time.count, s.at_highest(s.highest_time).count);
    fmt::print("chosen           {:.6f} s   {:.3f} J   {:.2f} % less than at the highest clocks\n", s.chosen.time.count, s.at_chosen().count,
        100.0 * (1.0 - s.at_chosen() / s.at_highest(s.chosen.time)));
    fmt::print("                 {} changes of clocks in an iteration\n", switches(s.made.what.network, s.chosen));
    fmt::print("{}: rounding to real clocks costs at most {:.3f} J\n", s.checked ? "proved by its dual flow" : "NOT PROVED: " + s.checked.reason,
        std::max(0.0, in_joules(s.chosen.cost - s.checked.bound).count));
}

}  // namespace

int frontier(frontier_options const& options)
{
    auto const s = make_study(options);
    if (!options.svg.empty()) {
        write_file(options.svg, to_svg(s.curve, s.chosen));
    }
    if (!options.emit_header.empty()) {
        write_file(options.emit_header, to_header(s.what, s.curve, s.chosen));
    }
    if (options.json) {
        print_json(s, options);
    } else if (options.csv) {
        print_csv(s);
    } else {
        print_table(s, options);
    }
    return 0;
}

}  // namespace rheo::cli
