#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a job does besides steps on a described cluster: copies of a recovery over its links, checkpoints to and from its storage.

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/job/rank_slowness.hpp"
#include "rheo/job/simulated_job.hpp"
#include "rheo/model/footprint.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/recover/replan.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/simulate/cluster/recovery_times.hpp"
#include "rheo/simulate/network/message_network.hpp"
#include "rheo/simulate/network/model_time.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Bytes that one rank sends to another in a round.
struct round_messages {
    std::map<std::pair<rank_id, rank_id>, bytes> sizes;
};

/// All rounds of copies, one after the other; what goes between two ranks in a round is one message. @param links of ranks, where they differ
template <class Model>
seconds rounds_time(std::vector<network_level<typename Model::link>> const& levels, rank_links<typename Model::link> const* links,
                    std::map<int, round_messages> const& rounds)
{
    seconds sum{};
    for (auto const& [round, messages] : rounds) {
        message_network<Model, int> network{array_view<network_level<typename Model::link> const>{levels}, links};
        for (auto const& [ends, size] : messages.sizes) {
            network.send(ends.first, ends.second, size, {}, 0);
        }
        seconds last{};
        while (auto const arrived = network.next()) {
            last = in_seconds(arrived->at);
        }
        sum += last;
    }
    return sum;
}

/// What a change of the members copies: state, accumulators, and what second ranks keep.
struct change_copies {
    bytes moved{};
    std::map<int, round_messages> rounds;
};

template <class OnlyWhenCalled = void>
change_copies copies_of(membership_plan const& plan, replanning const& known, dtype_policy const& policy)
{
    change_copies copies;
    auto const add = [&](int round, rank_id from, rank_id to, bytes size) {
        copies.rounds[round].sizes[{from, to}] += size;
        copies.moved += size;
    };
    int rounds = 0;
    for (auto const& t : plan.copies.transfers) {
        add(t.round, t.from, t.to, t.size);
        rounds = std::max(rounds, t.round + 1);
    }
    for (auto const& move : plan.salvage.moves) {
        auto const& tensor = known.state.tensors[at(known.state.uses[at(move.use)].tensor)];
        add(0, move.from, move.to, {elements(tensor.shape) * size_of(policy.accumulate)});
    }
    if (!plan.safety_copies.empty()) {
        for (auto const& t : plan_first_copies(plan, known).transfers) {
            add(rounds + t.round, t.from, t.to, t.size);
        }
    }
    return copies;
}

template <class OnlyWhenCalled = void>
bytes state_bytes_of(job_description const& job)
{
    bytes sum{};
    for (auto const& layer : job.model.layers) {
        sum += committed_bytes(layer, job.request.policy);
    }
    return sum;
}

/// How long everything but steps takes. @tparam Model of the network
template <class Model>
class change_times {
public:
    explicit change_times(job_description const& job)
        : cluster_{&job.cluster},
          levels_{network_of<typename Model::link>(job.cluster)},
          storage_{job.cluster.storage},
          phases_{job.cluster.recovery.value_or(recovery_times{})},
          memory_{job.cluster.device.description.traffic},
          state_{state_bytes_of(job)}
    {
    }

    /// From a loss until survivors hear of it.
    seconds detection() const { return phases_.detect; }

    /// The phases behind it. @param slow factors on the links of ranks
    recovery_times recovery(change_copies const& copies, slow_factors const& slow) const
    {
        auto phases = phases_;
        phases.detect = {};
        phases.copy = copying(copies, slow);
        return phases;
    }

    /// A change between two steps: nothing is revoked.
    recovery_times regrouping(change_copies const& copies, slow_factors const& slow) const
    {
        auto phases = recovery(copies, slow);
        phases.revoke = {};
        return phases;
    }

    /// A new begin from a checkpoint, which is read where others are copied. @param nodes that read it
    recovery_times restart(int nodes) const
    {
        auto phases = phases_;
        phases.copy = storage_ ? state_ / rate(storage_->read, storage_->node_read, nodes) : seconds{};
        return phases;
    }

    /// In which each rank copies its part of the state, read and written, beside which steps continue. Nothing where the cluster has no storage.
    seconds snapshot(int ranks) const { return storage_ ? 2.0 * (state_ / (memory_ * static_cast<double>(std::max(ranks, 1)))) : seconds{}; }

    /// Nothing where the cluster has no storage.
    seconds checkpoint(int nodes) const { return storage_ ? state_ / rate(storage_->write, storage_->node_write, nodes) : seconds{}; }

private:
    /// As described, else over the links.
    seconds copying(change_copies const& copies, slow_factors const& slow) const
    {
        if (phases_.copy > seconds{}) {
            return phases_.copy;
        }
        auto const links = links_of<typename Model::link>(*cluster_, slow);
        return rounds_time<Model>(levels_, links ? &*links : nullptr, copies.rounds);
    }

    static bytes_per_second rate(bytes_per_second all, std::optional<bytes_per_second> of_node, int nodes)
    {
        return of_node ? std::min(all, *of_node * static_cast<double>(std::max(nodes, 1))) : all;
    }

    cluster_model const* cluster_;
    std::vector<network_level<typename Model::link>> levels_;
    std::optional<cluster_storage> storage_;
    recovery_times phases_;
    bytes_per_second memory_;
    bytes state_;
};

}  // namespace detail
}  // namespace rheo::inline v0
