// SPDX-License-Identifier: Apache-2.0
#include "executor/records/kineto/kineto_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "executor/records/kineto/event_kind.hpp"
#include "executor/records/kineto/microseconds.hpp"

namespace rheo::inline v0 {

namespace {

std::optional<std::int64_t> integer_in(std::string_view text)
{
    std::int64_t value = 0;
    auto const [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
    return wrong == std::errc{} && end == text.data() + text.size() ? std::optional{value} : std::nullopt;
}

/// An event as its members come, in any order. Texts keep their memory from one event to the next.
struct raw_event {
    bool complete = false;
    event_kind kind = event_kind::other;
    std::string name;
    std::optional<whole_nanoseconds> begin;
    std::optional<whole_nanoseconds> duration;
    std::optional<std::int64_t> thread;
    std::optional<std::int64_t> correlation;
    std::optional<std::int64_t> stream;
    std::optional<std::int64_t> device;
    std::string operation;
    std::string group;

    void clear()
    {
        complete = false;
        kind = event_kind::other;
        begin = duration = std::nullopt;
        thread = correlation = stream = device = std::nullopt;
        name.clear();
        operation.clear();
        group.clear();
    }
};

struct text_hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};

/// Texts, each once, by number.
class text_table {
public:
    explicit text_table(std::vector<std::string>& texts) : texts_{&texts} {}

    std::uint32_t number_of(std::string_view text)
    {
        if (auto const found = numbers_.find(text); found != numbers_.end()) {
            return found->second;
        }
        auto const number = static_cast<std::uint32_t>(texts_->size());
        texts_->emplace_back(text);
        numbers_.emplace(text, number);
        return number;
    }

private:
    std::vector<std::string>* texts_;
    std::unordered_map<std::string, std::uint32_t, text_hash, std::equal_to<>> numbers_;
};

class kineto_reader {
public:
    explicit kineto_reader(byte_source source) : scanner_{std::move(source)} {}

    result<kineto_trace> read()
    {
        if (!read_file()) {
            return failure{error_.empty() ? scanner_.error() : error_};
        }
        put_in_order(out_.trace);
        if (auto const wrong = wrong_length(); !wrong.empty()) {
            return failure{wrong};
        }
        out_.trace.rank.value = out_.rank.value_or(0);
        return std::move(out_);
    }

private:
    bool refuse(std::string_view why)
    {
        error_ = fmt::format("byte {}: {}", scanner_.byte(), why);
        return false;
    }

    /// An object with `traceEvents`, or the list of events by itself, as Chrome takes it.
    bool read_file()
    {
        auto const first = scanner_.next();
        if (first == json_token::error) {
            return false;
        }
        if (first == json_token::begin_array) {
            return read_events() && scanner_.next() == json_token::end;
        }
        if (first != json_token::begin_object) {
            return refuse("expected an object with traceEvents, or a list of events");
        }
        bool has_events = false;
        auto const done = each_member([&](std::string_view key) {
            if (key == "traceEvents") {
                has_events = true;
                return scanner_.next() == json_token::begin_array ? read_events() : refuse_value("a list of events");
            }
            return key == "distributedInfo" ? read_distribution() : skip_value();
        });
        if (!done || scanner_.next() != json_token::end) {
            return false;
        }
        return has_events || refuse("there are no traceEvents; a trace in Chrome's form was expected");
    }

    /// Refuses the token at hand, if that is no error already.
    bool refuse_value(std::string_view wanted) { return scanner_.error().empty() ? refuse(fmt::format("expected {}", wanted)) : false; }

    bool skip_value() { return scanner_.skip(scanner_.next()); }

    /// Calls read(key) for each member of the object that has been opened; it takes the value. @returns false at an error
    template <class Read>
    bool each_member(Read read)
    {
        for (;;) {
            auto const token = scanner_.next();
            if (token == json_token::end_object) {
                return true;
            }
            if (token != json_token::key || !read(scanner_.text())) {
                return false;
            }
        }
    }

    bool read_distribution()
    {
        auto const first = scanner_.next();
        if (first != json_token::begin_object) {
            return scanner_.skip(first);
        }
        return each_member([&](std::string_view key) {
            if (key != "rank") {
                return skip_value();
            }
            std::optional<std::int64_t> rank;
            if (!read_integer(rank)) {
                return false;
            }
            if (rank && (*rank < 0 || *rank > std::numeric_limits<std::int32_t>::max())) {
                return refuse("expected a rank from 0 on");
            }
            out_.rank = rank ? std::optional{static_cast<std::int32_t>(*rank)} : std::nullopt;
            return true;
        });
    }

    bool read_events()
    {
        for (;;) {
            auto const token = scanner_.next();
            if (token == json_token::end_array) {
                return true;
            }
            if (token != json_token::begin_object) {
                return refuse_value("an event, which is an object");
            }
            event_.clear();
            if (!each_member([&](std::string_view key) { return read_member(key); }) || !keep()) {
                return false;
            }
            ++out_.events;
        }
    }

    bool read_member(std::string_view key)
    {
        if (key == "ph") {
            return read_text([&](std::string_view text) { event_.complete = text == "X"; });
        }
        if (key == "cat") {
            return read_text([&](std::string_view text) { event_.kind = kind_of(text); });
        }
        if (key == "name") {
            return read_text([&](std::string_view text) { event_.name = text; });
        }
        if (key == "ts") {
            return read_time(event_.begin);
        }
        if (key == "dur") {
            return read_time(event_.duration);
        }
        if (key == "tid") {
            return read_integer(event_.thread);
        }
        if (key == "args") {
            auto const first = scanner_.next();
            return first == json_token::begin_object ? each_member([&](std::string_view argument) { return read_argument(argument); }) : scanner_.skip(first);
        }
        return skip_value();
    }

    bool read_argument(std::string_view key)
    {
        if (key == "correlation") {
            return read_integer(event_.correlation);
        }
        if (key == "stream") {
            return read_integer(event_.stream);
        }
        if (key == "device") {
            return read_integer(event_.device);
        }
        if (key == "Collective name") {
            return read_text([&](std::string_view text) { event_.operation = text; });
        }
        if (key == "Process Group Name" || key == "Process Group Ranks") {
            return read_text([&](std::string_view text) { event_.group.append(" ").append(text); });
        }
        return skip_value();
    }

    /// Takes a text; another value is passed over.
    template <class Take>
    bool read_text(Take take)
    {
        auto const token = scanner_.next();
        if (token == json_token::text) {
            take(scanner_.text());
        }
        return scanner_.skip(token);
    }

    /// A whole number, also as the end of a text ("stream 7"); another value leaves nothing.
    bool read_integer(std::optional<std::int64_t>& value)
    {
        value = std::nullopt;
        auto const token = scanner_.next();
        auto text = scanner_.text();
        if (token == json_token::text) {
            text.remove_prefix(text.find_last_not_of("0123456789") + 1);
        }
        if (token == json_token::text || token == json_token::number) {
            value = integer_in(text);
        }
        return scanner_.skip(token);
    }

    /// A number of microseconds; another value leaves nothing.
    bool read_time(std::optional<whole_nanoseconds>& value)
    {
        value = std::nullopt;
        auto const token = scanner_.next();
        if (token == json_token::number) {
            value = nanoseconds_of(scanner_.text());
            if (!value) {
                return refuse("a time of 2^61 ns or more");
            }
        }
        return scanner_.skip(token);
    }

    bool keep()
    {
        auto& e = event_;
        bool const is_mark = e.kind == event_kind::mark && e.name.starts_with("ProfilerStep#");
        if (!e.complete || e.kind == event_kind::other || (e.kind == event_kind::mark && !is_mark)) {
            return true;
        }
        if (!e.begin || !e.duration || *e.duration < whole_nanoseconds{}) {
            ++out_.left_out;
            return true;
        }
        auto const end = *e.begin + *e.duration;
        if (is_mark) {
            out_.trace.steps.push_back({integer_in(std::string_view{e.name}.substr(13)).value_or(0), *e.begin, end});
        } else if (e.kind == event_kind::launch) {
            if (e.correlation) {
                out_.trace.launches.push_back({*e.begin, end, *e.correlation});
            }
        } else {
            return keep_work({.begin = *e.begin, .end = end, .correlation = e.correlation.value_or(no_correlation)});
        }
        return true;
    }

    bool keep_work(device_event work)
    {
        auto& trace = out_.trace;
        auto const& e = event_;
        auto const [place, is_first] =
            streams_.emplace(traced_stream{e.device.value_or(0), e.stream ? *e.stream : e.thread.value_or(0)}, static_cast<std::uint16_t>(streams_.size()));
        if (is_first) {
            if (streams_.size() > std::numeric_limits<std::uint16_t>::max()) {
                return refuse("more than 65535 streams");
            }
            trace.streams.push_back(place->first);
        }
        work.stream = place->second;
        work.name = names_.number_of(e.name);
        if (e.kind == event_kind::memory) {
            work.work = device_work::memory;
        } else if (communicates(e.name)) {
            work.work = device_work::communication;
            if (auto const operation = blocking_operation(e.operation.empty() ? e.name : e.operation); !operation.empty()) {
                work.collective = collectives_.number_of(std::string{operation} + e.group);
            }
        }
        trace.events.push_back(work);
        return true;
    }

    /// A sentence when events lie too far apart to be of one run.
    std::string wrong_length() const
    {
        auto first = latest_event_time;
        auto last = whole_nanoseconds{} - latest_event_time;
        auto const count = [&](auto const& events) {
            for (auto const& event : events) {
                first = std::min(first, event.begin);
                last = std::max(last, event.end);
            }
        };
        count(out_.trace.events);
        count(out_.trace.launches);
        count(out_.trace.steps);
        return first < last && last - first >= longest_trace
                   ? fmt::format("byte {}: its events are {} ns apart, but a trace is shorter than 2^50 ns (13 days)", scanner_.byte(), (last - first).count)
                   : std::string{};
    }

    json_scanner scanner_;
    std::string error_;
    kineto_trace out_;
    raw_event event_;
    std::map<traced_stream, std::uint16_t> streams_;
    text_table names_{out_.trace.names};
    text_table collectives_{out_.trace.collectives};
};

}  // namespace

result<kineto_trace> read_kineto(byte_source source) { return kineto_reader{std::move(source)}.read(); }

}  // namespace rheo::inline v0
