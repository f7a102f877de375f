#pragma once
// SPDX-License-Identifier: Apache-2.0

// Profiles as text: a header line, then a row per measurement, `stage,instruction,frequency,time,energy` in MHz, s
// and J, with `rank` and `throttled` (0 or 1) as further columns where they are known. One row may say `blocking` at stage 0 and clock 0:
// what a device that waits draws in that time, for any stage. Every fault is one
// sentence with the file and the line, and a profile with a fault is rejected as a whole.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/energy/profile/profile.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// More rows than any table of clocks has: a file with more is something else.
inline constexpr std::size_t most_profile_rows = 200'000;

namespace detail {

template <class OnlyWhenCalled = void>
class profile_reader {
public:
    profile_reader(std::string_view text, std::string_view name) : lines_{text}, name_{name} {}

    result<profile> read()
    {
        profile measured;
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
        auto const fault = read_rows(measured);
        group_rows(measured);
        if (auto const earlier = fault_in_a_group(measured); !earlier.empty()) {
            return refused(earlier);
        }
        if (!fault.empty()) {
            return refused(fault);
        }
        if (auto const whole = check_whole(measured); !whole.empty()) {
            return refused(whole);
        }
        return measured;
    }

private:
    /// Rows up to the end or to the first that is wrong by itself: what is wrong with it.
    std::string read_rows(profile& measured)
    {
        std::string_view line;
        while (lines_.next(line)) {
            if (line.empty()) {
                continue;
            }
            profile_row row;
            bool waits = false;
            if (auto const fault = read_row(cells_of(line), row, waits); !fault.empty()) {
                return fault;
            }
            if (waits) {
                auto const power = row.energy / row.time;
                if (measured.blocking > watts{} || row.clock.count != 0.0 || row.stage.value != 0 || power.count <= 0.0 || power.count > 1e6) {
                    return "blocking is a single row, at stage 0 and clock 0, of a power up to a million watts";
                }
                measured.blocking = power;
                continue;
            }
            measured.rows.push_back(row);
            line_of_.push_back(lines_.number);
            if (measured.rows.size() > most_profile_rows) {
                return "more than " + std::to_string(most_profile_rows) + " rows; a profile has one per stage, instruction and clock";
            }
        }
        return {};
    }

    failure refused(std::string const& why) const { return {std::string{name_} + ", line " + std::to_string(lines_.number) + ": " + why}; }

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
            return std::string{name} + " is " + in_quotes(cell(name)) + ", but " + expected;
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

    static std::string name_of_group(profile_row const& of)
    {
        return (of.rank.value < 0 ? "" : "rank " + std::to_string(of.rank.value) + " ") + "stage " + std::to_string(of.stage.value) + " " +
               std::string{profile_name(of.kind)};
    }

    /// The rows of each rank, stage and kind together, in the order of the file.
    void group_rows(profile const& measured)
    {
        auto const& rows = measured.rows;
        for (std::size_t k = 0; k < rows.size(); ++k) {
            grouped_.push_back(k);
        }
        std::sort(grouped_.begin(), grouped_.end(), [&](std::size_t a, std::size_t b) {
            return rows[a].rank != rows[b].rank     ? rows[a].rank < rows[b].rank
                   : rows[a].stage != rows[b].stage ? rows[a].stage < rows[b].stage
                   : rows[a].kind != rows[b].kind   ? rows[a].kind < rows[b].kind
                                                    : a < b;
        });
    }

    /// One after the last place in `grouped_` of the group that begins there.
    std::size_t end_of_group(profile const& measured, std::size_t begin) const
    {
        auto const& first = measured.rows[grouped_[begin]];
        std::size_t end = begin + 1;
        for (; end < grouped_.size(); ++end) {
            auto const& row = measured.rows[grouped_[end]];
            if (row.rank != first.rank || row.stage != first.stage || row.kind != first.kind) {
                break;
            }
        }
        return end;
    }

    /// What is wrong with the row at that place beside those of its group before it.
    std::string fault_beside_earlier(profile const& measured, std::size_t begin, std::size_t place) const
    {
        auto const clock = [&](std::size_t k) { return measured.rows[grouped_[k]].clock; };
        auto const group = [&] { return name_of_group(measured.rows[grouped_[begin]]); };
        bool const turns = place > begin + 1 && (clock(place) > clock(place - 1)) != (clock(place - 1) > clock(place - 2));
        for (auto k = begin; k < place && (turns || clock(place) == clock(place - 1)); ++k) {  // clocks that rise or fall are different
            if (clock(k) == clock(place)) {
                return group() + " has this clock twice, first in line " + std::to_string(line_of_[grouped_[k]]);
            }
        }
        if (place > begin && (clock(begin).count == 0.0 || clock(place).count == 0.0)) {
            return group() + " has a row at clock 0, which says that no clock matters, and other rows";
        }
        return turns ? group() + " is not sorted by clock" : std::string{};
    }

    /// The first one in the file; the reader then stands in its line.
    std::string fault_in_a_group(profile const& measured)
    {
        std::string first;
        std::size_t row = grouped_.size();
        for (std::size_t begin = 0; begin < grouped_.size();) {
            auto const end = end_of_group(measured, begin);
            for (auto place = begin; place < end && grouped_[place] < row; ++place) {
                if (auto fault = fault_beside_earlier(measured, begin, place); !fault.empty()) {
                    first = fault;
                    row = grouped_[place];
                }
            }
            begin = end;
        }
        lines_.number = first.empty() ? lines_.number : line_of_[row];
        return first;
    }

    std::string check_whole(profile const& measured) const
    {
        if (measured.rows.empty()) {
            return "the profile has no rows";
        }
        constexpr auto kinds = static_cast<std::size_t>(instruction_kind::send_gradient) + 1;
        auto const stages = stages_of(measured);
        std::vector<char> there((static_cast<std::size_t>(stages) + 1) * kinds);  // by stage and kind; after the last stage: in any
        for (auto const& row : measured.rows) {
            there[at(row.stage) * kinds + static_cast<std::size_t>(row.kind)] = 1;
            there[static_cast<std::size_t>(stages) * kinds + static_cast<std::size_t>(row.kind)] = 1;
        }
        for (int stage = 0; stage < stages; ++stage) {
            for (std::size_t k = 0; k < kinds; ++k) {
                auto const kind = static_cast<instruction_kind>(k);
                bool const at_end = kind == instruction_kind::send_activation ? stage + 1 == stages : kind == instruction_kind::send_gradient && stage == 0;
                if (there[static_cast<std::size_t>(stages) * kinds + k] != 0 && !at_end && there[static_cast<std::size_t>(stage) * kinds + k] == 0) {
                    profile_row absent{};
                    absent.stage = stage_id{stage};
                    absent.kind = kind;
                    return "the profile ends and has no row of " + name_of_group(absent);
                }
            }
        }
        for (std::size_t begin = 0; begin < grouped_.size();) {
            auto const end = end_of_group(measured, begin);
            auto const& first = measured.rows[grouped_[begin]];
            if (first.clock.count != 0.0 && options_of(measured, first.rank, first.stage, first.kind).size() < 2) {
                bool const falls = measured.rows[grouped_[end - 1]].clock < first.clock;
                return name_of_group(first) + " was measured at one clock only (line " + std::to_string(line_of_[grouped_[falls ? end - 1 : begin]]) +
                       "): there is nothing to choose; clock 0 says that no clock matters";
            }
            begin = end;
        }
        return {};
    }

    line_reader lines_;
    std::string_view name_;
    std::vector<std::string_view> header_;
    std::vector<std::size_t> line_of_;  ///< of each row
    std::vector<std::size_t> grouped_;  ///< rows, see group_rows
};

}  // namespace detail

/// Reads a profile; `name` is the file's, for the sentence. Cost: linear but for the sorting by clock.
template <class OnlyWhenCalled = void>
result<profile> parse_profile(std::string_view text, std::string_view name)
{
    return detail::profile_reader{text, name}.read();
}

/// The profile as text, numbers with the fewest digits that read back the same.
template <class OnlyWhenCalled = void>
std::string to_csv(profile const& measured)
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
        text += (ranks ? std::to_string(row.rank.value) + "," : "") + std::to_string(row.stage.value) + "," + std::string{profile_name(row.kind)} + "," +
                number(row.clock.count) + "," + number(row.time.count) + "," + number(row.energy.count) + (throttled ? row.throttled ? ",1\n" : ",0\n" : "\n");
    }
    if (measured.blocking > watts{}) {  // a second of it
        text += std::string{ranks ? "0," : ""} + "0,blocking,0,1," + number(measured.blocking.count) + (throttled ? ",0\n" : "\n");
    }
    return text;
}

}  // namespace rheo::inline v0
