#pragma once
// SPDX-License-Identifier: Apache-2.0

// The points of a grid as jobs: keys of the config are set, keys of [cluster] change the described cluster, those of [pipelines] say how many
// equal pipelines of how many stages there are.

#include <cstdint>
#include <optional>
#include <string>

#include "executor/config/config.hpp"
#include "executor/config/files/grid_file.hpp"
#include "rheo/job/simulated_job.hpp"
#include "rheo/units/result.hpp"

namespace rheo::cli {

class grid_points {
public:
    /// @param cluster none: processes of one machine
    /// @throws exit_error (usage) with the line of the grid: an unknown key or level, a value of the wrong kind
    grid_points(sweep_grid grid, run_config config, std::optional<cluster_model> cluster, step_reduction reduction);

    sweep_grid const& grid() const { return grid_; }

    /// The job at a point. @returns why there is none
    result<job_description> job_at(std::int64_t point) const;

private:
    void check_axes() const;

    sweep_grid grid_;
    run_config config_;
    std::optional<cluster_model> cluster_;
    step_reduction reduction_;
};

}  // namespace rheo::cli
