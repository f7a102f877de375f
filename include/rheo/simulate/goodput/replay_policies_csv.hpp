#pragma once
// SPDX-License-Identifier: Apache-2.0

// Policies as text: a header line `model,policy,configure_ms,checkpoint_ms,checkpoint_every_steps`, then a row per model and
// policy. As the other tables of goodput: comments, and a sentence with file and line for a fault.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/simulate/goodput/replay_policy.hpp"
#include "rheo/simulate/goodput/steps_table_csv.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/nearest_name.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

struct named_replay_policy {
    std::string model;
    replay_policy policy;

    friend bool operator==(named_replay_policy const&, named_replay_policy const&) = default;
};

namespace detail {

/// Reads a row; returns what is wrong with it, empty when nothing is.
template <class OnlyWhenCalled = void>
std::string read_replay_policy(std::vector<std::string_view> const& cells, named_replay_policy& row)
{
    constexpr std::string_view columns[] = {"model", "policy", "configure_ms", "checkpoint_ms", "checkpoint_every_steps"};
    if (cells.size() != std::size(columns)) {
        return std::to_string(cells.size()) + " cells, but 5 were expected: model,policy,configure_ms,checkpoint_ms,checkpoint_every_steps";
    }
    if (cells[0].empty()) {
        return "the model has no name";
    }
    row.model = cells[0];
    auto const kind = std::find(replay_names.begin(), replay_names.end(), cells[1]);
    if (kind == replay_names.end()) {
        return "policy is " + in_quotes(cells[1]) + ", but replay, checkpoint or salvage were expected; the nearest is " +
               std::string{nearest_name(cells[1].substr(0, 40), replay_names)};
    }
    row.policy.kind = static_cast<replay_kind>(kind - replay_names.begin());
    std::int64_t* const numbers[] = {&row.policy.configure.count, &row.policy.checkpoint.count, &row.policy.checkpoint_every_steps};
    for (std::size_t k = 0; k < std::size(numbers); ++k) {
        if (!read_number(cells[2 + k], *numbers[k])) {
            return std::string{columns[2 + k]} + " is " + in_quotes(cells[2 + k]) + ", but a whole number was expected";
        }
    }
    return replay_policy_fault(row.policy);
}

}  // namespace detail

/// Reads all policies; `name` is the file's, for the sentence. Cost: the square of the policies of a model.
template <class OnlyWhenCalled = void>
result<std::vector<named_replay_policy>> parse_replay_policies(std::string_view text, std::string_view name)
{
    constexpr std::string_view columns = "model,policy,configure_ms,checkpoint_ms,checkpoint_every_steps";
    line_reader lines{text};
    std::string_view line;
    if (!detail::next_row(lines, line) || cells_of(line) != cells_of(columns)) {
        return detail::at_line(name, lines.number, "a table of policies begins with the columns " + std::string{columns});
    }
    std::vector<named_replay_policy> policies;
    while (detail::next_row(lines, line)) {
        named_replay_policy row;
        if (auto const fault = detail::read_replay_policy(cells_of(line), row); !fault.empty()) {
            return detail::at_line(name, lines.number, fault);
        }
        for (auto const& before : policies) {
            if (before.model == row.model && before.policy.kind == row.policy.kind) {
                return detail::at_line(name, lines.number, in_quotes(row.model) + " has a row for " + std::string{name_of(row.policy.kind)} + " already");
            }
        }
        policies.push_back(std::move(row));
        if (policies.size() > 10'000) {
            return detail::at_line(name, lines.number, "a table of policies has at most 10000 rows");
        }
    }
    if (policies.empty()) {
        return detail::at_line(name, lines.number, "a table of policies has at least one row");
    }
    return policies;
}

}  // namespace rheo::inline v0
