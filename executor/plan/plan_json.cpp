// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/plan_json.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/config/strict_json.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

using work_of_pipelines = std::vector<std::vector<microbatch_work>>;

constexpr int most_stages = 1 << 20;

// A value of each type of field: as JSON, back again (false: it is none), and what one and several are called in an error.

ordered_json value_of(bool value) { return value; }
ordered_json value_of(int value) { return value; }
ordered_json value_of(megahertz clock) { return clock.count; }
ordered_json value_of(recompute_level level) { return name_of(level); }
ordered_json value_of(any_schedule schedule) { return name_of(schedule); }

template <class Tag, class Rep>
ordered_json value_of(tagged_index<Tag, Rep> index)
{
    return index.value;
}

ordered_json value_of(microbatch_work w)
{
    return w.deepest == layer_id{0} ? ordered_json(w.microbatch.value) : ordered_json{w.microbatch.value, w.deepest.value};
}

/// The numbers of the stages that are marked.
ordered_json value_of(std::vector<bool> const& stages)
{
    auto marked = ordered_json::array();
    for (std::size_t s = 0; s < stages.size(); ++s) {
        if (stages[s]) {
            marked.push_back(s);
        }
    }
    return marked;
}

ordered_json value_of(pipeline_instance const& pipeline);

template <class T>
ordered_json value_of(std::vector<T> const& elements)
{
    auto list = ordered_json::array();
    for (auto const& element : elements) {
        list.push_back(value_of(element));
    }
    return list;
}

ordered_json value_of(pipeline_instance const& pipeline)
{
    ordered_json object;
    for_each_field(pipeline, [&](std::string_view name, auto const& member, auto const&... absent) {
        if (sizeof...(absent) == 0 || !(... && (member == absent))) {
            object[name] = value_of(member);
        }
    });
    return object;
}

bool take(json const& value, bool& member)
{
    member = value.is_boolean() && value.get<bool>();
    return value.is_boolean();
}

bool take(json const& value, std::int32_t& member)
{
    bool const fits = value.is_number_integer() && value >= 0 && value <= 0x7fffffff;
    member = fits ? value.get<std::int32_t>() : 0;
    return fits;
}

bool take(json const& value, megahertz& member)
{
    member = {value.is_number() ? value.get<double>() : -1.0};
    return member >= megahertz{0.0} && member <= megahertz{1e6};
}

bool take(json const& value, recompute_level& member)
{
    for (auto const level : {recompute_level::none, recompute_level::cheap, recompute_level::full}) {
        if (value == name_of(level)) {
            member = level;
            return true;
        }
    }
    return false;
}

template <class Tag>
bool take(json const& value, tagged_index<Tag>& member)
{
    return take(value, member.value);
}

bool take(json const& value, microbatch_work& member)
{
    if (value.is_array()) {
        return value.size() == 2 && take(value[0], member.microbatch) && take(value[1], member.deepest);
    }
    return take(value, member.microbatch);
}

bool take(json const& value, std::vector<bool>& member)
{
    member.clear();
    for (auto const& one : value) {
        std::int32_t stage = 0;
        if (!take(one, stage) || stage >= most_stages) {
            return false;
        }
        auto const s = static_cast<std::size_t>(stage);
        member.resize(std::max(member.size(), s + 1));
        member[s] = true;
    }
    return value.is_array();
}

template <class T>
bool take(json const& value, std::vector<T>& member)
{
    member.clear();
    for (auto const& element : value) {
        if (!value.is_array() || !take(element, member.emplace_back())) {
            return false;
        }
    }
    return value.is_array();
}

template <class T>
struct spelled {
    static std::string one() { return "a whole number from 0 on"; }
    static std::string several() { return "whole numbers from 0 on"; }
};
template <>
struct spelled<bool> {
    static std::string one() { return "true or false"; }
    static std::string several() { return "numbers of stages"; }
};
template <>
struct spelled<megahertz> {
    static std::string several() { return "numbers from 0 to 1000000"; }
};
template <>
struct spelled<recompute_level> {
    static std::string several() { return "\"none\", \"cheap\" or \"full\""; }
};
template <>
struct spelled<microbatch_work> {
    static std::string several() { return "microbatches, each a number or [number, deepest layer]"; }
};
template <class T>
struct spelled<std::vector<T>> {
    static std::string one() { return "a list of " + spelled<T>::several(); }
    static std::string several() { return "lists of " + spelled<T>::several(); }
};

json const& member_of(json const& object, std::string_view name)
{
    auto const found = object.is_object() ? object.find(name) : object.end();
    if (!object.is_object() || found == object.end()) {
        throw json_error{fmt::format("no plan: expected an object with '{}'", name)};
    }
    return *found;
}

template <class T>
void read_field(json const& value, std::string_view name, T& member)
{
    if (!take(value, member)) {
        throw json_error{fmt::format("no plan: '{}' must be {}", name, spelled<T>::one())};
    }
}

/// Reads the fields of a plan; each pipeline's object has its microbatches, too.
struct plan_reader {
    json const& whole;
    schedule_finder const& find;

    template <class T>
    void operator()(std::string_view name, T& member) const
    {
        read_field(member_of(whole, name), name, member);
    }

    template <class T>
    void operator()(std::string_view name, T& member, T const& absent) const
    {
        auto const found = whole.find(name);
        if (found == whole.end()) {
            member = absent;
        } else {
            read_field(*found, name, member);
        }
    }

    void operator()(std::string_view name, any_schedule& member) const
    {
        auto const& value = member_of(whole, name);
        if (!value.is_string()) {
            throw json_error{fmt::format("no plan: '{}' must be a name", name)};
        }
        auto const found = find(value.get<std::string>());
        if (!found) {
            throw json_error{found.error()};
        }
        member = *found;
    }

    void operator()(std::string_view name, std::vector<pipeline_instance>& member) const
    {
        auto const& list = member_of(whole, name);
        if (!list.is_array()) {
            throw json_error{fmt::format("no plan: '{}' must be a list", name)};
        }
        for (auto const& object : list) {
            for_each_field(member.emplace_back(), [&](std::string_view key, auto& field, auto const&... absent) {
                if (sizeof...(absent) == 0 || object.contains(key)) {
                    read_field(member_of(object, key), key, field);
                }
            });
        }
    }

    void operator()(std::string_view name, work_of_pipelines& member) const
    {
        for (auto const& object : member_of(whole, "pipelines")) {
            read_field(member_of(object, name), name, member.emplace_back());
        }
    }
};

/// What is recomputed has a place in the pipelines; marks get the length that these have.
void fit_recomputation(plan& p)
{
    auto const expect = [](bool so, std::string_view name, std::string_view wanted) {
        if (!so) {
            throw json_error{fmt::format("no plan: '{}' must hold a list per pipeline, {}", name, wanted)};
        }
    };
    auto& [every_stage, stages, levels] = p.recompute;
    every_stage = every_stage && stages.empty();
    auto const of_stages = "with numbers of its stages";
    expect(stages.empty() || stages.size() == p.pipelines.size(), "recomputed_stages", of_stages);
    for (std::size_t i = 0; i < stages.size(); ++i) {
        expect(stages[i].size() <= p.pipelines[i].stages.size(), "recomputed_stages", of_stages);
        stages[i].resize(p.pipelines[i].stages.size());
    }
    auto const of_layers = "of a list per rank, of none, cheap or full for each layer; full only without slices, and no stages besides";
    expect(levels.empty() || (!recomputes_stages(p) && levels.size() == p.pipelines.size()), "recompute_levels", of_layers);
    for (std::size_t i = 0; i < levels.size(); ++i) {
        auto const& pipeline = p.pipelines[i];
        expect(!pipeline.cuts.empty() && levels[i].size() == groups_of(pipeline).size(), "recompute_levels", of_layers);
        for (auto const& layers : levels[i]) {
            expect(layers.size() == at(pipeline.cuts.back()), "recompute_levels", of_layers);
            for (auto const level : layers) {
                expect(level != recompute_level::full || p.slices == 1, "recompute_levels", of_layers);
            }
        }
    }
}

std::string in_one_line(ordered_json const& value)
{
    std::vector<std::string> parts;
    if (value.is_object()) {
        for (auto const& [key, member] : value.items()) {
            parts.push_back(ordered_json(key).dump() + ": " + in_one_line(member));
        }
        return fmt::format("{{{}}}", fmt::join(parts, ", "));
    }
    if (value.is_array()) {
        for (auto const& element : value) {
            parts.push_back(in_one_line(element));
        }
        return fmt::format("[{}]", fmt::join(parts, ", "));
    }
    return value.dump();
}

}  // namespace

ordered_json to_json(plan const& p)
{
    expects(p.work.size() == p.pipelines.size(), "each pipeline of a plan has its work");
    ordered_json object{{"schema", plan_schema}, {"kind", "rheo plan"}, {"digest", to_string(digest_of(p))}};
    for_each_field(p, [&](std::string_view name, auto const& member, auto const&... absent) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, work_of_pipelines>) {
            for (std::size_t i = 0; i < member.size(); ++i) {
                object["pipelines"][i][name] = value_of(member[i]);
            }
        } else if (sizeof...(absent) == 0 || !(... && (member == absent))) {
            object[name] = value_of(member);
        }
    });
    return object;
}

plan plan_from_json(json const& whole, schedule_finder const& find)
{
    if (auto const& schema = member_of(whole, "schema"); schema != plan_schema) {
        throw json_error{fmt::format("a plan of schema {}, expected {}", schema.dump(), plan_schema)};
    }
    plan result{.schedule = {}, .pipelines = {}, .work = {}, .spares = {}};
    for_each_field(result, plan_reader{whole, find});
    if (result.slices < 1) {
        throw json_error{"no plan: 'slices' counts from one"};
    }
    fit_recomputation(result);
    if (auto const digest = whole.find("digest"); digest != whole.end() && *digest != to_string(digest_of(result))) {
        throw json_error{"the plan is not the one that its digest was made of; a plan that was changed by hand goes without 'digest'"};
    }
    return result;
}

std::string format_members(ordered_json const& object)
{
    std::vector<std::string> members;
    for (auto const& [key, value] : object.items()) {
        auto text = value.is_object() ? value.dump(2) : in_one_line(value);
        if (value.is_array() && !value.empty() && value.front().is_object()) {
            std::vector<std::string> rows;
            for (auto const& row : value) {
                rows.push_back(in_one_line(row));
            }
            text = fmt::format("[\n    {}\n  ]", fmt::join(rows, ",\n    "));
        }
        members.push_back(fmt::format("  {}: {}", ordered_json(key).dump(), text));
    }
    return fmt::format("{{\n{}\n}}\n", fmt::join(members, ",\n"));
}

}  // namespace rheo::inline v0
