// SPDX-License-Identifier: Apache-2.0
// `rheo frontier`: from a profile and a schedule to the time-energy frontier, as a table, JSON, CSV, a picture or a
// header. It plans only; no clock is touched here.

#include "executor/cli/frontier/frontier_study.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "rheo/energy/clocks/clock_bound.hpp"
#include "rheo/energy/clocks/clock_plan.hpp"
#include "rheo/energy/clocks/svg.hpp"
#include "rheo/energy/clocks/switching.hpp"
#include "rheo/energy/frontier/certificate.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

void write_file(std::string const& name, std::string const& text)
{
    std::ofstream file{name, std::ios::binary};
    file << text;
    if (!file.flush()) {
        throw exit_error{exit_code::environment, fmt::format("{}: this file cannot be written", name)};
    }
}

/// Rows from the slowest time to the fastest: at each unit that was asked for; else at each millisecond, or each unit if that is longer.
void print_csv(frontier_study const& s, frontier_options const& options)
{
    auto const unit = in_whole_nanoseconds(s.curve.activities.unit);
    auto const step = static_cast<std::int32_t>(options.unit.empty() ? std::max<std::int64_t>(1, 1'000'000 / unit) : 1);
    auto const fastest = s.curve.vertices.back().time.count;
    auto const steps = (s.curve.vertices.front().time.count - fastest) / step;
    fmt::print("time,energy\n");
    for (auto k = steps; k >= 0; --k) {
        ticks const time{fastest + k * step};
        auto const when = static_cast<double>(time.count * unit) / 1e9;  // the nearest number to whole nanoseconds
        fmt::print("{},{}\n", when, total_energy(s.curve, cost_at(s.curve, time), {when}).count);
    }
}

nlohmann::ordered_json as_json(frontier_study const& s, clocked_plan const& plan)
{
    return {{"time_s", plan.time.count}, {"energy_J", s.energy_of(plan, s.until).count}};
}

double percent_less(joules energy, joules than) { return 100.0 * (1.0 - energy / than); }

void print_json(frontier_study const& s, frontier_options const& options)
{
    nlohmann::ordered_json clocks;
    std::size_t k = 0;
    for (std::size_t row = 0; row < s.program.rows.size(); ++row) {
        clocks.push_back(nlohmann::ordered_json::array());
        for (auto const& i : s.program.rows[row]) {
            if (is_compute(i.kind)) {
                clocks.back().push_back({{"instruction", to_string(i)}, {"clock_MHz", s.chosen.options[k++].clock.count}});
            }
        }
    }
    nlohmann::ordered_json points;
    for (auto const& v : s.curve.vertices) {
        points.push_back({{"time_s", time_of(s.curve, v.time).count}, {"energy_J", total_energy(s.curve, v.cost, time_of(s.curve, v.time)).count}});
    }
    auto const energy = s.energy_of(s.chosen, s.until);
    auto chosen = as_json(s, s.chosen);
    chosen["less_than_highest_percent"] = percent_less(energy, s.energy_of(s.highest, s.until));
    chosen["less_than_fastest_percent"] = percent_less(energy, s.energy_of(s.fastest, s.until));
    chosen["proved"] = s.unproved.empty();
    chosen["bound_J"] = s.bound.count;
    chosen["rounding_loss_J"] = std::max(0.0, (energy - s.bound).count);
    chosen["clock_changes"] = switches(s.made.activities.network, s.chosen);
    chosen["clocks"] = clocks;
    nlohmann::ordered_json const report{{"schedule", options.schedule},
                                        {"ranks", s.program.rows.size()},
                                        {"microbatches", options.microbatches},
                                        {"fit", options.fit},
                                        {"unit_s", s.curve.activities.unit.count},
                                        {"blocking_power_W", s.blocking.count},
                                        {"highest_clocks", as_json(s, s.highest)},
                                        {"fastest_clocks", as_json(s, s.fastest)},
                                        {"chosen", chosen},
                                        {"frontier_of", s.fitted ? "fitted model" : "measured options"},
                                        {"frontier", points}};
    fmt::print("{}\n", report.dump(2));
}

void print_table(frontier_study const& s, frontier_options const& options)
{
    fmt::print("{} on {} ranks, {} microbatches: {} computations, {} points, times in units of {:g} ms, {:g} W per waiting device\n\n", options.schedule,
               s.program.rows.size(), options.microbatches, s.made.activities.curve_of.size(), s.curve.vertices.size(),
               in_milliseconds(s.curve.activities.unit), s.blocking.count);
    fmt::print("                                                                 saved against all at the\n");
    fmt::print("     time s   of fastest  {:>17}   at real clocks J   highest clock   fastest clock\n", s.fitted ? "fitted model J" : "relaxed J");
    for (int row = 0; row <= table_rows; ++row) {
        auto const time = s.time_of_row(row);
        auto const real = s.real_clocks(time);
        if (!real) {
            continue;
        }
        auto const others = s.waits() ? time : seconds{0.0};
        auto const energy = s.energy_of(*real, others);
        fmt::print("{:11.6f} {:12.4f} {:18.3f} {:18.3f} {:13.2f} % {:13.2f} %\n", time.count, time / s.fastest.time,
                   total_energy(s.curve, cost_at(s.curve, s.ticks_for(time)), time).count, energy.count, percent_less(energy, s.energy_of(s.highest, others)),
                   percent_less(energy, s.energy_of(s.fastest, others)));
    }
    auto const highest = s.energy_of(s.highest, s.until);
    auto const fastest = s.energy_of(s.fastest, s.until);
    auto const chosen = s.energy_of(s.chosen, s.until);
    fmt::print("\nall at the highest clock     {:.6f} s   {:.3f} J\n", s.highest.time.count, highest.count);
    fmt::print("each at its fastest clock    {:.6f} s   {:.3f} J\n", s.fastest.time.count, fastest.count);
    fmt::print("chosen                       {:.6f} s   {:.3f} J   {:.2f} % less than at the highest, {:.2f} % less than at the fastest clocks\n",
               s.chosen.time.count, chosen.count, percent_less(chosen, highest), percent_less(chosen, fastest));
    if (s.until > s.chosen.time) {
        fmt::print("                             and waits until {:.6f} s, which is in the energy of all three\n", s.until.count);
    }
    fmt::print("                             {} changes of clocks in an iteration\n", switches(s.made.activities.network, s.chosen));
    if (s.carried_over) {
        fmt::print("                             carried over from a shorter program in the same steady state\n");
    }
    if (s.fitted) {
        fmt::print("the fitted model bounds nothing; what follows is from the options as they were measured\n");
    }
    fmt::print("{}: no clocks take less than {:.3f} J by this deadline, so rounding costs at most {:.3f} J\n",
               s.unproved.empty() ? "proved by its dual flow" : "bounded by a flow that is not optimal (" + s.unproved + ")", s.bound.count,
               std::max(0.0, (chosen - s.bound).count));
}

}  // namespace

int frontier(frontier_options const& options)
{
    if (!options.ranks.empty()) {
        return survivors(options);
    }
    auto const s = make_study(options);
    if (!options.svg.empty()) {
        write_file(options.svg, to_svg(s.hull, s.chosen));
    }
    if (!options.emit_header.empty()) {
        write_file(options.emit_header, to_header(s.program, s.hull, s.chosen));
    }
    if (options.json) {
        print_json(s, options);
    } else if (options.csv) {
        print_csv(s, options);
    } else {
        print_table(s, options);
    }
    return 0;
}

}  // namespace rheo::cli
