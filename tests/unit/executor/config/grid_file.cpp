// SPDX-License-Identifier: Apache-2.0
// Grids of sweeps: axes in the order of the file, points of which the last axis varies fastest, each refusal with file and line.
#include <string>
#include <string_view>
#include <vector>

#include "executor/config/files/grid_file.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/source_file.hpp"

using namespace rheo;

namespace {

std::string refused(std::string const& text)
{
    try {
        parse_grid(text, "g.toml");
    } catch (exit_error const& error) {
        CHECK(error.code == exit_code::usage);
        return error.what();
    }
    return "";
}

}  // namespace

TEST_CASE("grid_file: axes come in the order of the file")
{
    auto const grid = parse_grid(
        "schema = 1\n[train]\nmicrobatches = [8, 16, 32]\n[cluster]\nlevel.rack.rate_gb_per_s = [12.5, 25]\nnodes = [2]\n"
        "[plan]\nschedule = [\"1f1b\", \"gpipe\"]\noptimizer_shards = [true, false]\n",
        "g.toml");
    REQUIRE(grid.axes.size() == 5);
    CHECK(grid.axes[0] == grid_axis{"train.microbatches", {"8", "16", "32"}, "g.toml:3"});
    CHECK(grid.axes[1].key == "cluster.level.rack.rate_gb_per_s");
    CHECK(grid.axes[1].values.front() == "12.5");
    CHECK(grid.axes[2].key == "cluster.nodes");
    CHECK(grid.axes[3].values.size() == 2);
    CHECK(grid.axes[4].values == std::vector<std::string>{"true", "false"});
    CHECK(points_of(grid) == 24);
    CHECK(varies(grid, "plan.schedule"));
    CHECK_FALSE(varies(grid, "plan.tensor"));
    std::vector<std::size_t> const last{2, 1, 0, 1, 1};
    CHECK(values_at(grid, 23) == last);
    for (std::int64_t point = 0; point < 24; ++point) {  // as a number with digits of several bases
        auto const at = values_at(grid, point);
        std::int64_t back = 0;
        for (std::size_t k = 0; k < at.size(); ++k) {
            back = back * static_cast<std::int64_t>(grid.axes[k].values.size()) + static_cast<std::int64_t>(at[k]);
        }
        CHECK(back == point);
    }
}

TEST_CASE("grid_file: each refusal is a sentence")
{
    CHECK(refused("") == "g.toml:1: schema must be the number 1, the only version of the form of a grid");
    CHECK(refused("schema = 2\n") == "g.toml:1: schema must be the number 1, the only version of the form of a grid");
    CHECK(refused("schema = 1\n") == "g.toml:1: no key has values; expected, for example, [pipelines] stages = [2, 4, 8]");
    CHECK(refused("schema = 1\nnodes = [1]\n") ==
          "g.toml:2: 'nodes' stands in no table; expected [cluster], [pipelines], or a table of the config such as [plan] or [train]");
    CHECK(refused("schema = 1\n[plan]\nstages = 3\n") ==
          "g.toml:3: plan.stages must be a list of different numbers, texts, or true and false, not a whole number");
    CHECK(refused("schema = 1\n[plan]\nstages = []\n") == "g.toml:3: plan.stages must be a list of different numbers, texts, or true and false, not empty");
    CHECK(refused("schema = 1\n[plan]\nstages = [2, 2]\n") ==
          "g.toml:3: plan.stages must be a list of different numbers, texts, or true and false, but holds 2 twice");
    CHECK(refused("schema = 1\n[plan]\nstages = [[2]]\n") ==
          "g.toml:3: plan.stages must be a list of different numbers, texts, or true and false, but holds a list");
    CHECK(refused("schema = 1\n[plan\n").find("g.toml:2: no valid TOML") == 0);
    std::string many = "schema = 1\n[a]\n";
    for (int axis = 0; axis < 7; ++axis) {
        many += "k" + std::to_string(axis) + " = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\n";
    }
    CHECK(refused(many) == "g.toml: the grid has more than 1000000 points; expected fewer values, or several grids");
}

TEST_CASE("grid_file: the grid of its page can be read")
{
    auto const page = source_file("docs/reference/grid.md");
    auto const begin = page.find("```toml\n") + 8;
    CHECK(points_of(parse_grid(std::string_view{page}.substr(begin, page.find("```", begin) - begin), "grid.md")) == 432);
}
