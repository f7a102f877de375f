#pragma once
// SPDX-License-Identifier: Apache-2.0

// Events as JSON lines: one object per line, units in the key names, the same keys in the same order
// every time. Each rank appends to a file of its own, so a killed rank's record ends in the middle of a
// line at worst; the reader takes what is whole and says that the end is torn. Numbers are written in
// the shortest form that reads back to the same bits.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <istream>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "rheo/trace/event.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class Number>
void write_number(std::ostream& out, Number value)
{
    std::array<char, 32> text{};
    auto const end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
    out.write(text.data(), end - text.data());
}

/// Reads one line from the left; any deviation leaves `expected` set.
struct event_reader {
    std::string_view rest;
    std::string expected;

    void literal(std::string_view text)
    {
        if (!expected.empty()) {
            return;
        }
        if (!rest.starts_with(text)) {
            expected = "'" + std::string{text} + "'";
            return;
        }
        rest.remove_prefix(text.size());
    }

    template <class Number>
    void number(std::string_view key, Number& value)
    {
        literal(key);
        if (!expected.empty()) {
            return;
        }
        auto const [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
        if (error != std::errc{}) {
            expected = "a number after '" + std::string{key} + "'";
            return;
        }
        rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    }

    template <class Number>
    void number_if_there(std::string_view key, Number& value)
    {
        if (expected.empty() && rest.starts_with(key)) {
            number(key, value);
        }
    }

    void name(activity& value)
    {
        auto const length = rest.find('"');
        auto const found = expected.empty() && length != rest.npos ? activity_named(rest.substr(0, length)) : std::nullopt;
        if (!found) {
            expected = expected.empty() ? "the name of an activity" : expected;
            return;
        }
        value = *found;
        rest.remove_prefix(length);
    }
};

}  // namespace detail

/// One event as one line, its end included. Cost: 0.15 us, of which two times in their shortest form are most.
template <class OnlyWhenCalled = void>
class json_line {
public:
    explicit json_line(trace_event const& e)
    {
        number(R"({"rank":)", e.rank.value);
        literal(R"(,"name":")");
        literal(name_of(e.activity));
        number(R"(","pipeline":)", e.pipeline.value);
        number(R"(,"stage":)", e.stage.value);
        number(R"(,"item":)", e.item);
        number(R"(,"generation":)", e.generation.value);
        number(R"(,"step":)", e.step.value);
        number(R"(,"attempt":)", e.attempt.value);
        number(R"(,"start_s":)", e.start.count);
        number(R"(,"end_s":)", e.end.count);
        if (e.clock.count > 0.0) {
            number(R"(,"clock_MHz":)", e.clock.count);
        }
        if (e.energy.count > 0.0) {
            number(R"(,"energy_J":)", e.energy.count);
        }
        if (e.peer != no_rank) {
            number(R"(,"peer":)", e.peer.value);
        }
        if (e.size != bytes{}) {
            number(R"(,"bytes":)", e.size.count);
        }
        if (e.held != unknown_bytes) {
            number(R"(,"held_bytes":)", e.held.count);
        }
        literal("}\n");
    }

    std::string_view text() const { return {text_.data(), size_}; }

private:
    void literal(std::string_view part)
    {
        expects(part.size() <= text_.size() - size_, "the line of an event has at most 512 characters");
        std::copy(part.begin(), part.end(), text_.begin() + static_cast<std::ptrdiff_t>(size_));
        size_ += part.size();
    }

    template <class Number>
    void number(std::string_view key, Number value)
    {
        literal(key);
        size_ = static_cast<std::size_t>(std::to_chars(text_.data() + size_, text_.data() + text_.size(), value).ptr - text_.data());
    }

    std::array<char, 512> text_;  // 14 numbers of at most 24 characters, 158 characters of keys, and a name of 17
    std::size_t size_ = 0;
};

/// Writes the events, one a line, in their order.
template <class OnlyWhenCalled = void>
void write_json_lines(std::ostream& out, array_view<trace_event const> events)
{
    for (auto const& e : events) {
        out << json_line{e}.text();
    }
}

/// What a file of JSON lines holds.
struct trace_record {
    std::vector<trace_event> events;
    bool torn = false;  ///< the last line has no end and was left out
    std::string error;  ///< why reading stopped, with the line's number; empty when all is well

    explicit operator bool() const { return error.empty(); }
};

/// Reads the event of one line, given without its end. @returns empty, or at which column something else was expected
template <class OnlyWhenCalled = void>
std::string read_json_line(std::string_view line, trace_event& e)
{
    detail::event_reader reader{line, {}};
    reader.number(R"({"rank":)", e.rank.value);
    reader.literal(R"(,"name":")");
    reader.name(e.activity);
    reader.number(R"(",)"
                  R"("pipeline":)",
                  e.pipeline.value);
    reader.number(R"(,"stage":)", e.stage.value);
    reader.number(R"(,"item":)", e.item);
    reader.number(R"(,"generation":)", e.generation.value);
    reader.number(R"(,"step":)", e.step.value);
    reader.number(R"(,"attempt":)", e.attempt.value);
    reader.number(R"(,"start_s":)", e.start.count);
    reader.number(R"(,"end_s":)", e.end.count);
    reader.number_if_there(R"(,"clock_MHz":)", e.clock.count);
    reader.number_if_there(R"(,"energy_J":)", e.energy.count);
    reader.number_if_there(R"(,"peer":)", e.peer.value);
    reader.number_if_there(R"(,"bytes":)", e.size.count);
    reader.number_if_there(R"(,"held_bytes":)", e.held.count);
    reader.literal("}");
    if (reader.expected.empty() && !reader.rest.empty()) {
        reader.expected = "the end of the line";
    }
    return reader.expected.empty() ? std::string{} : "column " + std::to_string(line.size() - reader.rest.size() + 1) + ": expected " + reader.expected;
}

/// Reads what write_json_lines wrote. Stops at the first bad line, with the line's number and what was expected.
template <class OnlyWhenCalled = void>
trace_record read_json_lines(std::istream& in)
{
    trace_record record;
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
        if (in.eof()) {
            record.torn = true;
            break;
        }
        trace_event e{};
        if (auto const wrong = read_json_line(line, e); !wrong.empty()) {
            record.error = "line " + std::to_string(number) + ", " + wrong;
            break;
        }
        record.events.push_back(e);
    }
    return record;
}

}  // namespace rheo::inline v0
