#pragma once
// SPDX-License-Identifier: Apache-2.0

// Events in the Chrome trace format, which Perfetto and chrome://tracing open: a process per rank, a
// thread per stream (compute, transfers, reductions, step, recovery), a complete ("X") event for each
// event, all ranks on one time line in microseconds since launch. An arrow leads from each send to the
// computation that takes the message: a flow ("s", "f") of which each end is written by its own event.
// Counters ("C") of a rank show the activations that it holds and the power that its computations draw.

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
#include "rheo/trace/message_flow.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// What can continue at the same time on one rank.
enum class trace_stream : std::uint8_t { compute, send, receive, reduction, step, recovery, checkpoint };

inline constexpr std::string_view trace_stream_names[] = {"compute", "send", "receive", "reduction", "step", "recovery", "checkpoint"};

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
        name_stream(e.rank, stream_of(e.activity));
        write_slice(e);
        if (auto const end = message_end_of(e)) {
            write_flow(e, *end);
        }
        if (e.held != unknown_bytes) {
            write_counter(e.rank, "activations", "bytes", e.end, e.held.count);
        }
        if (e.energy.count > 0.0 && e.end > e.start) {  // none of it is drawn beside computations
            write_counter(e.rank, "power of computations", "W", e.start, (e.energy / (e.end - e.start)).count);
            write_counter(e.rank, "power of computations", "W", e.end, 0);
        }
    }

    /// What a rank does beside its events. @param name as it may stand in a JSON text
    void add_span(rank_id rank, trace_stream stream, std::string_view name, seconds start, seconds end)
    {
        name_stream(rank, stream);
        begin_slice(rank, stream, name, start, end);
        *out_ << '}';
    }

    /// Ends the trace. Nothing may be added behind it.
    void finish() { *out_ << "\n]}\n"; }

private:
    void name_stream(rank_id named, trace_stream of)
    {
        auto const rank = at(named);
        auto const stream = static_cast<std::size_t>(of);
        if (!first_) {
            *out_ << ",\n";
        }
        first_ = false;
        if (rank >= seen_.size()) {
            seen_.resize(rank + 1);
        }
        if (seen_[rank].empty()) {
            seen_[rank].resize(std::size(trace_stream_names));
            detail::write_metadata(*out_, "process_name", named.value, 0, "rank " + std::to_string(named.value));
        }
        if (!seen_[rank][stream]) {
            seen_[rank][stream] = true;
            detail::write_metadata(*out_, "thread_name", named.value, static_cast<int>(stream), trace_stream_names[stream]);
        }
    }

    template <class Number>
    void number(std::string_view key, Number value)
    {
        *out_ << key;
        detail::write_number(*out_, value);
    }

    void time(std::string_view key, seconds value)
    {
        *out_ << key;
        detail::write_microseconds(*out_, value);
    }

    /// Without its end, so that arguments can follow.
    void begin_slice(rank_id rank, trace_stream stream, std::string_view name, seconds start, seconds end)
    {
        *out_ << R"({"ph":"X","name":")" << name << '"';
        number(R"(,"pid":)", rank.value);
        number(R"(,"tid":)", static_cast<int>(stream));
        time(R"(,"ts":)", start);
        time(R"(,"dur":)", end - start);
    }

    void write_slice(trace_event const& e)
    {
        begin_slice(e.rank, stream_of(e.activity), label_of(e), e.start, e.end);
        number(R"(,"args":{"pipeline":)", e.pipeline.value);
        number(R"(,"stage":)", e.stage.value);
        number(R"(,"generation":)", e.generation.value);
        number(R"(,"step":)", e.step.value);
        number(R"(,"attempt":)", e.attempt.value);
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
        *out_ << "}}";
    }

    /// Viewers join the ends by category, name and number, and put each into the slice that is open on its thread then: the one written before it.
    void write_flow(trace_event const& e, message_end end)
    {
        std::array<char, 16> digits{};
        auto const last = std::to_chars(digits.data(), digits.data() + digits.size(), end.message, 16).ptr;
        *out_ << ",\n" << (end.is_sent ? R"({"ph":"s")" : R"({"ph":"f","bp":"e")");
        *out_ << R"(,"cat":"message","name":")" << (end.is_gradient ? "gradient" : "activation") << R"(","id":"0x)";
        out_->write(digits.data(), last - digits.data());
        number(R"(","pid":)", e.rank.value);
        number(R"(,"tid":)", static_cast<int>(stream_of(e.activity)));
        time(R"(,"ts":)", e.start);
        *out_ << '}';
    }

    template <class Number>
    void write_counter(rank_id rank, std::string_view name, std::string_view unit, seconds when, Number value)
    {
        *out_ << ",\n";
        *out_ << R"({"ph":"C","name":")" << name << '"';
        number(R"(,"pid":)", rank.value);
        time(R"(,"ts":)", when);
        *out_ << R"(,"args":{")" << unit << '"';
        number(":", value);
        *out_ << "}}";
    }

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
