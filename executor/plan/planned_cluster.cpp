// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/planned_cluster.hpp"

#include <algorithm>
#include <map>
#include <mutex>

#include "executor/config/cluster/cluster_file.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

/// The description stays where it is: none is ever forgotten.
result<cluster_model const*> kept_cluster(std::string const& path)
{
    static std::mutex one_at_a_time;
    static std::map<std::string, cluster_model> clusters;
    std::lock_guard const lock{one_at_a_time};
    auto found = clusters.find(path);
    if (found == clusters.end()) {
        try {
            found = clusters.emplace(path, read_cluster_file(path)).first;
        } catch (exit_error const& why) {
            return failure{why.what()};
        }
    }
    return &found->second;
}

}  // namespace

result<cluster_model> find_cluster(std::string const& path)
{
    auto const kept = kept_cluster(path);
    if (!kept) {
        return failure{kept.error()};
    }
    return **kept;
}

flop_rate compute_of(std::string const& path, std::span<rank_id const> ranks)
{
    if (path.empty()) {
        return {};
    }
    auto const kept = kept_cluster(path);
    if (!kept || std::any_of(ranks.begin(), ranks.end(), [devices = devices_of(**kept)](rank_id rank) { return rank.value >= devices; })) {
        return {};
    }
    flop_rate sum;
    for (auto const rank : ranks) {
        sum += device_of(**kept, rank).description.compute;
    }
    return sum;
}

}  // namespace rheo::inline v0
