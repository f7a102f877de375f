// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/plan_changes.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/plan/planning.hpp"
#include "executor/records/reshape_request.hpp"
#include "executor/state/collectives.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

/// The config after the change, for the ranks that stay. If the change does not set plan.pipelines and the job has lost ranks, the planner chooses them.
result<run_config> config_for(run_config const& before, std::vector<std::string> const& settings, int ranks)
{
    auto config = changed_config(before, settings);
    if (!config) {
        return config;
    }
    auto& plan = config->plan;
    auto const asked = std::accumulate(plan.pipelines.begin(), plan.pipelines.end(), std::int64_t{plan.spares});
    if (!plan.pipelines.empty() && asked != ranks) {
        if (std::any_of(settings.begin(), settings.end(), [](auto const& s) { return s.starts_with("plan.pipelines="); })) {
            return failure{fmt::format("plan.pipelines = {}{} asks for {} ranks, but the job has {}", plan.pipelines,
                                       plan.spares > 0 ? fmt::format(" with plan.spares = {}", plan.spares) : "", asked, ranks)};
        }
        plan.pipelines.clear();
        plan.layers.clear();
        plan.shares.clear();
    }
    if (plan.spares >= ranks) {
        return failure{fmt::format("plan.spares = {} leaves none of the {} ranks of the job a place", plan.spares, ranks)};
    }
    return config;
}

}  // namespace

plan_changes::plan_changes(job const& about, records& record) : job_{&about}, record_{&record}
{
    for (auto const& text : about.config.plan.changes) {
        schedule_.push_back(*plan_change_of(text));
    }
}

bool plan_changes::is_requested() const { return has_reshape_request(job_->config.run.folder); }

/// Broadcasts the request that the reporter found.
void plan_changes::share_request(mpi::messenger& messages, bool is_reporter)
{
    std::string text;
    if (is_reporter) {
        text = fmt::format("{}", fmt::join(read_reshape_request(job_->config.run.folder), "\n"));
    }
    broadcast(messages, text);
    std::vector<std::string> lines;
    for (std::size_t begin = 0; begin < text.size();) {
        auto const end = std::min(text.find('\n', begin), text.size());
        lines.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    auto settings = plan_settings_of(lines);
    due_ = due_change{.text = fmt::format("rheo reshape {}", fmt::join(lines, " ")), .requested = true};
    if (settings) {
        due_->text = text_of(*settings);
        due_->settings.push_back(*std::move(settings));
    } else {
        due_->error = settings.error();
    }
}

void plan_changes::prepare(mpi::messenger& messages, step_planner const& planner, members_after_step const& now, bool requested)
{
    drop();
    if (now.step.value >= job_->config.train.steps) {
        return;
    }
    for (auto const& change : schedule_) {
        if (change.step <= now.step.value) {
            if (!due_) {
                due_.emplace();
            }
            due_->text += (due_->text.empty() ? "" : ", then ") + text_of(change.settings);
            due_->settings.push_back(change.settings);
        }
    }
    if (!due_ && requested) {
        share_request(messages, now.is_reporter);
    }
    if (!due_ || !due_->error.empty()) {
        return;
    }
    auto const ranks = static_cast<int>(now.staying.size());
    result<run_config> config = planner.config();
    for (auto const& settings : due_->settings) {
        config = config_for(*config, settings, ranks);
        if (!config) {
            due_->error = config.error();
            return;
        }
    }
    auto changed = change_plan(job_->model, *std::move(config), now.in_force, now.staying);
    if (!changed) {
        due_->error = changed.error();
        return;
    }
    next_.emplace(*job_, std::move(changed->config), std::move(changed->first), std::move(changed->known));
}

void plan_changes::settled(step_id step, bool is_reporter)
{
    if (!due_ || due_->error.empty()) {
        return;
    }
    auto const refused = *std::exchange(due_, std::nullopt);
    remove_from_schedule(refused);
    record_->note(fmt::format("the plan stays as it is after step {}: {}: {}", step.value, refused.text, refused.error));
    if (refused.requested && is_reporter) {
        answer({step.value, false, refused.error});
    }
}

step_planner plan_changes::merge(step_id step)
{
    auto planner = std::move(*next_);
    remove_from_schedule(*due_);
    if (due_->requested) {
        unanswered_ = step;
    }
    drop();
    return planner;
}

void plan_changes::finish(std::string const& message, bool is_reporter)
{
    auto const step = std::exchange(unanswered_, std::nullopt);
    if (step && is_reporter) {
        answer({step->value, true, message});
    }
}

void plan_changes::drop()
{
    due_.reset();
    next_.reset();
}

void plan_changes::remove_from_schedule(due_change const& done)
{
    if (!done.requested) {
        schedule_.erase(schedule_.begin(), schedule_.begin() + std::ssize(done.settings));
    }
}

/// If the folder cannot be written, the training continues.
void plan_changes::answer(reshape_answer const& answer)
{
    try {
        answer_reshape_request(job_->config.run.folder, answer);
    } catch (exit_error const& error) {
        record_->note(error.what());
    }
}

}  // namespace rheo::inline v0
