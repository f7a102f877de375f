// SPDX-License-Identifier: Apache-2.0
#include "executor/config/cluster/cluster_file.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "executor/config/strict_json.hpp"
#include "executor/config/text_file.hpp"
#include "executor/config/toml_table.hpp"
#include "rheo/simulate/network/fitted_link.hpp"
#include "rheo/simulate/network/measured_times_csv.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::int64_t most_members = 1 << 20;
constexpr double giga = 1e9;
constexpr double gibi = 1073741824.0;
/// Keys of a level.
constexpr std::string_view level_keys[] = {"name",           "members",          "topology", "latency_us", "rate_gb_per_s",
                                           "rate_gib_per_s", "links_per_member", "measured", "lines"};

bytes_per_second rate_of(double gb_per_s) { return {gb_per_s * giga}; }

/// Keys of a device that differ keep the others as they are.
cluster_device read_device(toml_table const& table, cluster_device device, bool is_whole)
{
    auto const take = [&](char const* key, number_limits limits, auto& member, double unit) {
        if (is_whole || table.has(key)) {
            auto const value = table.number(key, limits) * unit;
            member.count = static_cast<decltype(member.count)>(value);
        }
    };
    take("compute_tflops", {.most = 1e9}, device.description.compute, 1e12);
    take("memory_rate_gb_per_s", {.most = 1e9}, device.description.traffic, giga);
    take("memory_gib", {.most = 1e9, .least = 1e-9}, device.description.memory, gibi);
    for (auto const& [key, power] : {std::pair{"computing_w", &cluster_device::computing}, std::pair{"waiting_w", &cluster_device::waiting}}) {
        device.*power = {table.optional_number(key, {.or_zero = true, .most = 1e9}).value_or((device.*power).count)};
    }
    return device;
}

std::optional<bytes_per_second> read_rate(toml_table const& table)
{
    if (table.has("rate_gb_per_s") && table.has("rate_gib_per_s")) {
        table.refuse("rate_gib_per_s", fmt::format("{}rate_gb_per_s and rate_gib_per_s say the same; expected one of them", table.label()));
    }
    auto const gibibytes = table.optional_number("rate_gib_per_s", {.most = 1e9});
    auto const gigabytes = table.optional_number("rate_gb_per_s", {.most = 1e9});
    return gibibytes ? std::optional{bytes_per_second{*gibibytes * gibi}} : gigabytes ? std::optional{rate_of(*gigabytes)} : std::nullopt;
}

/// A line that a file can hold.
fitted_line as_written(fitted_line line) { return {microseconds(in_microseconds(line.latency)), line.seconds_per_byte / us_per_mib * us_per_mib}; }

/// lines = [{ latency_us = 5.0, us_per_mib = 21.0 }, ...]
std::vector<fitted_line> read_lines(toml_table const& table, std::string const& file)
{
    std::vector<fitted_line> lines;
    for (auto const* const line : table.tables("lines")) {
        toml_table const of{*line, file, table.label() + "lines.", {"latency_us", "us_per_mib"}};
        lines.push_back({microseconds(of.number("latency_us", {.or_zero = true})), of.number("us_per_mib", {.or_zero = true}) * us_per_mib});
    }
    return lines;
}

/// The link of a level, and the lines of its measured messages.
modelled_link read_link(toml_table const& table, named_file_reader const& read, std::vector<fitted_line>& lines)
{
    auto const rate = read_rate(table);
    if (!table.has("measured")) {
        if (!rate) {
            table.missing("rate_gb_per_s", "the rate of a link, or measured = FILE to fit one from");
        }
        return {microseconds(table.number("latency_us", {.or_zero = true})), *rate};
    }
    if (rate || table.has("latency_us") || table.has("lines")) {
        table.refuse("measured", fmt::format("{}measured gives latency, rate and lines; expected none of latency_us, rate_gb_per_s, rate_gib_per_s and lines "
                                             "beside it",
                                             table.label()));
    }
    auto const path = table.text("measured");
    auto const rows = parse_measured_times(read(path), path);
    if (!rows) {
        throw exit_error{exit_code::usage, rows.error()};
    }
    auto const link = fit_link(array_view<measured_time const>{*rows});
    if (!link) {
        table.refuse("measured", fmt::format("{}: {}", path, link.error()));
    }
    auto const us = in_microseconds(link->latency);
    auto const gb_per_s = link->bandwidth.count / giga;
    if (!(us >= 1e-9 && us <= 1e15 && gb_per_s >= 1e-9 && gb_per_s <= 1e9)) {
        table.refuse("measured", fmt::format("{}: gives a link of {:g} us and {:g} GB/s; expected 1e-9 to 1e15 us and 1e-9 to 1e9 GB/s", path, us, gb_per_s));
    }
    auto const fitted = fit_lines(array_view<measured_time const>{*rows});
    for (auto const& line : *fitted) {
        lines.push_back(as_written(line));
    }
    return {microseconds(us), link->bandwidth};  // a latency that a file can hold
}

template <class Kind>
Kind read_word(toml_table const& table, char const* key, std::array<std::string_view, 3> const& names)
{
    auto const word = table.text(key);
    auto const found = std::find(names.begin(), names.end(), word);
    if (found == names.end()) {
        table.refuse(key, fmt::format("{}{} must be one of {}, not {}", table.label(), key, fmt::join(names, ", "), in_quotes(word)));
    }
    return static_cast<Kind>(found - names.begin());
}

cluster_level read_level(toml::table const& of, std::string const& file, std::size_t number, named_file_reader const& read)
{
    toml_table const table{of, file, fmt::format("level {}: ", number), {std::begin(level_keys), std::end(level_keys)}};
    cluster_level level{table.text("name"), {}, read_lines(table, file)};
    level.network.members = static_cast<int>(table.whole("members", 1, most_members));
    level.network.topology = read_word<network_topology>(table, "topology", network_topology_names);
    level.network.link = read_link(table, read, level.lines);
    level.network.links_per_member = table.has("links_per_member") ? static_cast<int>(table.whole("links_per_member", 1, most_members)) : 1;
    return level;
}

/// "nodes = 3" or "nodes = [3, 5]".
std::pair<std::int32_t, std::int32_t> read_nodes(toml_table const& table, int nodes)
{
    constexpr auto key = "nodes";
    auto const expected = fmt::format("a node from 0 to {}, or [FIRST, LAST]", nodes - 1);
    auto const* const node = table.find(key);
    if (node == nullptr) {
        table.missing(key, expected);
    }
    auto const* const list = node->as_array();
    if (list != nullptr && list->size() != 2) {
        table.refuse(key, fmt::format("{}nodes must be {}, not a list of {}", table.label(), expected, list->size()));
    }
    auto const at = [&](std::size_t i) {
        return static_cast<std::int32_t>(table.whole_of(list == nullptr ? *node : *list->get(i), key, expected, 0, nodes - 1));
    };
    std::pair const range{at(0), at(list == nullptr ? 0 : 1)};
    if (range.second < range.first) {
        table.refuse(key, fmt::format("{}nodes must be {}, not from {} to {}", table.label(), expected, range.first, range.second));
    }
    return range;
}

node_difference read_difference(toml::table const& of, std::string const& file, std::size_t number, cluster_model const& cluster)
{
    toml_table const table{of,
                           file,
                           fmt::format("different {}: ", number),
                           {"nodes", "compute_tflops", "memory_rate_gb_per_s", "memory_gib", "computing_w", "waiting_w", "level"}};
    auto const [first, last] = read_nodes(table, nodes_of(cluster));
    node_difference difference{first, last, read_device(table, cluster.device, false), {}};
    for (auto const* const other : table.tables("level")) {
        toml_table const link{*other, file, table.label() + "level.", {"name", "latency_us", "rate_gb_per_s", "rate_gib_per_s"}};
        auto const name = link.text("name");
        auto const found = std::find_if(cluster.levels.begin(), cluster.levels.end(), [&](auto const& level) { return level.name == name; });
        if (found == cluster.levels.end()) {
            std::vector<std::string_view> names;
            for (auto const& level : cluster.levels) {
                names.push_back(level.name);
            }
            link.refuse("name", fmt::format("{}name is {}, which no level has; the nearest is {}", link.label(), in_quotes(name),
                                            in_quotes(nearest_name(std::string_view{name}.substr(0, 40), names))));
        }
        auto const k = static_cast<std::size_t>(found - cluster.levels.begin());
        difference.links.resize(std::max(difference.links.size(), k + 1));
        if (difference.links[k]) {
            link.refuse("name", fmt::format("{}name is {} a second time; expected each level once", link.label(), in_quotes(name)));
        }
        auto changed = found->network.link;
        changed.bandwidth = read_rate(link).value_or(changed.bandwidth);
        if (auto const latency = link.optional_number("latency_us", {.or_zero = true})) {
            changed.latency = microseconds(*latency);
        }
        difference.links[k] = changed;
    }
    return difference;
}

cluster_storage read_storage(toml::table const& of, std::string const& file)
{
    toml_table const table{of, file, "storage.", {"read_gb_per_s", "write_gb_per_s", "node_read_gb_per_s", "node_write_gb_per_s"}};
    number_limits const limits{.most = 1e9};
    cluster_storage storage{rate_of(table.number("read_gb_per_s", limits)), rate_of(table.number("write_gb_per_s", limits))};
    if (auto const rate = table.optional_number("node_read_gb_per_s", limits)) {
        storage.node_read = rate_of(*rate);
    }
    if (auto const rate = table.optional_number("node_write_gb_per_s", limits)) {
        storage.node_write = rate_of(*rate);
    }
    return storage;
}

/// The mean of each phase over the recoveries of a run from losses. @throws json_error
recovery_times mean_recovery(std::string_view report)
{
    auto const json = parse_strict(report, 8);
    recovery_times sum{};
    double count = 0.0;
    for (auto const& recovery : list_member(json, "recoveries")) {
        if (list_member(recovery, "lost").empty()) {
            continue;  // ranks left, or the plan changed
        }
        for (auto const& phase : recovery_phase_list) {
            auto const key = fmt::format("{}_s", phase.name);
            auto const& value = member(recovery, key.c_str());
            auto const time = value.is_number() ? value.get<double>() : 0.0;  // null: the phase was not reached
            if (!(value.is_number() || value.is_null()) || !(time >= 0.0 && time <= 1e9)) {
                throw json_error{fmt::format("has a '{}' that is no time from 0 to 1e9 s", key)};
            }
            sum.*phase.time += seconds{time};
        }
        count += 1.0;
    }
    if (count == 0.0) {
        throw json_error{"has no recovery from a loss; expected the report of a run that lost a rank"};
    }
    for (auto const& phase : recovery_phase_list) {
        sum.*phase.time = {(sum.*phase.time).count / count};
    }
    return sum;
}

recovery_times read_recovery(toml::table const& of, std::string const& file, named_file_reader const& read)
{
    std::vector<std::string> keys;
    for (auto const& phase : recovery_phase_list) {
        keys.push_back(fmt::format("{}_s", phase.name));
    }
    std::vector<std::string_view> known{keys.begin(), keys.end()};
    known.push_back("report");
    toml_table const table{of, file, "recovery.", known};
    if (table.has("report")) {
        if (of.size() > 1) {
            table.refuse("report", "recovery.report gives all phases; expected no other key beside it");
        }
        auto const path = table.text("report");
        try {
            return mean_recovery(read(path));
        } catch (json_error const& wrong) {
            table.refuse("report", fmt::format("{}: {}", path, wrong.what()));
        }
    }
    recovery_times times{};
    for (std::size_t k = 0; k < keys.size(); ++k) {
        times.*recovery_phase_list[k].time = {table.optional_number(keys[k], {.or_zero = true, .most = 1e9}).value_or(0.0)};
    }
    return times;
}

nccl_machine read_nccl(toml::table const& of, std::string const& file)
{
    toml_table const table{of, file, "nccl.", {"gpu", "cpu", "channels", "channel_gb_per_s", "nvlink", "tree_pattern", "nvls_gb_per_s"}};
    number_limits const limits{.most = 1e9};
    nccl_machine machine{.ranks = 0,
                         .nodes = 0,
                         .channels = static_cast<int>(table.whole("channels", 1, 1024)),
                         .channel_bandwidth = table.number("channel_gb_per_s", limits),
                         .gpu = read_word<nccl_gpu>(table, "gpu", nccl_gpu_names),
                         .cpu = read_word<nccl_cpu>(table, "cpu", nccl_cpu_names)};
    machine.has_nvlink = table.flag("nvlink", true);
    machine.has_tree_pattern = table.flag("tree_pattern", true);
    machine.nvls_bandwidth = table.optional_number("nvls_gb_per_s", {.or_zero = true, .most = 1e9}).value_or(0.0);
    return machine;
}

void check_schema(toml_table const& top)
{
    auto const* const schema = top.find("schema");
    if (schema == nullptr) {
        top.missing("schema", "schema = 1, the version of the form of a cluster");
    }
    if (schema->value_exact<std::int64_t>() != 1) {
        top.refuse("schema", "schema must be the number 1, the only version of the form of a cluster");
    }
}

std::vector<cluster_level> read_levels(toml_table const& top, std::string const& file, named_file_reader const& read)
{
    std::vector<cluster_level> levels;
    for (auto const* const table : top.tables("level")) {
        auto const number = levels.size() + 1;
        auto level = read_level(*table, file, number, read);
        if (std::any_of(levels.begin(), levels.end(), [&](auto const& other) { return other.name == level.name; })) {
            toml_table const own{*table, file, fmt::format("level {}: ", number), {std::begin(level_keys), std::end(level_keys)}};
            own.refuse("name", fmt::format("{}name {} is that of another level; expected a name for each", own.label(), in_quotes(level.name)));
        }
        levels.push_back(std::move(level));
        std::vector<network_level<>> so_far;
        for (auto const& known : levels) {
            so_far.push_back(known.network);
        }
        if (auto const fault = network_fault(array_view<network_level<> const>{so_far}); !fault.empty()) {
            refuse_setting(fmt::format("{}:{}", file, table->source().begin.line), fault);
        }
    }
    if (levels.empty()) {
        top.missing("level", "at least one [[level]], from the inside out");
    }
    return levels;
}

cluster_model read_cluster(toml::table const& text, std::string const& file, named_file_reader const& read)
{
    toml_table const top{text, file, "", {"schema", "devices", "device", "level", "different", "storage", "recovery", "nccl"}};
    check_schema(top);
    auto const* const device = top.table("device");
    if (device == nullptr) {
        top.missing("device", "a table [device]");
    }
    cluster_model cluster;
    cluster.device = read_device({*device, file, "device.", {"compute_tflops", "memory_rate_gb_per_s", "memory_gib", "computing_w", "waiting_w"}}, {}, true);
    cluster.levels = read_levels(top, file, read);
    auto const devices = devices_of(cluster);
    if (top.has("devices") && top.whole("devices", 1, most_members) != devices) {
        top.refuse("devices", fmt::format("devices = {}, but the levels multiply up to {}; expected the product of their members",
                                          top.whole("devices", 1, most_members), devices));
    }
    for (auto const* const table : top.tables("different")) {
        auto difference = read_difference(*table, file, cluster.different.size() + 1, cluster);
        if (!cluster.different.empty() && difference.first <= cluster.different.back().last) {
            refuse_setting(fmt::format("{}:{}", file, table->source().begin.line),
                           fmt::format("different {}: nodes begin at {}, but those before end at {}; expected ranges that ascend and share no node",
                                       cluster.different.size() + 1, difference.first, cluster.different.back().last));
        }
        cluster.different.push_back(std::move(difference));
    }
    if (auto const* const storage = top.table("storage")) {
        cluster.storage = read_storage(*storage, file);
    }
    if (auto const* const recovery = top.table("recovery")) {
        cluster.recovery = read_recovery(*recovery, file, read);
    }
    if (auto const* const nccl = top.table("nccl")) {
        cluster.nccl = read_nccl(*nccl, file);
    }
    return cluster;
}

}  // namespace

cluster_model parse_cluster(std::string_view text, std::string const& name, named_file_reader const& read)
{
    toml::table table;
    try {
        table = parse_toml(text);
    } catch (toml_syntax_error const& error) {
        refuse_setting(error.line > 0 ? fmt::format("{}:{}", name, error.line) : name, fmt::format("no valid TOML: {}", error.what()));
    }
    return read_cluster(table, name, read);
}

cluster_model read_cluster_file(std::string const& path)
{
    auto const folder = std::filesystem::path{path}.parent_path();
    return parse_cluster(read_text_file(path), path, [&](std::string const& named) { return read_text_file((folder / named).string()); });
}

}  // namespace rheo::inline v0
