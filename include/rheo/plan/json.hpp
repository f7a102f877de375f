#pragma once
// SPDX-License-Identifier: Apache-2.0

// plan.json, the plan on disk: versioned, complete, readable. `rheo plan --json` prints it, `rheo train --plan`
// reads it (the reader is the executor's, over a JSON library; the writer needs none).

#include <cstddef>
#include <ostream>
#include <string_view>

#include "rheo/plan/plan.hpp"
#include "rheo/tensor/digest.hpp"

namespace rheo::inline v0 {

inline constexpr int plan_schema = 1;

namespace detail {

template <class List, class Write>
void write_list(std::ostream& out, List const& list, Write write)
{
    out << '[';
    std::string_view separator;
    for (auto const& item : list) {
        out << separator;
        write(item);
        separator = ", ";
    }
    out << ']';
}

}  // namespace detail

/// Writes the plan as one JSON object. Microbatches with all of their backward are plain numbers, others
/// are [microbatch, deepest layer]. What is recomputed stands there by pipeline, position and layer when some is. Clocks stand there when the plan has some: by pipeline, position and computation.
template <class OnlyWhenCalled = void>
void write_json(std::ostream& out, plan const& p)
{
    using detail::write_list;
    out << "{\n  \"schema\": " << plan_schema << ",\n  \"kind\": \"rheo plan\",\n  \"schedule\": \"" << name_of(p.schedule)
        << (recomputes_stages(p) ? "\",\n  \"recompute\": true" : "\"");
    if (!p.recompute.stages.empty()) {
        out << ",\n  \"recomputed_stages\": ";
        write_list(out, p.recompute.stages, [&](auto const& stages) {
            std::vector<std::size_t> marked;
            for (std::size_t s = 0; s < stages.size(); ++s) {
                if (stages[s]) {
                    marked.push_back(s);
                }
            }
            write_list(out, marked, [&](std::size_t s) { out << s; });
        });
    }
    if (!p.recompute.levels.empty()) {
        out << ",\n  \"recompute_levels\": ";
        write_list(out, p.recompute.levels, [&](auto const& pipeline) {
            write_list(out, pipeline, [&](auto const& layers) { write_list(out, layers, [&](recompute_level how) { out << '"' << name_of(how) << '"'; }); });
        });
    }
    if (p.slices > 1) {
        out << ",\n  \"slices\": " << p.slices;
    }
    out << ",\n  \"digest\": \"" << to_string(digest_of(p)) << "\",\n  \"pipelines\": [";
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        out << (i == 0 ? "\n" : ",\n") << "    {\"cuts\": ";
        write_list(out, p.pipelines[i].cuts, [&](layer_id cut) { out << cut.value; });
        out << ", \"ranks\": ";
        write_list(out, p.pipelines[i].stages, [&](auto const& stage) { write_list(out, stage, [&](rank_id rank) { out << rank.value; }); });
        out << ", \"microbatches\": ";
        write_list(out, p.work[i], [&](microbatch_work w) {
            if (w.deepest == layer_id{0}) {
                out << w.microbatch.value;
            } else {
                out << '[' << w.microbatch.value << ", " << w.deepest.value << ']';
            }
        });
        out << '}';
    }
    out << "\n  ],\n  \"spares\": ";
    write_list(out, p.spares, [&](rank_id rank) { out << rank.value; });
    if (!p.clocks.empty()) {
        out << ",\n  \"clocks_MHz\": ";
        write_list(out, p.clocks, [&](auto const& pipeline) {
            write_list(out, pipeline, [&](auto const& row) { write_list(out, row, [&](megahertz clock) { out << clock.count; }); });
        });
    }
    out << "\n}\n";
}

}  // namespace rheo::inline v0
