#pragma once
// SPDX-License-Identifier: Apache-2.0

// A collective played on a network, message by message: when the last rank is through. Before each message that a rank
// sends, and after the last that it receives, a hand-over passes, longer by the sums that are made of what came. The rules are
// those of ASTRA-sim's system layer, so that its figures come out to the nanosecond; trees, broadcasts and the executor's
// own reduction follow the same ones.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "rheo/simulate/collectives/detail/collective_play.hpp"
#include "rheo/simulate/collectives/message_order.hpp"
#include "rheo/simulate/network/message_network.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

/// A network that carries this collective alone.
template <class Model>
class own_network {
public:
    using network = message_network<Model, collective_note>;

    explicit own_network(network& carrier) : network_{&carrier} {}

    typename Model::time now() const { return network_->now(); }
    void alarm(typename Model::time at, collective_note const& note) { network_->alarm(at, note); }
    void send(rank_id from, rank_id to, bytes size, collective_note const& note) { network_->send(from, to, size, network_->now(), note); }

private:
    network* network_;
};

/// When the last rank is through. @pre collective_fault is empty
template <class Model>
typename Model::time play_alone(array_view<network_level<typename Model::link> const> levels, collective_request<Model> const& request)
{
    message_network<Model, collective_note> network{levels};
    auto const chunks = cut_into_chunks(request.operation, request.size, request.chunks, network.ranks());
    auto phases = phases_of(request.operation, request.scope, chunks.each, levels);
    if (phases.empty() || phases.front().members == 1) {
        return {};  // one rank has nothing to exchange
    }
    collective_parts<Model> parts{request, network.ranks(), static_cast<std::int32_t>(chunks.count), std::move(phases)};
    collective_play<Model, own_network<Model>> play{own_network<Model>{network}, std::move(parts)};
    for (rank_id rank{0}; rank.value < network.ranks(); ++rank) {
        play.begin(rank);
    }
    typename Model::time last{};
    int through = 0;
    while (auto const event = network.next()) {
        if (play.happen(event->note)) {
            ++through;
            last = event->at;
        }
    }
    expects(through == network.ranks(), "a collective ends at all ranks");
    return last;
}

}  // namespace detail

/// What is wrong with a collective on a network, as a sentence; empty when nothing is.
template <class Model>
std::string collective_fault(array_view<network_level<typename Model::link> const> levels, collective_request<Model> const& request)
{
    if (auto fault = network_fault(levels); !fault.empty()) {
        return fault;
    }
    auto const words = std::string{name_of(request.operation)} + " as " + std::string{name_of(request.form)};
    if (!has_form(request.operation, request.form)) {
        return "there is no " + words;
    }
    auto const ranks = ranks_of(levels);
    auto const most_bytes = (std::int64_t{1} << 62) / ranks;  // all that is gathered fits
    constexpr auto most_chunks = 1 << 20;
    if (request.size.count < 0 || request.size.count > most_bytes || request.chunks < 1 || request.chunks > most_chunks || request.active_chunks < 1) {
        return words + " of " + std::to_string(request.size.count) + " bytes in " + std::to_string(request.chunks) + " chunks, " +
               std::to_string(request.active_chunks) + " at once: expected 0 to 2^62 bytes over all ranks, 1 to 2^20 chunks and at least 1 at once";
    }
    if (request.handover < typename Model::time{} || !Model::fits(request.handover)) {
        return words + ": a hand-over takes a finite time of at least 0";
    }
    if (request.memory && !(request.memory->count > 0.0 && request.memory->count <= std::numeric_limits<double>::max())) {
        return words + ": the rate at which memory adds is above zero and finite";
    }
    if (request.form == collective_form::slice_owner && (request.sum_bytes < 1 || request.value_bytes < 1)) {
        return words + ": the bytes of a sum and of a value are at least 1";
    }
    bool const by_level = request.scope == collective_scope::by_level && levels.size() > 1;
    if (by_level && (request.operation == collective::all_to_all || is_tree_only(request.operation) || request.form == collective_form::slice_owner)) {
        return words + " goes over all ranks at once, not level by level";
    }
    auto const chunks = cut_into_chunks(request.operation, request.size, request.chunks, ranks);
    auto const phases = phases_of(request.operation, request.scope, chunks.each, levels);
    for (auto const& phase : phases) {
        if (request.form == collective_form::halving_doubling && !std::has_single_bit(static_cast<unsigned>(phase.members))) {
            return words + " needs a power of two of ranks, not " + std::to_string(phase.members);
        }
    }
    if (chunks.count * static_cast<std::int64_t>(phases.size()) > (std::int64_t{1} << 24) / ranks) {
        return words + " of " + std::to_string(chunks.count) + " chunks over " + std::to_string(ranks) + " ranks is too large to be played";
    }
    return {};
}

/// When the last rank is through with the collective, all ranks beginning at time 0. Cost: the links that all messages take, log their number.
template <class Model>
result<typename Model::time> collective_time(array_view<network_level<typename Model::link> const> levels, collective_request<Model> const& request)
{
    if (auto fault = collective_fault<Model>(levels, request); !fault.empty()) {
        return failure{std::move(fault)};
    }
    auto const time = detail::play_alone(levels, request);
    if (!Model::fits(time)) {
        return failure{std::string{name_of(request.operation)} + " takes more than the largest time of this network model (2^63 - 1 ns where time is whole)"};
    }
    return time;
}

}  // namespace rheo::inline v0
