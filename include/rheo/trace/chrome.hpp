#pragma once
// SPDX-License-Identifier: Apache-2.0

// Events in the Chrome trace format, which Perfetto and chrome://tracing open: a process per rank, a
// thread per stream (compute, transfers, reductions, step, recovery), a complete ("X") event for each
// event, all ranks on one time line in microseconds since launch.

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/trace/event.hpp"
#include "rheo/trace/json_lines.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// What can continue at the same time on one rank.
enum class trace_stream : std::uint8_t { compute, send, receive, reduction, step, recovery };

inline constexpr std::string_view trace_stream_names[] = {"compute", "send", "receive", "reduction", "step", "recovery"};

constexpr trace_stream stream_of(activity a)
{
    if (is_recovery(a)) {
        return trace_stream::recovery;
    }
    if (!is_instruction(a)) {
        return trace_stream::step;
    }
    auto const kind = static_cast<instruction_kind>(a);
    if (is_compute(kind) || is_local(kind)) {
        return trace_stream::compute;
    }
    if (is_reduction(kind)) {
        return trace_stream::reduction;
    }
    return is_send(kind) ? trace_stream::send : trace_stream::receive;
}

namespace detail {

/// All digits and no exponent: the shortest decimal that reads back to the same bits.
template <class OnlyWhenCalled = void>
void write_microseconds(std::ostream& out, seconds time)
{
    std::array<char, 400> text{};
    auto const end = std::to_chars(text.data(), text.data() + text.size(), in_microseconds(time), std::chars_format::fixed).ptr;
    out.write(text.data(), end - text.data());
}

template <class OnlyWhenCalled = void>
void write_metadata(std::ostream& out, std::string_view kind, int process, int thread, std::string_view name)
{
    out << R"({"ph":"M","name":")" << kind << R"(","pid":)";
    write_number(out, process);
    out << R"(,"tid":)";
    write_number(out, thread);
    out << R"(,"args":{"name":")" << name << "\"}},\n";
}

}  // namespace detail

/// Writes a trace event by event, in any order, of any number of ranks: it keeps no event, only which streams have their names already.
template <class OnlyWhenCalled = void>
class chrome_trace_writer {
public:
    explicit chrome_trace_writer(std::ostream& out) : out_{&out} { out << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"; }

    void add(trace_event const& e)
    {
        auto& out = *out_;
        auto const rank = at(e.rank);
        auto const stream = static_cast<std::size_t>(stream_of(e.activity));
        if (!first_) {
            out << ",\n";
        }
        first_ = false;
        if (rank >= seen_.size()) {
            seen_.resize(rank + 1);
        }
        if (seen_[rank].empty()) {
            seen_[rank].resize(std::size(trace_stream_names));
            detail::write_metadata(out, "process_name", e.rank.value, 0, "rank " + std::to_string(e.rank.value));
        }
        if (!seen_[rank][stream]) {
            seen_[rank][stream] = true;
            detail::write_metadata(out, "thread_name", e.rank.value, static_cast<int>(stream), trace_stream_names[stream]);
        }
        out << R"({"ph":"X","name":")" << label_of(e) << R"(","pid":)";
        detail::write_number(out, e.rank.value);
        out << R"(,"tid":)";
        detail::write_number(out, static_cast<int>(stream));
        out << R"(,"ts":)";
        detail::write_microseconds(out, e.start);
        out << R"(,"dur":)";
        detail::write_microseconds(out, e.end - e.start);
        out << R"(,"args":{"pipeline":)";
        detail::write_number(out, e.pipeline.value);
        out << R"(,"stage":)";
        detail::write_number(out, e.stage.value);
        out << R"(,"generation":)";
        detail::write_number(out, e.generation.value);
        out << R"(,"step":)";
        detail::write_number(out, e.step.value);
        out << R"(,"attempt":)";
        detail::write_number(out, e.attempt.value);
        if (e.clock.count > 0.0) {
            out << R"(,"clock_MHz":)";
            detail::write_number(out, e.clock.count);
        }
        if (e.energy.count > 0.0) {
            out << R"(,"energy_J":)";
            detail::write_number(out, e.energy.count);
        }
        out << "}}";
    }

    /// Ends the trace. Nothing may be added behind it.
    void finish() { *out_ << "\n]}\n"; }

private:
    std::ostream* out_;
    std::vector<std::vector<bool>> seen_;  // rank -> stream -> named already
    bool first_ = true;
};

/// Writes a whole trace of any number of ranks. Events may come in any order.
template <class OnlyWhenCalled = void>
void write_chrome_trace(std::ostream& out, array_view<trace_event const> events)
{
    chrome_trace_writer<> writer{out};
    for (auto const& e : events) {
        writer.add(e);
    }
    writer.finish();
}

}  // namespace rheo::inline v0
