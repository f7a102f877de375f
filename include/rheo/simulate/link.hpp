#pragma once
// SPDX-License-Identifier: Apache-2.0

// What moving bytes takes on modelled time: a latency and a bandwidth, the first-order model of every
// link (Hockney 1994), and the exact reduction on top of it as a ring over the holders of a unit.

#include <cstddef>
#include <span>

#include "rheo/schedule/cost.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct modelled_link {
    seconds latency;
    bytes_per_second bandwidth;

    friend constexpr bool operator==(modelled_link, modelled_link) = default;
};

/// One message of `size`. @pre bandwidth > 0
constexpr seconds transfer_time(modelled_link link, bytes size)
{
    expects(link.bandwidth.count > 0.0, "a link moves more than zero bytes per second");
    return link.latency + size / link.bandwidth;
}

/// The sum of `size` bytes over `holders` ranks in a ring: 2 (h-1) messages of size / h, one after the
/// other (Thakur, Rabenseifner, Gropp 2005, section 4.4). One holder needs no time. @pre holders >= 1
constexpr seconds reduction_time(modelled_link link, bytes size, int holders)
{
    expects(holders >= 1, "a reduction has at least one holder");
    expects(link.bandwidth.count > 0.0, "a link moves more than zero bytes per second");
    auto const messages = 2.0 * (holders - 1);
    return (link.latency + size / link.bandwidth / static_cast<double>(holders)) * messages;
}

/// The costs of a pipeline with its transfers on the link; boundary[s] is the message between stages s and s + 1,
/// the same for activations and their gradients. @pre one boundary less than stages
constexpr stage_costs with_transfers(stage_costs costs, std::span<bytes const> boundary, modelled_link link)
{
    expects(boundary.size() + 1 == costs.size(), "a pipeline has one boundary less than stages");
    for (std::size_t s = 0; s < boundary.size(); ++s) {
        costs[s].send_activation = transfer_time(link, boundary[s]);
        costs[s + 1].send_gradient = transfer_time(link, boundary[s]);
    }
    return costs;
}

}  // namespace rheo::inline v0
