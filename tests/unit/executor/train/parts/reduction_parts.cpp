// SPDX-License-Identifier: Apache-2.0
// The parts of reduction units: each tensor is summed by those who hold it, in a part that all of them number alike.
#include "executor/train/parts/reduction_parts.hpp"

#include <map>
#include <set>

#include "rheo/model/state.hpp"
#include "rheo/plan/tensor_holders.hpp"
#include "support/catch.hpp"
#include "support/grouped_pipelines.hpp"

using namespace rheo;

namespace {

void check_parts(plan const& where, model_description const& model, int ranks)
{
    auto const state = state_of(model);
    auto const units = reduction_units(state, static_cast<int>(model.layers.size()));
    auto const grid = grid_of(model);
    auto const holders = holders_by_tensor(array_view{where.pipelines}, state, grid);
    std::map<int, std::vector<rank_id>> holders_of_part;
    std::map<int, std::vector<tensor_id>> tensors_of_part;
    std::set<std::pair<int, int>> summed;  // rank, tensor
    for (rank_id r{0}; r.value < ranks; ++r) {
        for (auto const& part : reduction_parts(where, units, state, grid, r)) {
            auto const known = holders_of_part.try_emplace(part.number, part.holders).first;
            REQUIRE(known->second == part.holders);
            REQUIRE(tensors_of_part.try_emplace(part.number, part.sums.tensors).first->second == part.sums.tensors);
            for (auto const t : part.sums.tensors) {
                REQUIRE(part.holders == holders[at(t)]);
                REQUIRE(summed.insert({r.value, t.value}).second);
            }
        }
    }
    std::size_t expected = 0;
    for (tensor_id t{0}; at(t) < state.tensors.size(); ++t) {
        expected += state.tensors[at(t)].is_parameter ? holders[at(t)].size() : 0;
    }
    CHECK(summed.size() == expected);
}

}  // namespace

TEST_CASE("reduction_parts: each tensor by those who hold it")
{
    auto const model = grouped::model();
    plan where{.pipelines = grouped::pipelines(), .work = {}, .spares = {}};
    check_parts(where, model, 6);
    where.pipelines.pop_back();
    check_parts(where, model, 4);
}

TEST_CASE("reduction_parts: whole layers are one part each")
{
    auto const model = on_grid(grouped::model(), 1);
    plan where{.pipelines = grouped::pipelines(), .work = {}, .spares = {rank_id{3}}};
    where.pipelines[0].stages = {{rank_id{0}}, {rank_id{1}}};
    where.pipelines[1].stages = {{rank_id{2}}};
    check_parts(where, model, 4);
    CHECK(reduction_parts(where, reduction_units(state_of(model), 4), state_of(model), 1, rank_id{3}).empty());
}
