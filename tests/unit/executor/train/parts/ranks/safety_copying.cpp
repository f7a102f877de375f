// SPDX-License-Identifier: Apache-2.0
// Ranks between which no copy goes; transfer.safety_copies tries those between two.
#include "executor/train/parts/safety_copying.hpp"

#include "executor/host/backend.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"
#include "support/catch.hpp"
#include "support/mpi_ranks.hpp"

using namespace rheo;

TEST_CASE("safety_copying: a rank that keeps nothing gets nothing")
{
    replanning known{
        .state = state_of(gpt_model({.vocabulary = 19, .context = 6, .width = 8, .heads = 2, .blocks = 2})), .layers = 4, .ready = {}, .wanted = {}};
    membership_plan plan;
    for (int rank = 0; rank < 4; ++rank) {
        plan.salvage.after.push_back({rank_id{rank}, step_id{1}, {layer_id{rank}}, {}});
    }
    mpi_ranks here;  // 0 and 1
    safety_copying copies{here.self()};
    copies.choose(plan, known);
    CHECK(copies.empty());
    plan.safety_copies = {{layer_id{2}, rank_id{2}, rank_id{3}, bytes{}}};
    copies.choose(plan, known);
    CHECK_FALSE(copies.empty());  // all members know of all copies

    host_backend backend{1};
    resident_state resident{known.state, backend};
    array<float> room{backend.own(), 0};
    bool has_arrived = false;
    copies.copy_first(here.messages, resident, [&](tensor_id) { has_arrived = true; });
    copies.pass_gradients(here.messages, resident, {}, room);
    CHECK_FALSE(has_arrived);
    CHECK(copies.gradients().empty());

    plan.salvage.after[3].layers = {layer_id{2}, layer_id{3}};  // it has the layer by its place
    copies.choose(plan, known);
    CHECK(copies.empty());
}
