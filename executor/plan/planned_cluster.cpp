// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/planned_cluster.hpp"

#include <map>
#include <mutex>

#include "executor/config/cluster/cluster_file.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

result<cluster_model> find_cluster(std::string const& path)
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
    return found->second;
}

}  // namespace rheo::inline v0
