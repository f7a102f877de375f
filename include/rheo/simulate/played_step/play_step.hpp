#pragma once
// SPDX-License-Identifier: Apache-2.0

// A step played on the network of a cluster: messages and reductions of all ranks go at once and share links. On free_network, with
// reductions of the times that rehearse_step gets, both give the same result.

#include <string>
#include <utility>

#include "rheo/simulate/network/network_level.hpp"
#include "rheo/simulate/played_step/detail/step_player.hpp"
#include "rheo/simulate/played_step/played_step.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// Sees nothing of a step that is played.
struct no_step_observer {
    template <class Time>
    void operator()(std::uint32_t, std::size_t, Time, Time)
    {
    }
};

/// Why the step cannot be played; empty when it can.
template <class Model>
std::string step_fault(modelled_step const& step, array_view<network_level<typename Model::link> const> levels, step_rules<Model> const& rules)
{
    if (auto fault = network_fault(levels); !fault.empty()) {
        return fault;
    }
    if (rules.reduction == step_reduction::nccl && !rules.nccl) {
        return "reductions by NCCL need what NCCL finds on the machine: the cluster's [nccl]";
    }
    for (auto const& pipeline : step.pipelines) {
        expects(pipeline.ranks.size() == pipeline.program.rows.size(), "a played pipeline needs a rank for every row");
        expects(pipeline.costs.size() == pipeline.program.placement.size(), "a played pipeline needs the costs of every stage");
        for (auto const rank : pipeline.ranks) {
            if (rank.value >= ranks_of(levels)) {
                return "rank " + std::to_string(rank.value) + " has no device: the cluster has " + std::to_string(ranks_of(levels));
            }
        }
    }
    return {};
}

/// Plays one attempt of a step, to its end or to where its losses lead. Costs of sends and reductions in the step are not looked at: the network says what
/// they take. Rank r is device r. Cost: a few events of log cost for each computation, message and message of a reduction.
/// Blocks of pipelines that are alike are played once, unless an observer wants to see them (detail/folded_step.hpp).
/// @param observer is called with each instruction that has ended: (row, place in its program, begin, end); of messages too, if it sees_messages
/// as step_recorder.hpp
template <class Model, class Observer>
result<played_step<typename Model::time>> play_step(modelled_step const& step, array_view<network_level<typename Model::link> const> levels,
                                                    step_rules<Model> const& rules, step_losses const& losses, Observer&& observer)
{
    if (auto fault = step_fault<Model>(step, levels, rules); !fault.empty()) {
        return failure{std::move(fault)};
    }
    constexpr auto hangs = "the step hangs: a rank waits for a message or a reduction that never comes";
    if constexpr (std::is_same_v<std::remove_cvref_t<Observer>, no_step_observer>) {
        bool const may_be_alike = losses.losses.empty() && rules.times == nullptr && rules.links == nullptr && !rules.each_pipeline;
        auto const fold = may_be_alike ? detail::fold_of(step, levels) : std::nullopt;
        if (fold && detail::has_alike_reductions(step, *fold, rules)) {
            auto const block = detail::first_block(step, *fold);
            detail::step_player<Model, std::remove_reference_t<Observer>> player{block, levels, rules, losses, observer, *fold};
            return player.play() ? result<played_step<typename Model::time>>{detail::unfolded(player.result(), *fold)} : failure{hangs};
        }
    }
    detail::step_player<Model, std::remove_reference_t<Observer>> player{step, levels, rules, losses, observer};
    if (!player.play()) {
        return failure{hangs};
    }
    return player.result();
}

template <class Model>
result<played_step<typename Model::time>> play_step(modelled_step const& step, array_view<network_level<typename Model::link> const> levels,
                                                    step_rules<Model> const& rules = {}, step_losses const& losses = {})
{
    return play_step<Model>(step, levels, rules, losses, no_step_observer{});
}

}  // namespace rheo::inline v0
