// SPDX-License-Identifier: Apache-2.0
// `rheo frontier --ranks from..to`: for each number of ranks that is left, the pipelines and their clocks, chosen one after
// the other and together. The stages of the profile are the layers that templates are cut from.

#include "executor/cli/frontier/frontier_input.hpp"

#include <charconv>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "rheo/pipeline/plan_templates.hpp"
#include "rheo/planner/templates_and_clocks.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

size_range read_range(std::string const& text)
{
    size_range range{0, 0};
    auto const* const end = text.data() + text.size();
    auto const first = std::from_chars(text.data(), end, range.from);
    bool sound = first.ec == std::errc{};
    range.to = range.from;
    if (sound && first.ptr != end) {
        sound = text.compare(static_cast<std::size_t>(first.ptr - text.data()), 2, "..") == 0;
        auto const second = sound ? std::from_chars(first.ptr + 2, end, range.to) : first;
        sound = sound && second.ec == std::errc{} && second.ptr == end;
    }
    if (!sound || range.from < 1 || range.to < range.from || range.to > 4096) {
        throw exit_error{exit_code::usage, fmt::format("--ranks is '{}', but it is a range like 4..12", text)};
    }
    return range;
}

/// Refuses a family that has no program of one stage per rank for each template and each share of the microbatches.
void expect_serves(frontier_input const& input, template_set_value const& ready, frontier_options const& options)
{
    for (auto const size : sizes_of(ready)) {
        for (int microbatches = 1; microbatches <= options.microbatches; ++microbatches) {
            schedule_shape const shape{.ranks = size, .microbatches = microbatches};
            auto const fault = error_of(input.schedule, shape);
            if (fault != shape_error::none || (microbatches == 1 && static_cast<int>(make_program(input.schedule, shape).placement.size()) != size)) {
                throw exit_error{
                    exit_code::usage,
                    fmt::format("--ranks needs a schedule with a stage per rank for any number of microbatches, such as 1f1b; {} is none", options.schedule)};
            }
        }
    }
}

std::string in_words(joint_choice const& choice)
{
    std::string text;
    for (std::size_t k = 0; k < choice.pipelines.size();) {
        auto end = k;
        while (end < choice.pipelines.size() && choice.pipelines[end] == choice.pipelines[k]) {
            ++end;
        }
        text += (text.empty() ? "" : " ") + (end - k > 1 ? fmt::format("{}x", end - k) : std::string{}) +
                fmt::format("{}:{}", choice.pipelines[k].ranks, choice.pipelines[k].microbatches);
        k = end;
    }
    return text;
}

nlohmann::ordered_json as_json(joint_choice const& choice)
{
    auto pipelines = nlohmann::ordered_json::array();
    for (auto const p : choice.pipelines) {
        pipelines.push_back({{"ranks", p.ranks}, {"microbatches", p.microbatches}});
    }
    return {{"pipelines", pipelines}, {"time_s", choice.time.count}, {"energy_J", choice.energy.count}};
}

}  // namespace

int survivors(frontier_options const& options)
{
    auto const range = read_range(options.ranks);
    auto const input = read_input(options);
    if (options.microbatches <= options.failures) {
        throw exit_error{exit_code::usage,
                         fmt::format("--microbatches {} is too few: each of {} pipelines needs one", options.microbatches, options.failures + 1)};
    }
    auto const layers = layer_times(input.measured);
    auto const ready = plan_templates(layers, {options.min_ranks, std::max(options.min_ranks, range.to)});
    if (ready.templates.empty()) {
        throw exit_error{exit_code::impossible_plan,
                         fmt::format("--min-ranks {}: the profile has {} stages, so no pipeline is that long", options.min_ranks, layers.size())};
    }
    expect_serves(input, ready, options);
    template_frontiers frontiers{ready, input.measured,
                                 [&](int ranks, int microbatches) { return make_program(input.schedule, {.ranks = ranks, .microbatches = microbatches}); },
                                 input.request};
    if (auto const error = frontiers.error(); !error.empty()) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: {}", options.profile, error)};
    }
    (void)network_for(make_program(input.schedule, {.ranks = static_cast<int>(layers.size()), .microbatches = 1}), input, options);
    std::vector<survivors_choice> rows;
    progress_bar bar;
    for (int ranks = range.from; ranks <= range.to; ++ranks) {
        rows.push_back(choose_for_survivors(ready, {.ranks = ranks, .failures = options.failures, .microbatches = options.microbatches}, input.request.blocking,
                                            frontiers, time_option("--deadline", options.deadline)));
        bar.show(static_cast<double>(ranks - range.from + 1) / (range.to - range.from + 1));
    }
    bar.clear();
    if (options.json) {
        auto all = nlohmann::ordered_json::array();
        for (auto const& row : rows) {
            if (row.apart) {
                all.push_back({{"ranks", row.ranks}, {"one_after_the_other", as_json(*row.apart)}, {"together", as_json(*row.together)}});
            } else {
                all.push_back({{"ranks", row.ranks}, {"error", row.apart.error()}});
            }
        }
        fmt::print("{}\n", nlohmann::ordered_json{{"schema", 1},
                                                  {"schedule", options.schedule},
                                                  {"layers", layers.size()},
                                                  {"microbatches", options.microbatches},
                                                  {"failures", options.failures},
                                                  {"survivors", all}}
                               .dump(2));
        return 0;
    }
    std::size_t width = 10;
    for (auto const& row : rows) {
        width = row.apart ? std::max({width, in_words(*row.apart).size(), in_words(*row.together).size()}) : width;
    }
    fmt::print("{}, {} layers, {} microbatches, {} losses to survive; pipelines as ranks:microbatches\n\n", options.schedule, layers.size(),
               options.microbatches, options.failures);
    fmt::print("ranks      time s   {:<{}}    energy J   {:<{}}    energy J     less\n", "templates, then clocks", width, "together", width);
    for (auto const& row : rows) {
        if (!row.apart) {
            fmt::print("{:5}   {}\n", row.ranks, row.apart.error());
            continue;
        }
        fmt::print("{:5} {:11.6f}   {:<{}} {:11.3f}   {:<{}} {:11.3f} {:6.2f} %\n", row.ranks, row.apart->time.count, in_words(*row.apart), width,
                   row.apart->energy.count, in_words(*row.together), width, row.together->energy.count,
                   100.0 * (1.0 - row.together->energy / row.apart->energy));
    }
    return 0;
}

}  // namespace rheo::cli
