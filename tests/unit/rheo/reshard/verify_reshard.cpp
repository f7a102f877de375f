// SPDX-License-Identifier: Apache-2.0
// A plan that is changed in any way is refused, with the culprit.
#include "rheo/reshard/verify_reshard.hpp"

#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/sub_collections.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::vector<layout_tensor> const tensors{{.name = "w", .shape = {8, 8}}};

array_layout cut_along(int dimension)
{
    return on(ranks_from(rank_id{0}, 4), collect(tensor_id{0}, slices_of({8, 8}) | cut({.dimension = dimension, .parts = 4})), tensors);
}

template <class Change>
std::string after(Change const& change)
{
    auto plan = try_reshard({.from = cut_along(0), .to = cut_along(1)}).plan;
    change(plan);
    return std::string{describe(verify(plan, cut_along(0), cut_along(1))).view()};
}

}  // namespace

TEST_CASE("verify_reshard: a changed plan is refused")
{
    CHECK(after([](reshard_plan&) {}).empty());
    CHECK(after([](auto& plan) { plan.transfers.pop_back(); }) ==
          "rank 3, tensor \"w\" [4:6, 6:8]: the rank wants these elements, and the plan does not bring them");
    CHECK(after([](auto& plan) { plan.kept.pop_back(); }) ==
          "rank 3, tensor \"w\" [6:8, 6:8]: the rank wants these elements, and the plan does not bring them");
    CHECK(after([](auto& plan) { plan.transfers.push_back(plan.transfers.back()); }) ==
          "rank 3, tensor \"w\" [4:6, 6:8]: the plan gives the rank these elements twice, or the rank has them already");
    CHECK(after([](auto& plan) { plan.transfers.back().from = rank_id{0}; }) ==
          "rank 0, tensor \"w\" [4:6, 6:8]: the plan takes this box from the rank, which does not have all of it at that time");
    CHECK(after([](auto& plan) { plan.transfers.back().size = bytes{3}; }) ==
          "rank 3, tensor \"w\" [4:6, 6:8]: the plan counts 3 bytes for this transfer, but they are 16");
    CHECK(after([](auto& plan) { plan.transfers.back().to = rank_id{0}; }).find("transfers ascend by round") != std::string::npos);
    CHECK(after([](auto& plan) { plan.transfers.back().box[1] = {4, 6}; }) ==
          "rank 3, tensor \"w\" [4:6, 4:6]: the plan gives the rank elements that it does not want");
    CHECK(after([](auto& plan) { plan.certificate.moved.value = bytes{1}; }) == "the certificate says 1 for moved bytes, but it is 192");
    CHECK(after([](auto& plan) { plan.certificate.largest_send.value = bytes{1}; }) == "the certificate says 1 for the largest send, but it is 48");
    CHECK(after([](auto& plan) { plan.taken = {{rank_id{0}, rank_id{1}}}; }) == "the ranks that take places are not a permutation of places and live ranks");
    CHECK(after([](auto& plan) { plan.dropped = {{0, rank_id{1}, {tensor_id{0}, {{2, 4}, {2, 4}}}}}; }) ==
          "rank 1, tensor \"w\" [2:4, 2:4]: the rank wants these elements, and the plan does not bring them");
}
