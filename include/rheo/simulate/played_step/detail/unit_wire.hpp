#pragma once
// SPDX-License-Identifier: Apache-2.0

// What happens on the network of a step, and the network as the holders of a unit see it.

#include <cstdint>
#include <vector>

#include "rheo/simulate/collectives/detail/collective_board.hpp"
#include "rheo/simulate/network/message_network.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

enum class step_event : std::uint8_t {
    computed,  ///< by a row
    arrives,   ///< a message
    sums,      ///< something in a reduction
};

struct step_note {
    step_event kind;
    std::uint32_t subject;  ///< row, message or unit
    std::uint32_t row;      ///< that a message goes to
    collective_note inner;
};

/// The network as the holders of a unit see it.
template <class Model>
class unit_wire {
public:
    using network = message_network<Model, step_note>;

    unit_wire(network& carrier, std::vector<rank_id> const& ranks, std::uint32_t unit) : network_{&carrier}, ranks_{&ranks}, unit_{unit} {}

    typename Model::time now() const { return network_->now(); }
    void alarm(typename Model::time at, collective_note const& note) { network_->alarm(at, {step_event::sums, unit_, 0, note}); }
    void send(rank_id from, rank_id to, bytes size, collective_note const& note)
    {
        network_->send((*ranks_)[at(from)], (*ranks_)[at(to)], size, network_->now(), {step_event::sums, unit_, 0, note});
    }

private:
    network* network_;
    std::vector<rank_id> const* ranks_;
    std::uint32_t unit_;
};

}  // namespace detail
}  // namespace rheo::inline v0
