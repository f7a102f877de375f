// SPDX-License-Identifier: Apache-2.0
// `rheo simulate --steps-table`: a job whose steps are a table, on nodes that come and go, by one policy or several side by side: text for people, or JSON.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cli/commands.hpp"
#include "executor/cli/simulate/simulate.hpp"
#include "executor/config/text_file.hpp"
#include "executor/plan/text_table.hpp"
#include "rheo/simulate/goodput/node_trace_csv.hpp"
#include "rheo/simulate/goodput/replay_goodput.hpp"
#include "rheo/simulate/goodput/replay_policies_csv.hpp"
#include "rheo/simulate/goodput/steps_table_csv.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/nearest_name.hpp"

namespace rheo::cli {

namespace {

struct replayed_policy {
    replay_kind kind;
    goodput_account<> account;
};

named_steps_table chosen_table(simulate_options const& options)
{
    auto tables = accepted(parse_steps_tables(read_text_file(options.steps_table), options.steps_table));
    if (options.model.empty() && tables.size() == 1) {
        return std::move(tables.front());
    }
    std::vector<std::string_view> names;
    for (auto& named : tables) {
        if (named.model == options.model) {
            return std::move(named);
        }
        names.push_back(named.model);
    }
    if (options.model.empty()) {
        throw exit_error{exit_code::usage,
                         fmt::format("{} has {} models: choose one with --model, for example {}", options.steps_table, names.size(), in_quotes(names.front()))};
    }
    throw exit_error{exit_code::usage, fmt::format("--model: {} has no model {}; the nearest is {}", options.steps_table, in_quotes(options.model),
                                                   in_quotes(nearest_name(std::string_view{options.model}.substr(0, 40), names)))};
}

std::vector<replay_policy> chosen_policies(simulate_options const& options, std::string const& model)
{
    auto const all = accepted(parse_replay_policies(read_text_file(options.policies), options.policies));
    std::vector<replay_policy> chosen;
    for (auto const& named : all) {
        if (named.model == model && options.policy.empty()) {
            chosen.push_back(named.policy);
        }
    }
    for (auto const& name : options.policy) {
        auto const found = std::find_if(all.begin(), all.end(), [&](auto const& named) { return named.model == model && name_of(named.policy.kind) == name; });
        if (found == all.end()) {
            throw exit_error{exit_code::usage, fmt::format("--policy: {} has no row for {} with {}", options.policies, in_quotes(model), name)};
        }
        chosen.push_back(found->policy);
    }
    if (chosen.empty()) {
        throw exit_error{exit_code::usage, fmt::format("{} has no row for {}", options.policies, in_quotes(model))};
    }
    return chosen;
}

void print_json(std::string const& trace, std::string const& model, std::vector<replayed_policy> const& replayed)
{
    auto policies = nlohmann::ordered_json::array();
    for (auto const& [kind, account] : replayed) {
        nlohmann::ordered_json row{{"trace", trace}, {"model", model}, {"policy", name_of(kind)}, {"steps", account.steps}};
        for (auto const& c : goodput_classes<>) {
            row[std::string{c.name} + "_ms"] = (account.*c.time).count;
        }
        row["end_ms"] = account.end.count;
        policies.push_back(row);
    }
    fmt::print("{}\n", nlohmann::ordered_json{{"policies", policies}}.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

void print_table(std::string const& trace, named_steps_table const& steps, node_trace const& nodes, std::vector<replayed_policy> const& replayed)
{
    auto const end = nodes.events.back().at;
    fmt::print("{}: {} nodes, {} events in {:.2f} h\n{}: steps on {} to {} nodes\n\n", trace, nodes.names.size(), nodes.events.size(),
               in_hours(in_seconds(end)), steps.model, steps.table.fewest, steps.table.fewest + static_cast<int>(steps.table.times.size()) - 1);
    std::vector<text_column> columns{{"", false}};
    std::vector<text_row> rows{{{"steps"}}, {{"samples/s"}}};
    for (auto const& [kind, account] : replayed) {
        columns.push_back({std::string{name_of(kind)}, true});
        columns.push_back({"", true});
        rows[0].cells.insert(rows[0].cells.end(), {fmt::format("{}", account.steps), ""});
        auto const samples = static_cast<double>(account.steps) * steps.table.samples_per_step;
        rows[1].cells.insert(rows[1].cells.end(), {end.count == 0 ? "-" : fmt::format("{:.4g}", samples / in_seconds(end).count), ""});
    }
    for (auto const& c : goodput_classes<>) {
        text_row row{{std::string{c.name}}};
        for (auto const& [kind, account] : replayed) {
            row.cells.insert(row.cells.end(), {fmt::format("{:.3f} s", in_seconds(account.*c.time).count), share_of(account.*c.time, end)});
        }
        rows.push_back(std::move(row));
    }
    fmt::print("{}", to_text(columns, rows));
}

}  // namespace

int simulate_steps_table(simulate_options const& options)
{
    if (options.policies.empty() || options.faults.empty()) {
        throw exit_error{exit_code::usage, "simulate: --steps-table needs --policies and --faults"};
    }
    for (auto const& name : options.policy) {
        if (name != "replay" && name != "checkpoint" && name != "salvage") {
            throw exit_error{exit_code::usage, fmt::format("--policy: {} is no policy of a table; expected replay, checkpoint or salvage", in_quotes(name))};
        }
    }
    auto const steps = chosen_table(options);
    auto const policies = chosen_policies(options, steps.model);
    auto const nodes = accepted(parse_node_trace(read_text_file(options.faults), options.faults));
    std::vector<replayed_policy> replayed;
    for (auto const& policy : policies) {
        replayed.push_back({policy.kind, accepted(replay_goodput(steps.table, policy, nodes))});
    }
    auto const trace = std::filesystem::path{options.faults}.stem().string();
    if (options.json) {
        print_json(trace, steps.model, replayed);
    } else {
        print_table(trace, steps, nodes, replayed);
    }
    return 0;
}

}  // namespace rheo::cli
