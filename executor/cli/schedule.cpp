// SPDX-License-Identifier: Apache-2.0
// `rheo schedule`: one schedule alone, by name or from a file: its drawing, its figures, its proof.

#include "executor/cli/schedule.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/cli/commands.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/check/fifo_depth.hpp"
#include "rheo/schedule/check/figures.hpp"
#include "rheo/schedule/check/stuck_state.hpp"
#include "rheo/schedule/draw/draw.hpp"
#include "rheo/schedule/draw/svg.hpp"
#include "rheo/schedule/draw/text_schedule.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/relax.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/in_quotes.hpp"

namespace rheo::cli {

namespace {

/// The times of a full stage, in the user's own unit.
stage_cost costs_named(std::string const& text)
{
    std::vector<double> numbers;
    for (std::size_t begin = 0; begin <= text.size();) {
        auto const end = std::min(text.find(',', begin), text.size());
        auto const word = text.substr(begin, end - begin);
        std::size_t read = 0;
        double value = -1.0;
        try {
            value = std::stod(word, &read);
        } catch (std::exception const&) {  // the sentence below
        }
        if (read != word.size() || !(value >= 0.0) || value > 1e9) {
            throw exit_error{exit_code::usage, fmt::format("--costs: {} is not a time; --costs wants f,i,w,transfer, for example 1,1,1,0", in_quotes(word))};
        }
        numbers.push_back(value);
        begin = end + 1;
    }
    if (numbers.size() < 3 || numbers.size() > 4) {
        throw exit_error{exit_code::usage, fmt::format("--costs has {} times; --costs wants f,i,w,transfer, for example 1,1,1,0", numbers.size())};
    }
    if (numbers[0] + numbers[1] + numbers[2] == 0.0) {
        throw exit_error{exit_code::usage, "--costs: a step that takes no time has no bubble; one of f, i and w must be more than 0, for example 1,1,1,0"};
    }
    seconds const transfer{numbers.size() == 4 ? numbers[3] : 0.0};
    return {{numbers[0]}, {numbers[1] + numbers[2]}, {numbers[1]}, {numbers[2]}, transfer, transfer};
}

/// A file is written for one size: options that ask for another are a mistake. @throws exit_error
void expect_size(chosen_schedule const& read, schedule_command_options const& options)
{
    auto const ranks = static_cast<int>(read.program.rows.size());
    if ((options.ranks != 0 && options.ranks != ranks) || (options.microbatches != 0 && options.microbatches != read.microbatches)) {
        throw exit_error{exit_code::usage,
                         fmt::format("{}: written for {} ranks and {} microbatches, but {}", read.name, ranks, read.microbatches,
                                     options.ranks != 0 && options.ranks != ranks ? fmt::format("--ranks says {}", options.ranks)
                                                                                  : fmt::format("--microbatches says {}", options.microbatches))};
    }
    auto const stages = stages_per_copy(read.program);
    if (options.chunks != 0 && options.chunks * ranks != stages) {
        throw exit_error{exit_code::usage,
                         fmt::format("{}: written for {} stages on {} ranks, but --chunks says {} per rank", read.name, stages, ranks, options.chunks)};
    }
    if (options.group != 0) {
        throw exit_error{exit_code::usage, fmt::format("{}: its order is written down; --group is for families", read.name)};
    }
}

chosen_schedule read_schedule(std::string const& path, int slices)
{
    std::ifstream file{path};
    if (!file) {
        throw exit_error{exit_code::usage, fmt::format("{}: cannot be read", path)};
    }
    std::string const text{std::istreambuf_iterator<char>{file}, {}};
    auto read = parse_schedule_text(text, std::max(slices, 1));
    if (!read) {
        throw exit_error{exit_code::usage, fmt::format("{}: {}", path, read.error())};
    }
    return {path, "a file", std::move(read->program), read->microbatches};
}

}  // namespace

chosen_schedule choose(schedule_command_options const& options)
{
    if (std::filesystem::is_regular_file(options.name)) {
        auto read = read_schedule(options.name, options.slices);
        expect_size(read, options);
        return read;
    }
    auto const parsed = parse_schedule(options.name);
    if (!parsed && options.name.find_first_of("./") != std::string::npos) {
        throw exit_error{exit_code::usage, fmt::format("{}: no such file", options.name)};
    }
    if (!parsed) {
        throw exit_error{exit_code::usage, parsed.error() + "; rheo schedule --list names all"};
    }
    if (options.ranks == 0 || options.microbatches == 0) {
        throw exit_error{exit_code::usage, fmt::format("how large is {} to be? Say --ranks P and --microbatches M", options.name)};
    }
    schedule_shape const shape{options.ranks, options.microbatches, options.chunks, options.group, options.slices};
    if (auto const fault = error_of(*parsed, shape); fault != shape_error::none) {
        throw exit_error{exit_code::impossible_plan,
                         fmt::format("{} on {} ranks with {} microbatches: {}", options.name, shape.ranks, shape.microbatches, message_of(fault))};
    }
    return {options.name, std::string{source_of(*parsed)}, make_program(*parsed, shape), shape.microbatches};
}

namespace {

/// Largest of a rank, in full stages: a chunk counts its part, a slice its part again.
double peak_in_stages(rheo::program const& p, std::vector<int> const& peaks)
{
    return *std::max_element(peaks.begin(), peaks.end()) * static_cast<double>(p.rows.size()) / (stages_per_copy(p) * p.slices);
}

std::string format_depth(std::optional<int> depth)
{
    return !depth        ? "do not help at any depth: messages arrive in another order than they are received in"
           : *depth == 0 ? "need no place"
                         : fmt::format("need {} place{}", *depth, *depth == 1 ? "" : "s");
}

std::string format_text(chosen_schedule const& s, stage_costs const& costs)
{
    auto const& p = s.program;
    auto const f = figures_of(p, costs);
    auto const lowered = lower(p);
    auto const lazy = lower_lazily(p);
    double least = 0.0;
    for (auto const& c : costs) {
        for (auto const time : {c.forward, c.backward, c.input_gradient, c.weight_gradient}) {
            least = time.count > 0.0 && (least == 0.0 || time.count < least) ? time.count : least;
        }
    }
    std::string text = fmt::format("{}: {}\n", s.name, s.source);
    if (least > 0.0 && f.makespan.count / least <= 200.0) {
        text += draw(p, costs, seconds{least});
    }
    text += fmt::format("  makespan        {:.6g}, work of the busiest rank {:.6g}\n", f.makespan.count, f.largest_work.count);
    text += fmt::format("  bubble          {:.6g} of the makespan; {:.6g} between a rank's first and last computation\n", f.makespan_bubble.count,
                        f.span_bubble.count);
    text += fmt::format("  lower bound     {:.6g}{}\n", f.lower_bound.count, f.is_shortest() ? ", met" : "");
    text += fmt::format("  activations     {:.6g} full stages at most, parameters {}\n", peak_in_stages(p, f.peaks), p.copies == 1 ? "once" : "twice");
    auto const complete_verdict = complete(p, s.microbatches);
    auto const sound = deadlock_free<rendezvous>(lowered);
    text += fmt::format("  pair insertion  {}, {}\n", complete_verdict ? "every computation once" : complete_verdict.message(),
                        sound ? "no rank waits for ever, even if every send waits for its receive" : sound.message());
    auto const buffers = receive_buffers_by_rank(lowered);
    text += fmt::format("  buffers         {} received messages at once", *std::max_element(buffers.begin(), buffers.end()));
    std::size_t instructions = 0;
    for (auto const& row : lowered.rows) {
        instructions += row.size();
    }
    if (instructions <= 600) {
        auto const relaxed = receive_buffers_by_rank(relax(lowered));
        text += fmt::format(", {} when receives come as late as the proof allows", *std::max_element(relaxed.begin(), relaxed.end()));
    }
    auto const stuck = shortest_stuck_state<rendezvous>(lazy);
    text += fmt::format("\n  lazy insertion  {}\n", stuck ? "ends under rendezvous" : stuck.message());
    text += fmt::format("                  queues between two ranks {}\n", format_depth(least_fifo_depth(lazy)));
    text += fmt::format("                  queues of one direction {}\n", format_depth(least_fifo_depth(lazy, true)));
    return text;
}

/// What PyTorch's schedules have no words for, though their text form has; empty: it runs the schedule.
std::string pytorch_error(rheo::program const& p)
{
    if (p.copies > 1) {
        return "its stages each run every microbatch, but here two copies of the model share them, in two directions";
    }
    return p.slices > 1 ? "it would take slices of a sequence for microbatches that know nothing of each other" : "";
}

nlohmann::ordered_json as_json(chosen_schedule const& s, stage_costs const& costs)
{
    auto const f = figures_of(s.program, costs);
    auto const lowered = lower(s.program);
    auto const lines = [](rheo::program const& p) {
        std::vector<std::string> rows(1);
        for (char const c : to_text(p)) {
            if (c == '\n') {
                rows.emplace_back();
            } else {
                rows.back() += c;
            }
        }
        rows.pop_back();
        return rows;
    };
    nlohmann::ordered_json depth = nullptr;
    if (auto const found = least_fifo_depth(lower_lazily(s.program))) {
        depth = *found;
    }
    return {{"schema", 1},
            {"schedule", s.name},
            {"source", s.source},
            {"ranks", s.program.rows.size()},
            {"microbatches", s.microbatches},
            {"placement", s.program.placement},
            {"copies", s.program.copies},
            {"slices", s.program.slices},
            {"makespan", f.makespan.count},
            {"largest_work", f.largest_work.count},
            {"makespan_bubble", f.makespan_bubble.count},
            {"span_bubble", f.span_bubble.count},
            {"lower_bound", f.lower_bound.count},
            {"lower_bound_met", f.is_shortest()},
            {"peak_stages", peak_in_stages(s.program, f.peaks)},
            {"peak_activations", f.peaks},
            {"deadlock_free", deadlock_free<rendezvous>(lowered).ok},
            {"lazy_fifo_depth", depth},
            {"program", lines(s.program)},
            {"lowered", lines(lowered)}};
}

}  // namespace

int schedule(schedule_command_options const& options)
{
    if (options.list) {
        for (auto const schedule : schedule_families()) {
            fmt::print("{:<13}{}\n", name_of(schedule), source_of(schedule));
        }
        return 0;
    }
    if (options.name.empty()) {
        throw exit_error{exit_code::usage, "which schedule? rheo schedule --list names all; a file works too"};
    }
    auto const full = costs_named(options.costs);
    auto const chosen = choose(options);
    auto const costs = even_costs(chosen.program, full);
    if (options.format == "pytorch") {
        if (auto const doubt = pytorch_error(chosen.program); !doubt.empty()) {
            fmt::print(stderr, "rheo: note: PyTorch does not run this: {}\n", doubt);
        }
        fmt::print("{}", to_text(chosen.program));
    } else if (options.format == "svg") {
        fmt::print("{}", to_svg(chosen.program, costs));
    } else if (options.format == "json") {
        fmt::print("{}\n", as_json(chosen, costs).dump(2));
    } else {
        fmt::print("{}", format_text(chosen, costs));
    }
    return 0;
}

}  // namespace rheo::cli
