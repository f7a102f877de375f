#pragma once
// SPDX-License-Identifier: Apache-2.0

// The transfers of a pipeline on modelled time, by the model of a link (topology/link.hpp).

#include <cstddef>

#include "rheo/schedule/core/cost.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The costs of a pipeline with its transfers on the link; boundary[s] is the message between stages s and s + 1,
/// the same for activations and their gradients. @pre one boundary less than stages
template <class OnlyWhenCalled = void>
constexpr stage_costs with_transfers(stage_costs costs, array_view<bytes const> boundary, modelled_link link)
{
    expects(boundary.size() + 1 == costs.size(), "a pipeline has one boundary less than stages");
    for (std::size_t s = 0; s < boundary.size(); ++s) {
        costs[s].send_activation = transfer_time(link, boundary[s]);
        costs[s + 1].send_gradient = transfer_time(link, boundary[s]);
    }
    return costs;
}

}  // namespace rheo::inline v0
