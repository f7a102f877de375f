#pragma once
// SPDX-License-Identifier: Apache-2.0

// One rank's file under the contract of consumers: every node keeps it, ids ascend in the order of the program, and each dependency is on an
// earlier node of the file.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "rheo/trace/chakra/consumer_contract.hpp"
#include "rheo/trace/chakra/dependencies.hpp"
#include "rheo/trace/chakra/reader.hpp"
#include "rheo/trace/chakra/trace_set.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The dependencies of all steps, as places in the order of the file. @pre finish() found nothing
template <class OnlyWhenCalled = void>
void take_dependencies(chakra_dependencies<> const& dependencies, chakra_rank_trace& trace)
{
    for (std::size_t i = 0; i < trace.steps.size(); ++i) {
        for (auto const other : dependencies.waits_for(i)) {
            if (other != chakra_dependencies<>::absent) {
                trace.dependencies.push_back(static_cast<std::uint32_t>(other));
            }
        }
        trace.ends.push_back(trace.dependencies.size());
    }
}

}  // namespace detail

/// Reads a file to its end. @returns its steps, or what is wrong, with the byte or the node
template <class Source>
result<chakra_rank_trace> read_rank(Source source, chakra_place place)
{
    chakra_reader<Source> reader{std::move(source)};
    if (reader.error().empty() && reader.metadata().version.empty()) {
        return failure{"the version is empty; consumers refuse such files"};
    }
    chakra_rank_trace trace;
    chakra_dependencies<> dependencies;
    std::string broken;  // a circle or an absent node explains more than the order of ids: that is judged last
    while (auto const* const node = reader.next()) {
        auto step = keep_contract(*node, place);
        if (!step) {
            return failure{step.error()};
        }
        if (broken.empty() && !trace.steps.empty() && node->id <= trace.steps.back().id) {
            broken = "node " + std::to_string(node->id) + " comes behind node " + std::to_string(trace.steps.back().id) +
                     "; ids must ascend in the order of the program, since consumers begin nodes by ascending id";
        }
        for (auto const other : node->data_deps) {
            if (broken.empty() && other >= node->id) {
                broken = "node " + std::to_string(node->id) + " waits for node " + std::to_string(other) + ", which comes later in the program";
            }
        }
        trace.steps.push_back(*step);
        dependencies.add(*node);
    }
    if (!reader.error().empty()) {
        return failure{reader.error()};
    }
    if (auto const wrong = dependencies.finish(); !wrong.empty() || !broken.empty()) {
        return failure{wrong.empty() ? broken : wrong};
    }
    detail::take_dependencies(dependencies, trace);
    return trace;
}

}  // namespace rheo::inline v0
