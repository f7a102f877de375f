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

/// The config after the change, for the ranks that stay. Pipelines that the change does not name are the planner's where they were for other ranks.
result<run_config> config_for(run_config const& before, std::vector<std::string> const& settings, int ranks)
{
    auto config = changed_config(before, settings);
    if (!config || config->plan.pipelines.empty()) {
        return config;
    }
    auto& plan = config->plan;
    auto const asked = std::accumulate(plan.pipelines.begin(), plan.pipelines.end(), std::int64_t{plan.spares});
    if (asked == ranks) {
        return config;
    }
    if (std::any_of(settings.begin(), settings.end(), [](auto const& s) { return s.starts_with("plan.pipelines="); })) {
        return failure{fmt::format("plan.pipelines = {}{} asks for {} ranks, but the job has {}", plan.pipelines,
                                   plan.spares > 0 ? fmt::format(" with plan.spares = {}", plan.spares) : "", asked, ranks)};
    }
    plan.pipelines.clear();
    plan.layers.clear();
    plan.shares.clear();
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

/// What the reporter has found, on all ranks.
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
    wanted_ = wish{.text = fmt::format("rheo reshape {}", fmt::join(lines, " ")), .requested = true};
    if (settings) {
        wanted_->text = text_of(*settings);
        wanted_->changes.push_back(*std::move(settings));
    } else {
        wanted_->error = settings.error();
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
            if (!wanted_) {
                wanted_.emplace();
            }
            wanted_->text += (wanted_->text.empty() ? "" : ", then ") + text_of(change.settings);
            wanted_->changes.push_back(change.settings);
        }
    }
    if (!wanted_ && requested) {
        share_request(messages, now.is_reporter);
    }
    if (!wanted_ || !wanted_->error.empty()) {
        return;
    }
    auto const ranks = static_cast<int>(now.staying.size());
    result<run_config> config = planner.config();
    for (auto const& settings : wanted_->changes) {
        config = config_for(*config, settings, ranks);
        if (!config) {
            wanted_->error = config.error();
            return;
        }
    }
    auto changed = change_plan(job_->model, *std::move(config), now.in_force, now.staying);
    if (!changed) {
        wanted_->error = changed.error();
        return;
    }
    next_.emplace(*job_, std::move(changed->config), std::move(changed->first), std::move(changed->known));
}

void plan_changes::settled(step_id step, bool is_reporter)
{
    if (!wanted_ || wanted_->error.empty()) {
        return;
    }
    auto const refused = *std::exchange(wanted_, std::nullopt);
    forget_schedule(refused);
    record_->note(fmt::format("the plan stays as it is after step {}: {}: {}", step.value, refused.text, refused.error));
    if (refused.requested && is_reporter) {
        answer({step.value, false, refused.error});
    }
}

step_planner plan_changes::merge(step_id step)
{
    auto planner = std::move(*next_);
    forget_schedule(*wanted_);
    if (wanted_->requested) {
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
    wanted_.reset();
    next_.reset();
}

void plan_changes::forget_schedule(wish const& done)
{
    if (!done.requested) {
        schedule_.erase(schedule_.begin(), schedule_.begin() + std::ssize(done.changes));
    }
}

/// A folder that cannot be written to is no reason to end a training.
void plan_changes::answer(reshape_answer const& answer)
{
    try {
        answer_reshape_request(job_->config.run.folder, answer);
    } catch (exit_error const& error) {
        record_->note(error.what());
    }
}

}  // namespace rheo::inline v0
