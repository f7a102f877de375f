// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/plan_tables.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/plan/equal_pipelines.hpp"
#include "executor/plan/text_table.hpp"

namespace rheo::inline v0 {

namespace {

std::string_view plural(std::int64_t count) { return count == 1 ? "" : "s"; }

std::string numbers_of(std::span<layer_id const> cuts)
{
    std::vector<int> numbers;
    for (auto const cut : cuts) {
        numbers.push_back(cut.value);
    }
    return fmt::format("{}", fmt::join(numbers, " "));
}

/// More are written as the layers of each stage.
constexpr std::size_t most_cuts = 17;

std::vector<int> layers_of_stages(std::span<layer_id const> cuts)
{
    std::vector<int> layers;
    for (std::size_t s = 1; s < cuts.size(); ++s) {
        layers.push_back(cuts[s].value - cuts[s - 1].value);
    }
    return layers;
}

/// "proved", or how far the optimum may be below.
std::string gap_of(makespan_split const& split)
{
    return split.is_optimal() ? "proved" : fmt::format("< {:.2f} %", 100 * (1 - split.bound / split.makespan) + 0.005);
}

std::string format_milliseconds(seconds time) { return fmt::format("{:.3f} ms", time.count * 1e3); }

/// Why the job cannot continue after a loss; empty when it can.
std::string end_of(loss_outcome const& outcome)
{
    if (outcome.only_copy) {
        return fmt::format("the only copy of layer {} is lost; without a checkpoint the run ends with exit code 6", outcome.only_copy->value);
    }
    return outcome.next.error;
}

std::vector<int> sizes_in(std::vector<pipeline_instance> const& pipelines)
{
    std::vector<int> sizes;
    for (auto const& pipeline : pipelines) {
        sizes.push_back(static_cast<int>(ranks_of(pipeline).size()));
    }
    return sizes;
}

/// "rank 5", or of many that are alike "rank 5 (1 of 64)"
std::string format_lost(std::string_view what, int number, int alike)
{
    return alike == 1 ? fmt::format("{} {}", what, number) : fmt::format("{} {} (1 of {})", what, number, alike);
}

/// What the loss of one rank leads to where that is not what the table has for one rank less; empty where it always is.
std::string after_one_loss(forecast const& f)
{
    auto const& promised = f.instantiations[1];
    std::optional<seconds> shortest, longest;
    bool same = true;
    bool modelled = true;
    for (auto const& outcome : f.ranks) {
        if (!end_of(outcome).empty()) {
            continue;
        }
        auto const sizes = sizes_in(outcome.next.pipelines);
        same = same && sizes == promised->sizes && outcome.next.shares == promised->shares && outcome.step == promised->time;
        modelled = modelled && outcome.step;
        if (outcome.step) {
            shortest = std::min(shortest.value_or(*outcome.step), *outcome.step);
            longest = std::max(longest.value_or(*outcome.step), *outcome.step);
        }
    }
    if (same) {
        return {};
    }
    return !modelled             ? "after a loss as below"
           : shortest == longest ? fmt::format("after a loss {}, as below", format_milliseconds(*longest))
                                 : fmt::format("after a loss {} to {}, as below", format_milliseconds(*shortest), format_milliseconds(*longest));
}

}  // namespace

std::string format_sizes(std::vector<pipeline_instance> const& pipelines)
{
    auto const sizes = sizes_in(pipelines);
    if (sizes.size() > most_listed && std::count(sizes.begin(), sizes.end(), sizes.front()) == std::ssize(sizes)) {
        return fmt::format("{} pipelines of {} rank{}", sizes.size(), sizes.front(), plural(sizes.front()));
    }
    auto const sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    return fmt::format("{} pipeline{} of {} rank{}", sizes.size(), plural(std::ssize(sizes)), format_sum(sizes), plural(sum));
}

std::string source_of(forecast const& f) { return f.profile.empty() ? "as modelled" : fmt::format("as profiled in {}", f.profile); }

std::string format_step(std::optional<seconds> step) { return step ? format_milliseconds(*step) : "not modelled"; }

std::string format_templates(std::span<makespan_template const> made, std::string counted_in, int each, int microbatches)
{
    std::vector<text_row> rows;
    for (auto const& one : made) {
        if (!one.split) {
            rows.push_back({{fmt::format("{}", one.nodes)}, one.split.error()});
            continue;
        }
        auto const fit = one.most_microbatches == 0 ? "-" : one.most_microbatches >= microbatches ? "all" : fmt::format("{}", one.most_microbatches);
        auto cuts = one.split->cuts.size() <= most_cuts ? numbers_of(one.split->cuts) : "stages of " + format_sum(layers_of_stages(one.split->cuts));
        if (std::any_of(one.split->devices.begin(), one.split->devices.end(), [](int d) { return d > 1; })) {
            cuts += fmt::format("; devices per stage {}", fmt::join(one.split->devices, " "));
        }
        cuts += one.instead.empty() ? "" : fmt::format("; {}", one.instead);
        rows.push_back({{fmt::format("{}", one.nodes), format_milliseconds(one.makespan_at(each)), gap_of(*one.split),
                         fmt::format("{:.2f} MiB", in_mebibytes(one.fullest)), fit},
                        cuts});
    }
    return to_text({{std::move(counted_in)}, {"makespan", true}, {"optimum", true}, {"fullest", true}, {"fit", true}, {"cuts before layers"}}, rows);
}

std::string format_instantiations(forecast const& f)
{
    std::vector<text_row> rows;
    for (auto const& chosen : f.instantiations) {
        auto const number = fmt::format("{}", chosen.ranks);
        if (!chosen) {
            rows.push_back({{number}, chosen.error()});
            continue;
        }
        std::vector<std::string> notes;
        if (chosen->spares > 0) {
            notes.push_back(fmt::format("{} spare", chosen->spares));
        }
        if (chosen->degraded) {
            notes.emplace_back("fewer pipelines than wanted");
        }
        if (chosen.ranks + 1 == f.instantiations.front().ranks) {
            if (auto note = after_one_loss(f); !note.empty()) {
                notes.push_back(std::move(note));
            }
        }
        rows.push_back({{number, format_sum(chosen->sizes), format_sum(chosen->shares),
                         format_step(chosen->time.count > 0.0 ? std::optional{chosen->time} : std::nullopt)},
                        fmt::format("{}", fmt::join(notes, ", "))});
    }
    return to_text({{"ranks"}, {"pipelines of"}, {"microbatches"}, {"a step", true}}, rows);
}

std::string message_of(loss_outcome const& outcome)
{
    if (auto end = end_of(outcome); !end.empty()) {
        return end;
    }
    auto const& next = outcome.next;
    return fmt::format("{}, shares {}, a step of {}{}, {:.2f} MiB copied{}", format_sizes(next.pipelines), format_sum(next.shares), format_step(outcome.step),
                       next.spares.empty() ? "" : fmt::format(", {} spare", next.spares.size()), in_mebibytes(next.copies.certificate.moved.value),
                       next.degraded ? "; " + next.message : "");
}

std::string format_outcomes(forecast const& f)
{
    std::vector<text_row> rows;
    std::size_t all = 0;
    for (auto const& outcome : f.ranks) {
        all += static_cast<std::size_t>(outcome.alike);
    }
    auto const add = [&](std::string lost, loss_outcome const& outcome) {
        if (auto end = outcome.lost.size() == all ? "no rank is left" : end_of(outcome); !end.empty()) {
            rows.push_back({{std::move(lost)}, std::move(end)});
            return;
        }
        auto const& next = outcome.next;
        auto rest = next.spares.empty() ? std::string{} : fmt::format("{} spare", next.spares.size());
        rest += next.degraded ? (rest.empty() ? "" : "; ") + next.message : "";
        rows.push_back({{std::move(lost), format_sum(sizes_in(next.pipelines)), format_sum(next.shares), format_step(outcome.step),
                         fmt::format("{:.2f} MiB", in_mebibytes(next.copies.certificate.moved.value))},
                        std::move(rest)});
    };
    for (auto const& outcome : f.ranks) {
        add(format_lost("rank", outcome.lost.front().value, outcome.alike), outcome);
    }
    for (auto const& outcome : f.nodes) {
        add(format_lost("node", outcome.lost.front().value / f.node_size, outcome.alike), outcome);
    }
    return to_text({{"lost", false, 7}, {"pipelines of"}, {"microbatches"}, {"a step", true}, {"copied", true}}, rows);
}

std::string format_pairs(pair_outcomes const& all)
{
    auto text = fmt::format("  any two   of {} pairs", all.pairs);
    std::pair<int, char const*> const outcomes[] = {{all.as_wanted, "are survived with as many pipelines as wanted"},
                                                    {all.fewer, "leave fewer pipelines than wanted"},
                                                    {all.too_few, "leave too few ranks for a pipeline"},
                                                    {all.state_lost, "lose the last copy of a layer"}};
    for (auto const& [count, outcome] : outcomes) {
        text += count == 0 ? "" : fmt::format(", {} {}", count, outcome);
    }
    return text + fmt::format("; at most {:.2f} MiB copied\n", in_mebibytes(all.most_copied));
}

}  // namespace rheo::inline v0
