#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything that planning a job depends on besides the model and the number of ranks, as one value. `rheo plan` and `rheo train` make it from
// the config's tables [plan] and [train]; a program fills it in. Each field says which key it is: errors name the keys.

#include <optional>
#include <string>
#include <vector>

#include "rheo/partition/layer_profile.hpp"
#include "rheo/plan/optimizer_shards.hpp"
#include "rheo/planner/recompute_policy.hpp"
#include "rheo/planner/tensor_degrees.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/shape.hpp"
#include "rheo/topology/cluster.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Messages between processes of one machine, as modelled.
inline constexpr modelled_link link_between_ranks{{10e-6}, {5e9}};

/// Ranks that are processes of one machine, as modelled. Plans depend on ratios of times only.
inline constexpr cluster_description processes_of_one_machine{1, {{50e9}, {5e9}, {}}, {{1e-6}, {5e9}}, link_between_ranks};

struct planning_request {
    any_schedule schedule;                                 ///< plan.schedule; one_f_one_b{} for 1F1B
    std::vector<any_schedule> candidates{};                ///< plan.schedule = "auto": the planner chooses one of these; empty: `schedule`
    int microbatches = 8;                                  ///< train.microbatches, per step
    microbatch_shape microbatch{4, 64};                    ///< train.microbatch, with train.slices
    dtype_policy policy = fp32;                            ///< train.dtype and train.sums
    std::vector<int> pipelines{};                          ///< plan.pipelines: ranks of each; empty: the planner chooses
    tensor_degrees tensor{};                               ///< plan.tensor: ranks that share each stage; 0: the planner chooses
    int group_size = 1;                                    ///< each rank of the request stands for a group of so many, and memory is that of its largest member
    std::vector<int> layers{};                             ///< plan.layers: of each stage, pipelines one after the other; empty: the planner cuts
    std::vector<int> shares{};                             ///< plan.shares: microbatches of each pipeline; empty: by speed
    int failures = 1;                                      ///< plan.failures, f: at least f + 1 pipelines are kept whenever possible
    int min_ranks = 1;                                     ///< plan.min_ranks: fewest ranks of a pipeline
    int spares = 0;                                        ///< plan.spares: ranks that wait until one is lost
    int node_size = 1;                                     ///< plan.node_size: rank / node_size is a rank's node
    std::optional<bytes> memory_limit{};                   ///< plan.memory_mib: of a rank, for state and activations; none: unlimited
    recompute_policy recompute = recompute_policy::never;  ///< plan.recompute
    bool shard_optimizer = false;                          ///< plan.optimizer_shards: f + 1 ranks keep each moment
    seconds mtbf{10'000 * 3600.0};                         ///< plan.mtbf_h: mean time between losses of one rank
    std::vector<layer_profile> profile{};  ///< plan.layer_profile: measured times, one for each layer of the model; empty: modelled for `machine`
    std::string profile_name{};            ///< the file that the profile is from, for reports
    cluster_description machine = processes_of_one_machine;

    friend bool operator==(planning_request const&, planning_request const&) = default;
};

/// Who keeps moments in plans of the request.
constexpr optimizer_shards optimizer_shards_of(planning_request const& request)
{
    return request.shard_optimizer ? optimizer_shards{request.failures + 1, request.node_size} : optimizer_shards{};
}

/// Of what optimizer shards divide of a rank's layers, the share that it is planned to keep: as after the loss of f of the requested pipelines. If the request
/// names none, all but f + 1 may be lost, whose ranks keep all.
constexpr double optimizer_share(planning_request const& request)
{
    auto const copies = optimizer_shards_of(request).copies;
    auto const left = static_cast<int>(request.pipelines.size()) - request.failures;
    return copies > 0 && left > copies ? static_cast<double>(copies) / left : 1.0;
}

/// The microbatches of a step that each pipeline runs when all run as many; rounded up. Templates are cut for it.
constexpr int even_share(planning_request const& request)
{
    auto const pipelines = request.pipelines.empty() ? request.failures + 1 : static_cast<int>(request.pipelines.size());
    return (request.microbatches + pipelines - 1) / pipelines;
}

}  // namespace rheo::inline v0
