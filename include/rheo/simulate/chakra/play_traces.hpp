#pragma once
// SPDX-License-Identifier: Apache-2.0

// Execution traces played on a network: computations on their rank, messages and collectives over links that all of them share. So what was
// measured or planned on one machine predicts the time on another.

#include <string>
#include <utility>

#include "rheo/simulate/chakra/detail/network_player.hpp"
#include "rheo/simulate/chakra/play_fault.hpp"
#include "rheo/simulate/chakra/play_rules.hpp"
#include "rheo/simulate/chakra/played_traces.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/trace/chakra/trace_set.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// Plays the traces to their end; rank r is device r of the network. @returns why they cannot be played, or why they hang, with the ranks that
/// wait for each other. Ranks whose traces are equal up to their numbers are played once where that gives the same times. Cost: the links that
/// all messages take, log of what is under way.
template <class Model>
result<played_traces<typename Model::time>> play_traces(chakra_trace_set const& traces, array_view<network_level<typename Model::link> const> levels,
                                                        chakra_play_rules<Model> const& rules)
{
    if (auto fault = chakra_play_fault<Model>(traces, levels, rules); !fault.empty()) {
        return failure{std::move(fault)};
    }
    auto symmetry = rules.joins_equal_ranks && rules.links == nullptr ? detail::find_symmetry(traces, levels, rules) : detail::no_symmetry(levels);
    if (!symmetry.is_trivial()) {
        detail::network_player<Model> classes{traces, levels, rules, std::move(symmetry)};
        auto played = classes.play();
        if (played && !classes.has_ties()) {
            return played;
        }
    }
    return detail::network_player<Model>{traces, levels, rules, detail::no_symmetry(levels)}.play();
}

}  // namespace rheo::inline v0
