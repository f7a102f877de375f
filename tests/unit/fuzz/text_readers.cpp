// SPDX-License-Identifier: Apache-2.0
#include "text_readers.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "executor/records/kineto/kineto_reader.hpp"
#include "readers.hpp"
#include "rheo/analyze/device/analysis.hpp"
#include "rheo/analyze/step/run_analysis.hpp"
#include "rheo/energy/profile/profile_csv.hpp"
#include "rheo/job/job_event.hpp"
#include "rheo/job/job_events_csv.hpp"
#include "rheo/partition/layer_profile_csv.hpp"
#include "rheo/schedule/draw/text_schedule.hpp"
#include "rheo/simulate/goodput/node_trace_csv.hpp"
#include "rheo/simulate/goodput/replay_goodput.hpp"
#include "rheo/simulate/goodput/replay_policies_csv.hpp"
#include "rheo/simulate/goodput/steps_table_csv.hpp"
#include "rheo/trace/chakra/dependencies.hpp"
#include "rheo/trace/chakra/reader.hpp"
#include "rheo/trace/chakra/writer.hpp"
#include "rheo/trace/json_lines.hpp"

namespace fuzz {

using namespace rheo;

void schedule(std::span<std::uint8_t const> bytes)
{
    auto const text = text_of(bytes);
    if (auto const read = parse_grid(text, {})) {
        promise(*parse_grid(to_text(*read), {}) == *read, "a grid that was read is written so that it reads the same");
    }
    for (int const slices : {1, 2}) {
        auto const read = parse_schedule_text(text, slices);
        promise(!read || read->microbatches > 0, "a schedule has microbatches");
        if (read) {
            auto const again = parse_schedule_text(to_text(read->program), slices);
            promise(again && again->program == read->program, "a schedule that was read is written so that it reads the same");
        }
    }
}

void layer_profile(std::span<std::uint8_t const> bytes)
{
    auto const read = parse_layer_profile(text_of(bytes), "layers.csv");
    if (read) {
        promise(*parse_layer_profile(to_csv(*read), "again") == *read, "a profile of layers that was read is written so that it reads the same");
    } else {
        promise(read.error().starts_with("layers.csv, line "), "a reason names the file and the line");
    }
}

void clock_profile(std::span<std::uint8_t const> bytes)
{
    auto const read = parse_profile(text_of(bytes), "clocks.csv");
    if (read) {
        promise(*parse_profile(to_csv(*read), "again") == *read, "a profile that was read is written so that it reads the same");
    } else {
        promise(read.error().starts_with("clocks.csv, line "), "a reason names the file and the line");
    }
}

void trace_lines(std::span<std::uint8_t const> bytes)
{
    std::istringstream in{std::string{text_of(bytes)}};
    auto const read = read_json_lines(in);
    std::ostringstream out;
    write_json_lines(out, read.events);
    std::istringstream written{out.str()};
    auto const again = read_json_lines(written);
    std::ostringstream same;  // texts are compared: a time may be not a number
    write_json_lines(same, again.events);
    promise(again && !again.torn && same.str() == out.str(), "events that were read are written so that they read the same");
    auto events = read.events;
    std::erase_if(events, [](trace_event const& e) { return !(std::abs(e.start.count) < 1e9 && std::abs(e.end.count) < 1e9); });
    put_in_order(events);
    auto const run = recorded_steps(array_view<trace_event const>{events});
    auto const analysis = analyze_run(run);
    promise(analysis || analysis.error().ends_with("wait for each other in a circle"), "the steps of any events are analyzed, or contradict each other");
}

namespace {

struct chakra_answer {
    std::string written;  ///< the nodes that were read, as a file
    std::string error;
};

chakra_answer read_chakra(std::string_view file)
{
    chakra_answer answer;
    chakra_reader reader{chakra_bytes{file}};
    auto metadata = reader.metadata();
    metadata.version = metadata.version.empty() ? "0" : metadata.version;  // a writer wants one
    chakra_writer writer{[&](std::string_view piece) { answer.written += piece; }, metadata};
    chakra_dependencies<> dependencies;
    while (auto const* const node = reader.next()) {
        dependencies.add(*node);
        writer.add(*node);
    }
    writer.finish();
    answer.error = reader.error();
    auto const broken_graph = dependencies.finish();
    promise(reader.error().empty() || reader.error().starts_with("byte "), "a reason names the byte");
    promise(broken_graph.empty() || broken_graph.find("node") != broken_graph.npos, "a fault of the graph names the node");
    return answer;
}

}  // namespace

void chakra_file(std::span<std::uint8_t const> bytes)
{
    auto const read = read_chakra(text_of(bytes));
    auto const again = read_chakra(read.written);
    promise(again.error.empty() && again.written == read.written, "nodes that were read are written so that they read the same");
}

void kineto(std::span<std::uint8_t const> bytes)
{
    auto rest = text_of(bytes);
    auto const read = read_kineto([&](char* to, std::size_t room) {
        auto const count = std::min({room, rest.size(), std::size_t{100}});
        std::copy_n(rest.begin(), count, to);
        rest.remove_prefix(count);
        return count;
    });
    if (!read) {
        promise(read.error().starts_with("byte "), "a reason names the byte");
        return;
    }
    std::vector<rank_trace> const twice{read->trace, read->trace};
    auto const job = analyze(array_view<rank_trace const>{twice});
    promise(job.stragglers.stragglers.empty(), "of two equal ranks none is late");
    for (auto const& rank : job.ranks) {
        auto const& a = rank.account;
        promise(a.host_wait + a.kernel_wait + a.other_wait == idle(a) && a.compute + a.communication - a.overlap <= a.busy && a.busy <= a.span,
                "each nanosecond is in one class");
    }
}

void goodput_tables(std::span<std::uint8_t const> bytes)
{
    auto const text = text_of(bytes);
    auto const tables = parse_steps_tables(text, "t.csv");
    auto const policies = parse_replay_policies(text, "t.csv");
    auto const trace = parse_node_trace(text, "t.csv");
    for (auto const* why : {&tables.error(), &policies.error(), &trace.error()}) {
        promise(why->empty() || why->starts_with("t.csv, line "), "a reason names the file and the line");
    }
    auto const listed = parse_job_events(text, "t.csv", 12, 4);
    promise(listed.error().empty() || listed.error().starts_with("t.csv"), "a reason names the file");
    rank_presence there{12, listed && listed->begins_with_ranks};
    for (std::size_t k = 0; listed && k < listed->events.size(); ++k) {
        promise(there.take(listed->events[k]).empty(), "events that were read can happen");
    }
    node_trace const short_trace{{{{0}, node_id{0}, true}, {{200'000}, node_id{0}, false}}, {"n"}};
    steps_table const short_table{1, {{1'000}, {700}}, 1.0};
    replay_policy const every_other{replay_kind::checkpoint, {2'000}, {500}, 2};
    auto const is_whole = [](steps_table const& table, replay_policy const& policy, node_trace const& nodes) {
        auto const account = replay_goodput(table, policy, nodes);
        promise(account && total_time(*account) == nodes.events.back().at, "what was read can be replayed, and every millisecond is in one class");
    };
    for (std::size_t k = 0; tables && k < tables->size(); ++k) {
        is_whole((*tables)[k].table, every_other, short_trace);
    }
    for (std::size_t k = 0; policies && k < policies->size(); ++k) {
        is_whole(short_table, (*policies)[k].policy, short_trace);
    }
    if (trace) {
        is_whole(short_table, every_other, *trace);
    }
}

}  // namespace fuzz
