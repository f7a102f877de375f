// SPDX-License-Identifier: Apache-2.0
// plan.json is read: the other direction is rheo/plan/json.hpp.
#include "executor/plan/plan_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/config/config.hpp"
#include "executor/config/strict_json.hpp"
#include "rheo/plan/json.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

using json = nlohmann::json;

[[noreturn]] void refuse(std::string const& path, std::string const& message) { throw exit_error{exit_code::usage, fmt::format("{}: {}", path, message)}; }

json const& member(json const& object, char const* key, std::string const& path)
{
    auto const found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end()) {
        refuse(path, fmt::format("no plan: expected an object with '{}'", key));
    }
    return *found;
}

json const& list_member(json const& object, char const* key, std::string const& path)
{
    auto const& list = member(object, key, path);
    if (!list.is_array()) {
        refuse(path, fmt::format("no plan: '{}' must be a list", key));
    }
    return list;
}

std::int32_t number(json const& value, char const* what, std::string const& path)
{
    if (!value.is_number_integer() || value < 0 || value > 0x7fffffff) {
        refuse(path, fmt::format("no plan: '{}' must hold whole numbers from 0 on", what));
    }
    return value.get<std::int32_t>();
}

std::vector<microbatch_work> read_work(json const& pipeline, std::string const& path)
{
    std::vector<microbatch_work> work;
    for (auto const& item : list_member(pipeline, "microbatches", path)) {
        auto const partial = item.is_array() && item.size() == 2;
        work.push_back({microbatch_id{number(partial ? item[0] : item, "microbatches", path)}, layer_id{partial ? number(item[1], "microbatches", path) : 0}});
    }
    return work;
}

/// Lists of lists of lists of numbers.
clocks_of_rows read_clocks(json const& value, std::string const& path)
{
    auto const list = [&](json const& what) -> json const& {
        if (!what.is_array()) {
            refuse(path, "no plan: 'clocks_MHz' must hold a list per pipeline, with a list of numbers per rank");
        }
        return what;
    };
    clocks_of_rows clocks;
    for (auto const& pipeline : list(value)) {
        clocks.emplace_back();
        for (auto const& row : list(pipeline)) {
            clocks.back().emplace_back();
            for (auto const& clock : list(row)) {
                if (!clock.is_number() || clock.get<double>() < 0.0 || clock.get<double>() > 1e6) {
                    refuse(path, "no plan: 'clocks_MHz' must hold numbers from 0 to 1000000");
                }
                clocks.back().back().push_back({clock.get<double>()});
            }
        }
    }
    return clocks;
}

/// Per pipeline the numbers of its stages.
std::vector<std::vector<bool>> read_recomputed(json const& lists, plan const& p, std::string const& path)
{
    auto const wrong = "no plan: 'recomputed_stages' must hold a list per pipeline, with numbers of its stages";
    if (!p.recompute.every_stage || lists.size() != p.pipelines.size()) {
        refuse(path, wrong);
    }
    std::vector<std::vector<bool>> marks;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        auto& marked = marks.emplace_back(p.pipelines[i].stages.size(), false);
        if (!lists[i].is_array()) {
            refuse(path, wrong);
        }
        for (auto const& stage : lists[i]) {
            auto const s = static_cast<std::size_t>(number(stage, "recomputed_stages", path));
            if (s >= marked.size()) {
                refuse(path, wrong);
            }
            marked[s] = true;
        }
    }
    return marks;
}

/// Per pipeline and rank a name for each layer.
std::vector<std::vector<std::vector<recompute_level>>> read_recompute_levels(json const& lists, plan const& p, std::string const& path)
{
    auto const wrong = "no plan: 'recompute_levels' must hold a list per pipeline, of a list per rank, of none, cheap or full for each layer";
    if (recomputes_stages(p) || lists.size() != p.pipelines.size()) {
        refuse(path, wrong);
    }
    std::vector<std::vector<std::vector<recompute_level>>> recompute_levels;
    for (std::size_t i = 0; i < lists.size(); ++i) {
        if (!lists[i].is_array() || lists[i].size() != ranks_of(p.pipelines[i]).size() || p.pipelines[i].cuts.empty()) {
            refuse(path, wrong);
        }
        recompute_levels.emplace_back();
        for (auto const& rank : lists[i]) {
            if (!rank.is_array() || rank.size() != at(p.pipelines[i].cuts.back())) {
                refuse(path, wrong);
            }
            auto& layers = recompute_levels.back().emplace_back();
            for (auto const& name : rank) {
                bool known = false;
                for (auto const how : {recompute_level::none, recompute_level::cheap, recompute_level::full}) {
                    if (name == name_of(how) && (how != recompute_level::full || p.slices == 1)) {
                        layers.push_back(how);
                        known = true;
                    }
                }
                if (!known) {
                    refuse(path, wrong);
                }
            }
        }
    }
    return recompute_levels;
}

}  // namespace

plan read_plan_file(std::string const& path, schedule_finder const& find)
{
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        refuse(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    std::ostringstream text;
    text << file.rdbuf();
    auto const whole = [&] {
        try {
            return parse_strict(text.str(), 8);
        } catch (json_error const&) {
            refuse(path, "no valid JSON; expected a plan as rheo plan --json prints it");
        }
    }();
    if (auto const& schema = member(whole, "schema", path); schema != plan_schema) {
        refuse(path, fmt::format("a plan of schema {}, expected {}", schema.dump(), plan_schema));
    }
    auto const& schedule = member(whole, "schedule", path);
    if (!schedule.is_string()) {
        refuse(path, "no plan: 'schedule' must be a name");
    }
    auto const found = find(schedule.get<std::string>());
    if (!found) {
        refuse(path, found.error());
    }
    plan result{.schedule = *found, .pipelines = {}, .work = {}, .spares = {}};
    if (auto const recompute = whole.find("recompute"); recompute != whole.end()) {
        if (!recompute->is_boolean()) {
            refuse(path, "no plan: 'recompute' must be true or false");
        }
        result.recompute.every_stage = recompute->get<bool>();
    }
    if (auto const slices = whole.find("slices"); slices != whole.end()) {
        result.slices = number(*slices, "slices", path);
        if (result.slices < 1) {
            refuse(path, "no plan: 'slices' counts from one");
        }
    }
    for (auto const& pipeline : list_member(whole, "pipelines", path)) {
        pipeline_instance instance;
        for (auto const& cut : list_member(pipeline, "cuts", path)) {
            instance.cuts.push_back(layer_id{number(cut, "cuts", path)});
        }
        for (auto const& stage : list_member(pipeline, "ranks", path)) {
            instance.stages.emplace_back();
            if (!stage.is_array()) {
                refuse(path, "no plan: 'ranks' must hold one list of ranks for each stage");
            }
            for (auto const& rank : stage) {
                instance.stages.back().push_back(rank_id{number(rank, "ranks", path)});
            }
        }
        result.pipelines.push_back(std::move(instance));
        result.work.push_back(read_work(pipeline, path));
    }
    if (auto const marked = whole.find("recomputed_stages"); marked != whole.end()) {
        result.recompute.stages = read_recomputed(list_member(whole, "recomputed_stages", path), result, path);
        result.recompute.every_stage = false;
    }
    if (auto const recompute_levels = whole.find("recompute_levels"); recompute_levels != whole.end()) {
        result.recompute.levels = read_recompute_levels(list_member(whole, "recompute_levels", path), result, path);
    }
    if (auto const clocks = whole.find("clocks_MHz"); clocks != whole.end()) {
        result.clocks = read_clocks(*clocks, path);
    }
    for (auto const& rank : list_member(whole, "spares", path)) {
        result.spares.push_back(rank_id{number(rank, "spares", path)});
    }
    if (member(whole, "digest", path) != to_string(digest_of(result))) {
        refuse(path, "the plan is not the one that its digest was made of");
    }
    return result;
}

}  // namespace rheo::inline v0
