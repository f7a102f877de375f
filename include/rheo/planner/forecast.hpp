#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a plan leads to, as a value: templates, what every number of ranks would run, the memory of each rank, and what each loss would lead to. Only
// what the library computes; nothing is measured. make_forecast (planner/make_forecast.hpp) computes it; text and JSON are two forms of it.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/makespan_templates.hpp"
#include "rheo/pipeline/survivability.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/planner/step_parts.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What more is asked than the plan itself.
struct forecast_options {
    int node_size = 1;                     ///< ranks of a node, numbered through: above 1 the losses of whole nodes, and stages of several devices
    std::optional<bytes> device_memory{};  ///< of one rank: templates keep within it and say how many microbatches fit; none: plan.memory_mib
};

/// How the job continues after the loss of these ranks at once.
struct loss_outcome {
    std::vector<rank_id> lost;
    int alike = 1;                        ///< so many losses, this one included, hit pipelines that are the same but for the numbers of their ranks
    std::optional<seconds> step{};        ///< afterwards; none where pipelines stay that were cut by hand
    std::optional<layer_id> only_copy{};  ///< the first layer without another holder: without a checkpoint that is the end
    membership_plan next{};               ///< of the survivors, when no only copy was lost
};

/// Two ranks at once, all pairs: how many lead to what.
struct pair_outcomes {
    int pairs = 0;
    int as_wanted = 0;   ///< are survived with as many pipelines as wanted
    int fewer = 0;       ///< leave fewer pipelines than wanted
    int too_few = 0;     ///< leave too few ranks for a pipeline
    int state_lost = 0;  ///< lose the last copy of a layer
    bytes most_copied{};
};

/// The quickest pipelines of so many ranks, or why there are none. Time 0: not modelled.
struct rank_instantiation : result<instantiation> {
    rank_instantiation(int of_ranks, result<instantiation> chosen) : result<instantiation>{std::move(chosen)}, ranks{of_ranks} {}

    int ranks;
};

/// Of more ranks, losses that are alike are looked at once, and not every number of fewer ranks is.
inline constexpr int most_ranks_looked_at_alone = 64;

/// What a rank with a place holds, part by part.
struct rank_memory {
    rank_id rank;
    memory_parts parts;
};

struct forecast {
    int microbatches = 0;  ///< of a pipeline that the templates are cut for
    int node_size = 1;
    std::string profile{};                             ///< the file that all times follow; empty: they are modelled
    std::optional<seconds> step{};                     ///< of the plan; none where its pipelines were cut by hand
    std::optional<step_parts> parts{};                 ///< of that time; none if no ranks share a stage
    std::vector<makespan_template> templates{};        ///< sizes in ranks
    std::vector<makespan_template> node_templates{};   ///< sizes in nodes, whose devices share stages; empty when a node is a rank
    std::vector<rank_instantiation> instantiations{};  ///< the plan, then of one rank less, ... of one; of 1, 2, 4, ... less where there are many ranks.
                                                       ///< Empty if ranks share stages
    std::vector<rank_memory> memory{};                 ///< of every rank that has a place
    survivability as_it_stands{};
    std::vector<loss_outcome> ranks{};     ///< each one alone, or one of each that are alike
    std::vector<loss_outcome> nodes{};     ///< the same; none when a node is a rank
    std::optional<pair_outcomes> pairs{};  ///< not looked at for many ranks
};

}  // namespace rheo::inline v0
