#pragma once
// SPDX-License-Identifier: Apache-2.0

// The grid of a sweep as TOML (docs/reference/grid.md): `schema = 1`, and for each key that varies a list of its values, in the tables of the config, in
// [cluster] and in [pipelines]. A point has one value of each. A refusal names file and line.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rheo::inline v0 {

struct grid_axis {
    std::string key;                  ///< "train.microbatches", "cluster.level.node.rate_gb_per_s"
    std::vector<std::string> values;  ///< as TOML writes them, distinct
    std::string place;                ///< "grid.toml:4"

    friend bool operator==(grid_axis const&, grid_axis const&) = default;
};

struct sweep_grid {
    std::vector<grid_axis> axes;  ///< in the order of the file; the last one varies fastest

    friend bool operator==(sweep_grid const&, sweep_grid const&) = default;
};

inline constexpr std::int64_t most_grid_points = 1'000'000;

std::int64_t points_of(sweep_grid const& grid);

/// Which value of each axis a point has. @pre point < points_of(grid)
std::vector<std::size_t> values_at(sweep_grid const& grid, std::int64_t point);

/// Whether a key is one of the grid's.
bool varies(sweep_grid const& grid, std::string_view key);

/// @param name what refusals call the text. @throws exit_error (usage) one sentence
sweep_grid parse_grid(std::string_view text, std::string const& name);

}  // namespace rheo::inline v0
