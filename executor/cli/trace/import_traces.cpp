// SPDX-License-Identifier: Apache-2.0
// `rheo trace import`: how long the execution traces of a job take on the network of a described cluster.

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cli/analyze/document.hpp"
#include "executor/cli/trace/traces.hpp"
#include "executor/config/cluster/cluster_file.hpp"
#include "executor/config/text_file.hpp"
#include "executor/records/chakra/chakra_traces.hpp"
#include "rheo/simulate/chakra/play_traces.hpp"
#include "rheo/simulate/cluster/cluster_links.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

constexpr std::size_t most_classes_of_text = 24;

seconds as_seconds(seconds time) { return time; }
seconds as_seconds(whole_nanoseconds time) { return in_seconds(time); }

/// What was played, in the terms of every network.
struct imported_job {
    lenient_job const* job;
    trace_import_options const* options;
    std::size_t without_duration = 0;  ///< computations that consumers' rules give a nanosecond
};

std::string ranks_text(std::vector<std::size_t> const& ranks)
{
    constexpr std::size_t most_ranges = 3;
    std::string text;
    std::size_t ranges = 0;
    for (std::size_t i = 0; i < ranks.size();) {
        auto end = i + 1;
        while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) {
            ++end;
        }
        if (++ranges > most_ranges) {
            return fmt::format("{}, ... ({} ranks)", text, ranks.size());
        }
        text += (i == 0 ? "" : ", ") + (end - i == 1 ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[end - 1]));
        i = end;
    }
    return text;
}

template <class Time>
struct rank_class {
    std::vector<std::size_t> ranks;
    played_rank<Time> times;
    Time idle;
};

/// Ranks of equal times, the first ranks first.
template <class Time>
std::vector<rank_class<Time>> classes_of(played_traces<Time> const& played)
{
    std::map<std::tuple<decltype(Time::count), decltype(Time::count), decltype(Time::count)>, std::size_t> places;
    std::vector<rank_class<Time>> classes;
    for (std::size_t rank = 0; rank < played.ranks.size(); ++rank) {
        auto const& times = played.ranks[rank];
        auto const [place, is_first] = places.emplace(std::tuple{times.end.count, times.busy.count, times.exposed.count}, classes.size());
        if (is_first) {
            classes.push_back({{}, times, idle_time(played, rank)});
        }
        classes[place->second].ranks.push_back(rank);
    }
    return classes;
}

template <class Time>
std::size_t last_rank(played_traces<Time> const& played)
{
    return static_cast<std::size_t>(std::max_element(played.ranks.begin(), played.ranks.end(), [](auto const& a, auto const& b) { return a.end < b.end; }) -
                                    played.ranks.begin());
}

template <class Time>
analysis_document document_of(imported_job const& about, played_traces<Time> const& played, std::size_t most)
{
    auto const ranks = played.ranks.size();
    auto const end_text = [](Time time) {
        return std::is_same_v<Time, whole_nanoseconds> ? fmt::format("{} ns", static_cast<std::int64_t>(time.count)) : time_text(as_seconds(time));
    };
    analysis_document document{
        fmt::format("{} {} end after {}; rank {} ends last", ranks, ranks == 1 ? "rank" : "ranks", end_text(played.end), last_rank(played))};
    if (about.job->absent_controls > 0) {
        document.notes.push_back(fmt::format("{} control {} on nodes that are not in the files: left out", about.job->absent_controls,
                                             about.job->absent_controls == 1 ? "dependency is" : "dependencies are"));
    }
    if (about.without_duration > 0) {
        document.notes.push_back(fmt::format("{} {} no duration: by the rules of integer-ns 1 ns each", about.without_duration,
                                             about.without_duration == 1 ? "computation has" : "computations have"));
    }
    if (static_cast<std::size_t>(played.played_ranks) < ranks) {
        document.notes.push_back(fmt::format("ranks whose traces are equal up to their numbers are played once: {} of {}", played.played_ranks, ranks));
    }
    auto const classes = classes_of(played);
    shown_table table{"Ranks", "ranks: times in ms, and shares of the whole in %", classes.size(), {{"rank"}}, {}};
    for (auto const* const title : {"ends", "busy", "%", "exposed communication", "%", "idle", "%"}) {
        table.columns.push_back({title, true});
    }
    for (auto const& c : heaviest(classes, most, [](auto const& of) { return of.times.end; })) {
        auto const part = [&](Time time) { return share(time, played.end); };
        table.rows.push_back({{ranks_text(c.ranks), milliseconds_text(c.times.end), milliseconds_text(c.times.busy), part(c.times.busy),
                               milliseconds_text(c.times.exposed), part(c.times.exposed), milliseconds_text(c.idle), part(c.idle)}});
    }
    document.tables.push_back(std::move(table));
    return document;
}

template <class Time>
std::string json_of(imported_job const& about, played_traces<Time> const& played)
{
    constexpr bool is_whole = std::is_same_v<Time, whole_nanoseconds>;
    auto const key = [](std::string const& name) { return name + (is_whole ? "_ns" : "_s"); };
    auto ranks = nlohmann::ordered_json::array();
    for (std::size_t rank = 0; rank < played.ranks.size(); ++rank) {
        auto const& times = played.ranks[rank];
        ranks.push_back({{"rank", rank},
                         {key("end"), times.end.count},
                         {key("busy"), times.busy.count},
                         {key("exposed"), times.exposed.count},
                         {key("idle"), idle_time(played, rank).count}});
    }
    return nlohmann::ordered_json{{"network", about.options->network},
                                  {key("end"), played.end.count},
                                  {"last_rank", last_rank(played)},
                                  {"played_ranks", played.played_ranks},
                                  {"absent_control_dependencies", about.job->absent_controls},
                                  {"ranks", ranks}}
               .dump(2) +
           "\n";
}

/// Whole events, a process per rank. What overlaps within a kind has lines of its own.
template <class Time>
std::string chrome_of(chakra_trace_set const& traces, played_traces<Time> played)
{
    constexpr int most_lines = 1000;  // of a kind
    std::stable_sort(played.spans.begin(), played.spans.end(), [](auto const& a, auto const& b) { return a.begin < b.begin; });
    std::map<std::pair<std::uint32_t, int>, std::vector<Time>> lines;  // rank and kind -> end of each line
    std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    auto const separate = [&] { text += text.back() == '[' ? "\n" : ",\n"; };
    for (std::size_t rank = 0; rank < traces.ranks.size(); ++rank) {
        separate();
        text += fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":"rank {}"}}}})", rank, rank);
    }
    for (auto const& span : played.spans) {
        auto const& step = traces.ranks[span.rank].steps[span.step];
        auto& ends = lines[{span.rank, static_cast<int>(step.type)}];
        auto const line = std::find_if(ends.begin(), ends.end(), [&](Time end) { return end <= span.begin; }) - ends.begin();
        auto const thread = static_cast<int>(step.type) * most_lines + static_cast<int>(line);
        if (static_cast<std::size_t>(line) == ends.size()) {
            ends.emplace_back();
            separate();
            text += fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})", span.rank, thread, name_of(step.type));
        }
        ends[static_cast<std::size_t>(line)] = span.end;
        separate();
        auto const what = step.type == chakra_node_type::comm_coll ? name_of(step.collective) : name_of(step.type);
        text += fmt::format(R"({{"ph":"X","name":"{} {}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"bytes":{}}}}})", what, step.id, span.rank, thread,
                            in_microseconds(as_seconds(span.begin)), in_microseconds(as_seconds(span.end - span.begin)), step.bytes);
    }
    return text + "\n]}\n";
}

template <class Model>
chakra_play_rules<Model> rules_of(trace_import_options const& options, cluster_model const& cluster, std::size_t ranks)
{
    chakra_play_rules<Model> rules;
    constexpr bool is_whole = std::is_same_v<typename Model::time, whole_nanoseconds>;
    rules.of_consumers = is_whole;
    for (std::size_t f = 0; f < collective_form_names.size(); ++f) {
        if (collective_form_names[f] == options.form) {
            rules.form = static_cast<collective_form>(f);
        }
    }
    auto const memory = cluster.device.description.traffic;
    if constexpr (is_whole) {
        rules.chunks = 4;
        rules.handover = {10};
        rules.group_handover = {10};
        rules.memory = bytes_per_nanosecond{memory.count / 1e9};
    } else {
        rules.memory = memory;
    }
    rules.chunks = options.chunks > 0 ? options.chunks : rules.chunks;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        rules.devices.push_back(device_of(cluster, rank_id{static_cast<std::int32_t>(rank)}).description);
    }
    rules.keeps_spans = !options.chrome.empty();
    return rules;
}

template <class Model>
int play_and_show(imported_job about, cluster_model const& cluster, std::vector<network_level<typename Model::link>> const& levels)
{
    auto const& options = *about.options;
    auto const& traces = about.job->traces;
    auto rules = rules_of<Model>(options, cluster, traces.ranks.size());
    auto const links = links_of<typename Model::link>(cluster);
    rules.links = links ? &*links : nullptr;
    auto const played = play_traces<Model>(traces, levels, rules);
    if (!played) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: {}", options.prefix, played.error())};
    }
    for (auto const& rank : traces.ranks) {
        about.without_duration += static_cast<std::size_t>(std::count_if(rank.steps.begin(), rank.steps.end(), [&](chakra_step const& step) {
            return rules.of_consumers && step.type == chakra_node_type::comp && step.duration_micros == 0;
        }));
    }
    if (!options.chrome.empty()) {
        write_whole(options.chrome, chrome_of(traces, *played));
    }
    if (!options.page.empty()) {
        write_whole(options.page, page_of(document_of(about, *played, most_rows_of_page), options.prefix));
    }
    fmt::print("{}", options.json ? json_of(about, *played) : text_of(document_of(about, *played, most_classes_of_text)));
    return 0;
}

}  // namespace

int import_traces(trace_import_options const& options)
{
    auto const refuse = [](std::string const& why) { throw exit_error{exit_code::usage, why}; };
    if (options.cluster.empty()) {
        refuse("rheo trace import needs --cluster FILE: the cluster on which the traces are played");
    }
    bool const is_whole = options.network == "integer-ns";
    if (options.unshared && !is_whole) {
        refuse("--unshared is for --network integer-ns; without it, messages have links for themselves with --network free");
    }
    auto const cluster = read_cluster_file(options.cluster);
    auto const ranks = chakra_ranks(options.prefix);
    if (ranks > devices_of(cluster)) {
        refuse(fmt::format("{}: has {} devices, but {} are traces of {} ranks; expected a device for each rank", options.cluster, devices_of(cluster),
                           options.prefix, ranks));
    }
    auto const job = read_any_chakra_traces(options.prefix, is_whole);
    imported_job const about{&job, &options};
    if (!is_whole) {
        auto const levels = network_of(cluster);
        return options.network == "free" ? play_and_show<free_network>(about, cluster, levels) : play_and_show<contended_network>(about, cluster, levels);
    }
    auto const levels = network_of<integer_link>(cluster);
    return options.unshared ? play_and_show<integer_free_network>(about, cluster, levels) : play_and_show<integer_contended_network>(about, cluster, levels);
}

}  // namespace rheo::cli
