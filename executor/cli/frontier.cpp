// SPDX-License-Identifier: Apache-2.0
// `rheo frontier`: from a profile and a schedule to the time-energy frontier, as a table, JSON, CSV, a picture or a
// header. It plans only; no clock is touched here.

#include "cli/frontier_input.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "rheo/frequency/certificate.hpp"
#include "rheo/frequency/clock_plan.hpp"
#include "rheo/frequency/continued_plan.hpp"
#include "rheo/frequency/frontier.hpp"
#include "rheo/frequency/make_project.hpp"
#include "rheo/frequency/realise.hpp"
#include "rheo/frequency/svg.hpp"
#include "rheo/frequency/switching.hpp"
#include "rheo/schedule/any_schedule.hpp"

namespace rheo::cli {

namespace {

void write_file(std::string const& name, std::string const& text)
{
    std::ofstream file{name, std::ios::binary};
    file << text;
    if (!file.flush()) {
        throw refusal{5, fmt::format("{}: this file cannot be written", name)};
    }
}

/// The program of the family that has as many stages as the profile, on as many ranks as that takes.
program program_for(frontier_input const& input, int microbatches, frontier_options const& options)
{
    auto const stages = stages_of(input.measured);
    std::string why = fmt::format("it has no program of {} stages", stages);
    for (int ranks = stages; ranks >= 1; --ranks) {
        schedule_shape const shape{.ranks = ranks, .microbatches = microbatches};
        if (auto const fault = fault_of(input.schedule, shape); fault != shape_fault::none) {
            why = ranks == stages ? sentence_of(fault) : why;
            continue;
        }
        auto result = make_program(input.schedule, shape);
        if (stages_per_copy(result) == stages && result.slices == 1) {
            return result;
        }
    }
    throw refusal{2, fmt::format("the schedule {} does not go with {}: {}", options.schedule, options.profile, why)};
}

inline constexpr int table_rows = 10;

/// Everything the command knows in the end.
struct study {
    program what;
    made_project made;
    watts blocking;
    rheo::frontier curve;                          ///< without plans where it was carried over from a shorter program
    std::map<std::int32_t, rheo::frontier> points; ///< then these are the plans that are asked for, by their ticks
    seconds highest_time;      ///< of an iteration at the highest clocks
    nanojoules highest_cost;
    clocked_plan chosen;
    proof checked;             ///< of the relaxation at the chosen time
    seconds until;             ///< when somebody else is done; 0: nobody is waited for

    joules at_highest(seconds time) const { return total_energy(curve, highest_cost, std::max(time, highest_time)); }
    joules at_chosen() const { return total_energy(curve, chosen.cost, end_of_chosen()); }
    seconds end_of_chosen() const { return std::max(chosen.time, until); }
    seconds time_of_row(int row) const { return highest_time + (slowest_time(curve) - highest_time) * (static_cast<double>(row) / table_rows); }

    ticks ticks_for(seconds deadline) const { return std::max(detail::ticks_within(curve, deadline), curve.vertices.back().time); }
    realised_plan real_clocks(seconds deadline, switching_rule rule = {}) const
    {
        auto const point = points.find(ticks_for(deadline).count);
        return realise(point == points.end() ? curve : point->second, made.options, blocking, deadline, rule);
    }
};

void solve_whole(study& s, frontier_begin begin, seconds deadline)
{
    auto const& p = s.made.what;
    auto const from = length_at(p, curve_end::cheapest);
    auto const to = length_at(p, curve_end::fastest);
    progress_bar bar;
    s.curve = make_frontier(p, s.blocking * static_cast<double>(s.what.rows.size()), begin,
        [&](ticks now) { bar.show(from > to ? static_cast<double>(from - now.count) / static_cast<double>(from - to) : 1.0); });
    bar.clear();
    s.points.clear();
    auto const time = s.ticks_for(deadline);
    s.checked = verify(p, certify(s.curve, time));
}

/// Long programs: the curve from two shorter ones, and the plans that will be shown, each proved. False where that is not so.
bool carry_over(study& s, frontier_input const& input, frontier_options const& options, seconds deadline)
{
    auto const ranks = static_cast<int>(s.what.rows.size());
    auto const make = [&](int microbatches) { return project_for(program_for(input, microbatches, options), input, options).what; };
    steady_search const where{.from = 6 * ranks, .to = options.microbatches / 4};
    for (auto microbatches = where.from; microbatches <= where.to; microbatches *= 2) {
        for (auto const m : {microbatches, microbatches + where.period}) {
            if (fault_of(input.schedule, {.ranks = ranks, .microbatches = m}) != shape_fault::none) {
                return false;  // a family that does not take every number of microbatches
            }
        }
    }
    auto const steady = find_steady_state(make, s.blocking * static_cast<double>(ranks), where);
    if (!steady) {
        return false;
    }
    s.curve = continued_curve(steady, s.made.what, options.microbatches);
    auto wanted = std::vector{s.ticks_for(deadline)};
    for (int row = 0; row <= table_rows; ++row) {
        wanted.push_back(s.ticks_for(s.time_of_row(row)));
    }
    for (auto const time : wanted) {
        auto const plan = continued_at(steady, s.curve, options.microbatches, time);
        if (!plan) {
            return false;
        }
        s.checked = time == wanted.front() ? plan.checked : s.checked;
        s.points.emplace(time.count, frontier_at(s.curve, plan, time));
    }
    return proved_least(steady, s.curve, options.microbatches);
}

study make_study(frontier_options const& options)
{
    auto const input = read_input(options);
    study s{};
    s.what = program_for(input, options.microbatches, options);
    s.made = project_for(s.what, input, options);
    s.blocking = input.request.blocking;
    detail::clock_choice highest{s.made.what, s.made.options, s.blocking, 0};
    for (std::size_t k = 0; k < highest.operations(); ++k) {
        highest.choose(k, 0);
    }
    s.highest_time = nanoseconds(static_cast<double>(highest.run()));
    s.highest_cost = {highest.cost()};
    s.until = time_option("--straggler", options.straggler);
    auto const deadline = !options.straggler.empty() ? s.until : options.deadline.empty() ? s.highest_time : time_option("--deadline", options.deadline);
    bool const lists = options.json || options.csv || !options.svg.empty();  // these show all vertices
    bool const is_long = !lists && options.straggler.empty() && input.request.fit == cost_fit::hull && options.microbatches >= 24 * static_cast<int>(s.what.rows.size());
    if (!is_long || !carry_over(s, input, options, deadline)) {
        bool const all = input.request.fit == cost_fit::exponential || !options.straggler.empty();
        solve_whole(s, all ? frontier_begin::slowest : frontier_begin::least_energy, deadline);
    }
    auto const real = s.real_clocks(
        deadline, {time_option("--switch-latency", options.switch_latency), time_option("--dwell", options.dwell)});
    if (!real) {
        throw refusal{3, fmt::format("{} {}: {} ({:.6f} s)", options.straggler.empty() ? "--deadline" : "--straggler", options.deadline + options.straggler,
                             real.reason, s.highest_time.count)};
    }
    s.chosen = real.plan;
    return s;
}

/// Times to show, one each `step` from the fastest on, the slowest first.
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
    auto const unit = in_whole_nanoseconds(s.curve.what.unit);
    fmt::print("time,energy\n");
    for (auto const time : shown(s.curve, static_cast<int>(std::max<std::int64_t>(1, 1'000'000 / unit)))) {
        auto const when = static_cast<double>(time.count * unit) / 1e9;  // the nearest number to whole nanoseconds
        fmt::print("{},{}\n", when, total_energy(s.curve, cost_at(s.curve, time), {when}).count);
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
    for (int row = 0; row <= table_rows; ++row) {
        auto const time = s.time_of_row(row);
        auto const real = s.real_clocks(time);
        if (!real || time < s.highest_time) {
            continue;
        }
        auto const energy = total_energy(s.curve, real.plan.cost, time);
        fmt::print("{:11.6f} {:12.4f} {:17.3f} {:18.3f} {:22.2f} %\n", time.count, time / s.highest_time,
            total_energy(s.curve, cost_at(s.curve, s.ticks_for(time)), time).count, energy.count, 100.0 * (1.0 - energy / s.at_highest(time)));
    }
    fmt::print("\nhighest clocks   {:.6f} s   {:.3f} J\n", s.highest_time.count, s.at_highest(s.highest_time).count);
    fmt::print("chosen           {:.6f} s   {:.3f} J   {:.2f} % less than at the highest clocks\n", s.chosen.time.count, s.at_chosen().count,
        100.0 * (1.0 - s.at_chosen() / s.at_highest(s.end_of_chosen())));
    if (s.until > s.chosen.time) {
        fmt::print("                 and waits until {:.6f} s, which is in the energy\n", s.until.count);
    }
    fmt::print("                 {} changes of clocks in an iteration\n", switches(s.made.what.network, s.chosen));
    if (!s.points.empty()) {
        fmt::print("                 carried over from a shorter program in the same steady state\n");
    }
    fmt::print("{}: rounding to real clocks costs at most {:.3f} J\n", s.checked ? "proved by its dual flow" : "NOT PROVED: " + s.checked.reason,
        std::max(0.0, in_joules(s.chosen.cost - s.checked.bound).count));
}

}  // namespace

int frontier(frontier_options const& options)
{
    if (!options.ranks.empty()) {
        return survivors(options);
    }
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
