#pragma once
// SPDX-License-Identifier: Apache-2.0

// Profiles as text: a header line, then a row per measurement, `stage,instruction,frequency,time,energy` in MHz, s
// and J, with `rank` and `throttled` (0 or 1) as further columns where they are known. One row may say `blocking` at stage 0 and clock 0:
// what a device that waits draws in that time, for any stage. Every fault is one
// sentence with the file and the line, and a profile with a fault is refused as a whole.

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "rheo/frequency/profile.hpp"
#include "rheo/units/csv.hpp"

namespace rheo::inline v0 {

/// The answer of parse_profile: a profile, or the sentence why not.
struct parsed_profile {
    profile what;
    std::string reason;  ///< empty when there is a profile

    explicit operator bool() const { return reason.empty(); }
};

/// More rows than any table of clocks has: a file with more is something else.
inline constexpr std::size_t most_profile_rows = 200'000;

/// The name of a computation in profiles; empty for what has no profile.
constexpr std::string_view profile_name(instruction_kind kind)
{
    constexpr std::string_view names[] = {"forward", "backward", "input_gradient", "weight_gradient", "send_activation", "", "send_gradient"};
    return static_cast<std::size_t>(kind) < std::size(names) ? names[static_cast<std::size_t>(kind)] : std::string_view{};
}

namespace detail {

class profile_reader {
public:
    profile_reader(std::string_view text, std::string_view name) : lines_{text}, name_{name} {}

    parsed_profile read()
    {
        parsed_profile result;
        std::string_view line;
        if (!lines_.next(line)) {
            lines_.number = 1;
            return refused("the file is empty; the first line of a profile is stage,instruction,frequency,time,energy");
        }
        header_ = cells_of(line);
        for (auto const wanted : {"stage", "instruction", "frequency", "time", "energy"}) {
            if (column(wanted) == header_.size()) {
                return refused("the header has no column '" + std::string{wanted} + "'; a profile has stage,instruction,frequency,time,energy");
            }
        }
        while (lines_.next(line)) {
            if (line.empty()) {
                continue;
            }
            profile_row row;
            bool waits = false;
            if (auto const fault = read_row(cells_of(line), row, waits); !fault.empty()) {
                return refused(fault);
            }
            if (waits) {
                auto const power = row.energy / row.time;
                if (result.what.blocking > watts{} || row.clock.count != 0.0 || row.stage.value != 0 || power.count <= 0.0 || power.count > 1e6) {
                    return refused("blocking is a single row, at stage 0 and clock 0, of a power up to a million watts");
                }
                result.what.blocking = power;
                continue;
            }
            if (auto const fault = check(row); !fault.empty()) {
                return refused(fault);
            }
            result.what.rows.push_back(row);
            if (result.what.rows.size() > most_profile_rows) {
                return refused("more than " + std::to_string(most_profile_rows) + " rows; a profile has one per stage, instruction and clock");
            }
        }
        if (auto const fault = check_whole(result.what); !fault.empty()) {
            return refused(fault);
        }
        return result;
    }

private:
    struct group {
        std::size_t rows = 0;
        megahertz last{0.0};
        int direction = 0;  ///< of the clocks: +1 they rise, -1 they fall
        bool fixed = false;
        std::map<double, std::size_t> lines;
    };
    using key = std::tuple<int, int, int>;  ///< rank, stage, kind

    parsed_profile refused(std::string const& why) const
    {
        return {{}, std::string{name_} + ", line " + std::to_string(lines_.number) + ": " + why};
    }

    std::size_t column(std::string_view name) const
    {
        std::size_t k = 0;
        while (k < header_.size() && header_[k] != name) {
            ++k;
        }
        return k;
    }

    std::string read_row(std::vector<std::string_view> const& cells, profile_row& row, bool& waits) const
    {
        if (cells.size() != header_.size()) {
            return std::to_string(cells.size()) + " cells under a header of " + std::to_string(header_.size());
        }
        auto const cell = [&](std::string_view name) { return cells[column(name)]; };
        auto const wrong = [&](std::string_view name, char const* expected) {
            return std::string{name} + " is '" + std::string{cell(name)} + "', but " + expected;
        };
        if (!read_number(cell("stage"), row.stage.value) || row.stage.value < 0 || row.stage.value > 32767) {
            return wrong("stage", "a stage is a number from 0 on");
        }
        bool known = waits = cell("instruction") == "blocking";
        for (int k = 0; k <= static_cast<int>(instruction_kind::send_gradient); ++k) {
            auto const name = profile_name(static_cast<instruction_kind>(k));
            if (!name.empty() && name == cell("instruction")) {
                row.kind = static_cast<instruction_kind>(k);
                known = true;
            }
        }
        if (!known) {
            return wrong("instruction", "it is forward, backward, input_gradient, weight_gradient, send_activation, send_gradient or blocking");
        }
        if (!read_number(cell("frequency"), row.clock.count) || !std::isfinite(row.clock.count) || row.clock.count < 0.0) {
            return wrong("frequency", "a clock is a number of MHz, or 0 where no clock matters");
        }
        if (!read_number(cell("time"), row.time.count) || !std::isfinite(row.time.count) || row.time.count <= 0.0 || row.time.count > 2000.0) {
            return wrong("time", "a time is a positive number of seconds, at most 2000");
        }
        if (!read_number(cell("energy"), row.energy.count) || !std::isfinite(row.energy.count) || row.energy.count < 0.0 || row.energy.count > 1e6) {
            return wrong("energy", "an energy is a number of joules from 0 to a million");
        }
        if (column("rank") < header_.size() && (!read_number(cell("rank"), row.rank.value) || row.rank.value < 0)) {
            return wrong("rank", "a rank is a number from 0 on");
        }
        if (column("throttled") < header_.size()) {
            if (cell("throttled") != "0" && cell("throttled") != "1") {
                return wrong("throttled", "it is 0 or 1");
            }
            row.throttled = cell("throttled") == "1";
        }
        return {};
    }

    static std::string name_of_group(key const& k)
    {
        auto const [rank, stage, kind] = k;
        return (rank < 0 ? "" : "rank " + std::to_string(rank) + " ") + "stage " + std::to_string(stage) + " "
            + std::string{profile_name(static_cast<instruction_kind>(kind))};
    }

    std::string check(profile_row const& row)
    {
        key const k{row.rank.value, row.stage.value, static_cast<int>(row.kind)};
        auto& g = groups_[k];
        if (auto const [found, fresh] = g.lines.emplace(row.clock.count, lines_.number); !fresh) {
            return name_of_group(k) + " has this clock twice, first in line " + std::to_string(found->second);
        }
        g.fixed = g.fixed || row.clock.count == 0.0;
        if (g.fixed && g.rows > 0) {
            return name_of_group(k) + " has a row at clock 0, which says that no clock matters, and other rows";
        }
        auto const direction = row.clock > g.last ? 1 : -1;
        if (g.rows > 1 && direction != g.direction) {
            return name_of_group(k) + " is not sorted by clock";
        }
        g.direction = direction;
        g.last = row.clock;
        g.rows += 1;
        return {};
    }

    std::string check_whole(profile const& measured) const
    {
        if (measured.rows.empty()) {
            return "the profile has no rows";
        }
        std::map<std::pair<int, int>, bool> there;
        std::map<int, bool> kinds;
        for (auto const& row : measured.rows) {
            there[{row.stage.value, static_cast<int>(row.kind)}] = true;
            kinds[static_cast<int>(row.kind)] = true;
        }
        for (int stage = 0; stage < stages_of(measured); ++stage) {
            for (auto const& [kind, yes] : kinds) {
                bool const at_end = kind == static_cast<int>(instruction_kind::send_activation) ? stage + 1 == stages_of(measured)
                                                                                              : kind == static_cast<int>(instruction_kind::send_gradient) && stage == 0;
                if (yes && !at_end && !there.contains({stage, kind})) {
                    return "the profile ends and has no row of " + name_of_group({-1, stage, kind});
                }
            }
        }
        for (auto const& [k, g] : groups_) {
            auto const options = options_of(measured, rank_id{std::get<0>(k)}, stage_id{std::get<1>(k)}, static_cast<instruction_kind>(std::get<2>(k)));
            if (options.size() < 2 && !g.fixed) {
                return name_of_group(k) + " was measured at one clock only (line " + std::to_string(g.lines.begin()->second)
                    + "): there is nothing to choose; clock 0 says that no clock matters";
            }
        }
        return {};
    }

    line_reader lines_;
    std::string_view name_;
    std::vector<std::string_view> header_;
    std::map<key, group> groups_;
};

}  // namespace detail

/// Reads a profile; `name` is the file's, for the sentence. Cost: linear but for the sorting by clock.
inline parsed_profile parse_profile(std::string_view text, std::string_view name)
{
    return detail::profile_reader{text, name}.read();
}

/// The profile as text, numbers with the fewest digits that read back the same.
inline std::string to_csv(profile const& measured)
{
    bool ranks = false;
    bool throttled = false;
    for (auto const& row : measured.rows) {
        ranks = ranks || row.rank.value >= 0;
        throttled = throttled || row.throttled;
    }
    auto const number = [](double value) {
        char digits[32];
        return std::string{digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
    };
    std::string text = std::string{ranks ? "rank," : ""} + "stage,instruction,frequency,time,energy" + (throttled ? ",throttled\n" : "\n");
    for (auto const& row : measured.rows) {
        text += (ranks ? std::to_string(row.rank.value) + "," : "") + std::to_string(row.stage.value) + "," + std::string{profile_name(row.kind)} + ","
            + number(row.clock.count) + "," + number(row.time.count) + "," + number(row.energy.count) + (throttled ? row.throttled ? ",1\n" : ",0\n" : "\n");
    }
    if (measured.blocking > watts{}) {  // a second of it
        text += std::string{ranks ? "0," : ""} + "0,blocking,0,1," + number(measured.blocking.count) + (throttled ? ",0\n" : "\n");
    }
    return text;
}

}  // namespace rheo::inline v0
