// SPDX-License-Identifier: Apache-2.0
// `rheo reshard`: from one layout of state to another, as a table, JSON, CSV or a picture: what moves, beside what must move. It plans only.

#include "executor/cli/reshard/reshard_input.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cli/size_text.hpp"
#include "executor/config/files/layout_file.hpp"
#include "executor/plan/text_table.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

using size_in_certificate = bounded_bytes reshard_certificate::*;

/// One figure of the certificate under the name that the JSON has for it.
struct figure {
    std::string_view key;
    std::string_view title;
    size_in_certificate size;
};

constexpr figure figures[] = {
    {"needed_bytes", "needed", &reshard_certificate::needed},
    {"moved_bytes", "moved", &reshard_certificate::moved},
    {"largest_send_bytes", "largest send", &reshard_certificate::largest_send},
    {"largest_receive_bytes", "largest receive", &reshard_certificate::largest_receive},
    {"between_nodes_bytes", "between nodes", &reshard_certificate::between_nodes},
};

struct bounded_time {
    seconds value{};
    seconds bound{};
};

/// Rounds one after the other, each as long as its busiest rank sends or receives; and no plan is shorter than its largest send and receive.
bounded_time time_of(reshard_plan const& plan, bytes_per_second rate)
{
    std::map<std::pair<int, int>, bytes> load;  // round, rank twice: as sender, as receiver
    std::map<int, bytes> busiest;
    for (auto const& t : plan.transfers) {
        for (auto const key : {2 * t.from.value, 2 * t.to.value + 1}) {
            auto& sum = load[{t.round, key}];
            sum += t.size;
            busiest[t.round] = std::max(busiest[t.round], sum);
        }
    }
    bounded_time time;
    for (auto const& [round, most] : busiest) {
        time.value += most / rate;
    }
    auto const& c = plan.certificate;
    time.bound = std::max(c.largest_send.bound, c.largest_receive.bound) / rate;
    return time;
}

bytes_per_second rate_of(reshard_command_options const& options) { return {options.bandwidth * 1e9}; }

void print_json(reshard_plan const& plan, reshard_input const& input, reshard_command_options const& options)
{
    auto const& c = plan.certificate;
    nlohmann::ordered_json report{{"schema", 1}, {"from", options.from}, {"to", options.to}, {"roles", options.roles}, {"node_size", options.node_size}};
    auto const add = [&](std::string const& key, auto value, auto bound) {
        report[key] = value;
        report[key + "_bound"] = bound;
    };
    for (auto const& f : figures) {
        add(std::string{f.key}, (c.*f.size).value.count, (c.*f.size).bound.count);
    }
    add("rounds", c.rounds.value, c.rounds.bound);
    add("peak_bytes", c.peak.value.count, c.peak.bound.count);
    if (options.bandwidth > 0.0) {
        auto const time = time_of(plan, rate_of(options));
        add("time_s", time.value.count, time.bound.count);
    }
    report["tensors"] = input.request.to.tensors.size();
    report["transfers"] = plan.transfers.size();
    auto taken = nlohmann::ordered_json::array();
    for (auto const& t : plan.taken) {
        taken.push_back({{"place", t.place.value}, {"rank", t.rank.value}});
    }
    report["taken"] = taken;
    fmt::print("{}\n", report.dump(2));
}

void print_table(reshard_plan const& plan, reshard_input const& input, reshard_command_options const& options)
{
    auto const& c = plan.certificate;
    std::vector<text_row> rows;
    auto const add = [&](std::string_view title, auto value, auto bound, auto const& text) {
        rows.push_back({{std::string{title}, text(value), text(bound)}, value == bound ? "  least possible" : ""});
    };
    for (auto const& f : figures) {
        if (f.size != &reshard_certificate::between_nodes || options.node_size > 1) {
            add(f.title, (c.*f.size).value, (c.*f.size).bound, size_text);
        }
    }
    add("rounds", c.rounds.value, c.rounds.bound, [](std::int64_t count) { return fmt::format("{}", count); });
    add("peak", c.peak.value, c.peak.bound, size_text);
    if (options.bandwidth > 0.0) {
        auto const time = time_of(plan, rate_of(options));
        add(fmt::format("time at {:g} GB/s", options.bandwidth), time.value, time.bound, [](seconds span) { return fmt::format("{:.3f} s", span.count); });
    }
    fmt::print("{}\n{} tensors, {} transfers, ranks {}\n\n", input.title, input.request.to.tensors.size(), plan.transfers.size(),
               options.roles == "nodes" ? "chosen by whole nodes"
               : options.roles == "any" ? "chosen"
                                        : "pinned");
    fmt::print("{}", to_text({{"", false}, {"plan", true}, {"bound", true}}, rows));
    std::string moved;
    for (auto const& t : plan.taken) {
        if (t.place != t.rank && moved.size() < 200) {
            moved += fmt::format("{}{} by {}", moved.empty() ? "" : ", ", t.place.value, t.rank.value);
        }
    }
    if (!moved.empty()) {
        fmt::print("\nplaces of the wanted layout taken by other ranks: {}{}\n", moved, moved.size() < 200 ? "" : ", ...");
    }
}

void print_csv(reshard_plan const& plan)
{
    fmt::print("round,from,to,tensor,roles,box,bytes\n");
    for (auto const& t : plan.transfers) {
        std::string roles;
        for (int r = 0; r < tensor_roles; ++r) {
            auto const role = static_cast<tensor_role>(r);
            if (t.roles.has(role) && roles_of(plan.tensors[at(t.tensor)]).has(role)) {
                roles += fmt::format("{}{}", roles.empty() ? "" : "+", role_name(role));
            }
        }
        fmt::print("{},{},{},{},{},\"{}\",{}\n", t.round, t.from.value, t.to.value, plan.tensors[at(t.tensor)].name.view(), roles, to_string(t.box),
                   t.size.count);
    }
}

}  // namespace

int reshard(reshard_command_options const& options)
{
    auto const input = read_reshard(options);
    auto const plan = plan_reshard(input.request);
    if (!plan) {
        throw exit_error{exit_code::impossible_plan, fmt::format("{}: {}", input.title, plan.error())};
    }
    if (options.csv) {
        print_csv(*plan);
    } else if (options.json) {
        print_json(*plan, input, options);
    } else {
        print_table(*plan, input, options);
    }
    if (!options.svg.empty()) {
        std::ofstream file{options.svg, std::ios::binary};
        file << picture_of(*plan, input.title, options.node_size);
        if (!file.flush()) {
            throw exit_error{exit_code::environment, fmt::format("{}: this file cannot be written", options.svg)};
        }
    }
    return 0;
}

}  // namespace rheo::cli
