#pragma once
// SPDX-License-Identifier: Apache-2.0

// What moving bytes takes on modelled time: a latency and a bandwidth, the first-order model of every
// link (Hockney 1994), and a sum over several devices on top of it as a ring.

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

}  // namespace rheo::inline v0
