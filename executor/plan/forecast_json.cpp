// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/forecast_json.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "executor/plan/plan_json.hpp"

namespace rheo::inline v0 {

namespace {

using json = nlohmann::ordered_json;

template <class Id>
json numbers_of(std::vector<Id> const& ids)
{
    auto list = json::array();
    for (auto const id : ids) {
        list.push_back(id.value);
    }
    return list;
}

json to_json(makespan_template const& one, char const* counted_in, int template_microbatches)
{
    if (!one.split) {
        return {{counted_in, one.nodes}, {"error", one.split.error()}};
    }
    json object{{counted_in, one.nodes},
                {"cuts", numbers_of(one.split->cuts)},
                {"devices", one.split->devices},
                {"makespan_s", one.split->makespan.count},
                {"bound_s", one.split->bound.count},
                {"proved", one.split->is_optimal()},
                {"fullest_bytes", one.fullest.count}};
    if (one.microbatches != template_microbatches) {
        object["cut_for_microbatches"] = one.microbatches;
    }
    if (one.most_microbatches > 0) {
        object["fitting_microbatches"] = one.most_microbatches;
    }
    if (!one.instead.empty()) {
        object["instead"] = one.instead;
    }
    return object;
}

json to_json(std::vector<makespan_template> const& templates, char const* counted_in, int template_microbatches)
{
    auto list = json::array();
    for (auto const& one : templates) {
        list.push_back(to_json(one, counted_in, template_microbatches));
    }
    return list;
}

json to_json(result<instantiation> const& chosen, int ranks)
{
    if (!chosen) {
        return {{"ranks", ranks}, {"error", chosen.error()}};
    }
    return {{"ranks", ranks},
            {"pipelines", chosen->sizes},
            {"microbatches", chosen->shares},
            {"spares", chosen->spares},
            {"step_s", chosen->time.count > 0.0 ? json(chosen->time.count) : json(nullptr)},
            {"degraded", chosen->degraded}};
}

json to_json(loss_outcome const& outcome)
{
    json object{{"lost", numbers_of(outcome.lost)}};
    if (outcome.alike > 1) {
        object["alike"] = outcome.alike;
    }
    if (outcome.only_copy) {
        object["only_copy_of_layer"] = outcome.only_copy->value;
        return object;
    }
    if (!outcome.next.error.empty()) {
        object["error"] = outcome.next.error;
        return object;
    }
    auto pipelines = json::array();
    for (auto const& pipeline : outcome.next.pipelines) {
        pipelines.push_back({{"cuts", numbers_of(pipeline.cuts)}, {"ranks", numbers_of(ranks_of(pipeline))}});
    }
    object["pipelines"] = pipelines;
    object["microbatches"] = outcome.next.shares;
    object["step_s"] = outcome.step ? json(outcome.step->count) : json(nullptr);
    object["spares"] = numbers_of(outcome.next.spares);
    object["copied_bytes"] = outcome.next.copies.certificate.moved.value.count;
    object["degraded"] = outcome.next.degraded;
    object["message"] = outcome.next.message;
    return object;
}

json to_json(std::vector<loss_outcome> const& outcomes)
{
    auto list = json::array();
    for (auto const& outcome : outcomes) {
        list.push_back(to_json(outcome));
    }
    return list;
}

/// Every part under its name, and `needed_bytes` as plan.memory_mib counts them: all but the workspace.
json to_json(rank_memory const& of)
{
    json object{{"rank", of.rank.value}, {"needed_bytes", needed_bytes(of.parts).count}};
    for (auto const& part : named_parts(of.parts)) {
        std::string key{part.name};
        std::replace(key.begin(), key.end(), ' ', '_');
        object[key + "_bytes"] = part.size.count;
    }
    return object;
}

}  // namespace

json to_json(forecast const& f)
{
    json object{{"template_microbatches", f.microbatches}, {"times", f.profile.empty() ? "modelled" : f.profile}};
    if (f.step) {
        object["step_s"] = f.step->count;
    }
    if (f.parts) {
        object["parts_of_step"] = {{"computing", f.parts->computing}, {"exchanging", f.parts->exchanging}, {"waiting", f.parts->waiting}};
    }
    object["templates"] = to_json(f.templates, "ranks", f.microbatches);
    if (!f.node_templates.empty()) {
        object["node_templates"] = to_json(f.node_templates, "nodes", f.microbatches);
    }
    auto& instantiations = object["instantiations"] = json::array();
    for (auto const& one : f.instantiations) {
        instantiations.push_back(to_json(one, one.ranks));
    }
    auto& memory = object["memory"] = json::array();
    for (auto const& one : f.memory) {
        memory.push_back(to_json(one));
    }
    auto const& now = f.as_it_stands;
    object["survivable"] = {{"ranks", now.ranks},
                            {"nodes", now.nodes},
                            {"only_ranks", numbers_of(now.only_ranks)},
                            {"only_nodes", numbers_of(now.only_nodes)},
                            {"message", to_string(now)}};
    object["after_loss_of_rank"] = to_json(f.ranks);
    if (f.node_size > 1) {
        object["node_size"] = f.node_size;
        object["after_loss_of_node"] = to_json(f.nodes);
    }
    if (f.pairs) {
        object["after_loss_of_two_ranks"] = {{"pairs", f.pairs->pairs},           {"as_wanted", f.pairs->as_wanted},
                                             {"fewer_pipelines", f.pairs->fewer}, {"too_few_ranks", f.pairs->too_few},
                                             {"state_lost", f.pairs->state_lost}, {"most_copied_bytes", f.pairs->most_copied.count}};
    }
    return object;
}

namespace {

json to_json(compared_plan const& one)
{
    json object{{"schedule", name_of(one.schedule)}, {"tensor", one.degree}};
    if (!one.error.empty()) {
        object["error"] = one.error;
        return object;
    }
    object.update({{"step_s", one.time.count}, {"needed_bytes", one.fullest.count}, {"recomputes", one.recomputes}, {"degraded", one.degraded}});
    if (!one.instead.empty()) {
        object["instead"] = one.instead;
    }
    return object;
}

}  // namespace

std::string plan_as_json(plan const& p, forecast const& f)
{
    auto object = to_json(p);
    object["forecast"] = to_json(f);
    return format_members(object);
}

std::string plan_as_json(initial_plan const& made, forecast const& f, step_limits const& limits)
{
    auto object = to_json(made.plan);
    auto& about = object["forecast"] = to_json(f);
    about["step_without_s"] = {{"link_time", limits.without_link_time.count}, {"waiting", limits.without_waiting.count}};
    if (limits.without_memory_limit) {
        about["step_without_s"]["memory_limit"] = limits.without_memory_limit->count;
    }
    about["binds"] = name_of(binding_limit(limits));
    for (auto const& one : made.compared) {
        about["compared"].push_back(to_json(one));
    }
    return format_members(object);
}

}  // namespace rheo::inline v0
