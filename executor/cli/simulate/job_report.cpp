// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/simulate/job_report.hpp"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cli/simulate/simulate.hpp"
#include "executor/plan/amount_text.hpp"
#include "executor/plan/text_table.hpp"
#include "rheo/units/units.hpp"

namespace rheo::cli {

namespace {

constexpr std::size_t most_changes_of_text = 10;

double in_s(whole_nanoseconds time) { return static_cast<double>(time.count) * 1e-9; }

double tokens_of(job_report const& report, simulated_job const& job)
{
    return static_cast<double>(job.account.steps) * static_cast<double>(tokens_per_step(*report.described));
}

std::string ranks_text(std::vector<rank_id> const& ranks)
{
    std::string text;
    for (std::size_t i = 0; i < ranks.size();) {
        auto end = i + 1;
        while (end < ranks.size() && ranks[end].value == ranks[end - 1].value + 1) {
            ++end;
        }
        text += (i == 0 ? "" : ", ") + (end - i == 1 ? fmt::format("{}", ranks[i].value) : fmt::format("{}-{}", ranks[i].value, ranks[end - 1].value));
        i = end;
    }
    return text;
}

/// Rows of a value, or of a value and its share, for each policy.
class policy_table {
public:
    explicit policy_table(job_report const& report) : report_{&report}
    {
        for (auto const& named : report.jobs) {
            columns_.push_back({named.policy, true});
            columns_.push_back({"", true});
        }
    }

    template <class Value>
    void add(std::string name, Value const& value)
    {
        text_row row{{std::move(name)}};
        for (auto const& named : report_->jobs) {
            row.cells.insert(row.cells.end(), {value(named.job), ""});
        }
        rows_.push_back(std::move(row));
    }

    /// @param all what it is a share of
    template <class Value, class All>
    void add_time(std::string name, Value const& value, All const& all)
    {
        text_row row{{std::move(name)}};
        for (auto const& named : report_->jobs) {
            row.cells.insert(row.cells.end(), {time_text(in_s(value(named.job))), share_of(value(named.job), all(named.job))});
        }
        rows_.push_back(std::move(row));
    }

    std::string text() const { return to_text(columns_, rows_); }

private:
    job_report const* report_;
    std::vector<text_column> columns_{{"", false}};
    std::vector<text_row> rows_;
};

template <class Predicate>
std::int64_t count_changes(simulated_job const& job, Predicate const& is_counted)
{
    return static_cast<std::int64_t>(std::count_if(job.changes.begin(), job.changes.end(), is_counted));
}

nlohmann::ordered_json json_of(job_report const& report, named_job const& named)
{
    auto const& job = named.job;
    nlohmann::ordered_json row{{"policy", named.policy}, {"steps", job.account.steps}, {"end_ns", job.account.end.count}};
    for (auto const& c : job_time_classes) {
        row[fmt::format("{}_ns", c.name)] = (job.account.*c.time).count;
    }
    auto& parts = row["good_parts_ns"];
    for (std::size_t k = 0; k < rank_step_part_names.size(); ++k) {
        parts[std::string{rank_step_part_names[k]}] = (job.good.*rank_step_parts<whole_nanoseconds>[k]).count;
    }
    row["tokens_per_s"] = job.account.end.count == 0 ? nlohmann::ordered_json{} : nlohmann::ordered_json(tokens_of(report, job) / in_s(job.account.end));
    row["computing_J"] = job.computing.count;
    row["waiting_J"] = job.waiting.count;
    row["below_f_plus_1_ns"] = job.few_copies.count;
    row["copied_bytes"] = job.copied.count;
    row["fullest_rank_bytes"] = job.fullest.count;
    row["plans"] = job.plans;
    row["error"] = job.error;
    auto& changes = row["changes"] = nlohmann::ordered_json::array();
    for (auto const& c : job.changes) {
        auto lost = nlohmann::ordered_json::array();
        for (auto const rank : c.lost) {
            lost.push_back(rank.value);
        }
        changes.push_back({{"at_ns", c.at.count},
                           {"step", c.step},
                           {"what", name_of(c.what)},
                           {"lost_ranks", lost},
                           {"recovery_ns", c.recovery.count},
                           {"lost_ns", c.lost_time.count},
                           {"copied_bytes", c.copied.count},
                           {"ranks", c.ranks},
                           {"why", c.why}});
    }
    return row;
}

}  // namespace

std::int64_t tokens_per_step(job_description const& job)
{
    auto const& shape = job.request.microbatch;
    return std::int64_t{job.request.microbatches} * shape.sequences * shape.tokens;
}

std::string headline_of(job_report const& report)
{
    auto const& job = *report.described;
    return fmt::format("{} {} on {}, {} {} of {} tokens", job.ranks, job.ranks == 1 ? "rank" : "ranks", report.cluster, job.steps,
                       job.steps == 1 ? "step" : "steps", tokens_per_step(job));
}

std::string accounts_text(job_report const& report)
{
    policy_table table{report};
    auto const whole = [](simulated_job const& job) { return job.account.end; };
    table.add("steps", [](simulated_job const& job) { return fmt::format("{}", job.account.steps); });
    table.add("tokens/s",
              [&](simulated_job const& job) { return job.account.end.count == 0 ? "-" : count_text(tokens_of(report, job) / in_s(job.account.end)); });
    table.add_time("time", whole, whole);
    for (auto const& c : job_time_classes) {
        auto const of_class = [&](simulated_job const& job) { return job.account.*c.time; };
        table.add_time(fmt::format("  {}", c.name), of_class, whole);
        for (std::size_t k = 0; c.name == "good" && k < rank_step_part_names.size(); ++k) {
            auto const of_part = [&](simulated_job const& job) { return job.good.*rank_step_parts<whole_nanoseconds>[k]; };
            table.add_time(fmt::format("    {}", rank_step_part_names[k]), of_part, whole);
        }
    }
    auto const few_copies = [](simulated_job const& job) { return job.few_copies; };
    table.add_time("below f + 1 copies", few_copies, whole);
    table.add("J/token", [&](simulated_job const& job) {
        auto const tokens = tokens_of(report, job);
        return tokens == 0.0 || total_energy(job).count == 0.0 ? "-" : fmt::format("{:.4g}", total_energy(job).count / tokens);
    });
    table.add("recoveries",
              [](simulated_job const& job) { return fmt::format("{}", count_changes(job, [](auto const& c) { return c.what == job_change::recovered; })); });
    table.add("restarts, halts", [](simulated_job const& job) {
        return fmt::format("{}", count_changes(job, [](auto const& c) { return c.what == job_change::restarted || c.what == job_change::halted; }));
    });
    table.add("copied", [](simulated_job const& job) { return memory_text(in_mebibytes(job.copied)); });
    table.add("fullest rank", [](simulated_job const& job) { return memory_text(in_mebibytes(job.fullest)); });
    return table.text();
}

std::string changes_text(simulated_job const& job, std::size_t most)
{
    if (job.changes.empty()) {
        return {};
    }
    std::vector<text_column> const columns{{"at", true},    {"step", true}, {"", false},      {"ranks lost", false},
                                           {"after", true}, {"lost", true}, {"copied", true}, {"ranks", true}};
    std::vector<text_row> rows;
    for (auto const& c : job.changes) {
        if (rows.size() == most) {
            break;
        }
        auto lost = ranks_text(c.lost);
        lost = lost.size() > 24 ? fmt::format("{} ranks", c.lost.size()) : lost;
        rows.push_back({{time_text(in_s(c.at)), fmt::format("{}", c.step), std::string{name_of(c.what)}, std::move(lost), time_text(in_s(c.recovery)),
                         time_text(in_s(c.lost_time)), memory_text(in_mebibytes(c.copied)), fmt::format("{}", c.ranks)}});
    }
    auto text = "\n" + to_text(columns, rows);
    if (job.changes.size() > rows.size()) {
        text += fmt::format("  ... {} more; --json has all\n", job.changes.size() - rows.size());
    }
    return text;
}

std::string to_text(job_report const& report)
{
    auto text = headline_of(report) + "\n\n" + accounts_text(report);
    for (auto const& named : report.jobs) {
        if (report.jobs.size() == 1) {
            text += changes_text(named.job, most_changes_of_text);
        }
        if (!named.job.error.empty()) {
            text += fmt::format("\n{}: {}\n", named.policy, named.job.error);
        }
    }
    if (!report.described->cluster.recovery) {
        text += "\nthe cluster has no [recovery]: recoveries take the time of their copies alone\n";
    }
    return text;
}

std::string to_json(job_report const& report)
{
    auto policies = nlohmann::ordered_json::array();
    for (auto const& named : report.jobs) {
        policies.push_back(json_of(report, named));
    }
    return nlohmann::ordered_json{{"ranks", report.described->ranks}, {"tokens_per_step", tokens_per_step(*report.described)}, {"policies", policies}}.dump(
               2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
           "\n";
}

}  // namespace rheo::cli
