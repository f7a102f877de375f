#pragma once
// SPDX-License-Identifier: Apache-2.0

// What is known of a collective under way: how far each rank is with each phase of each chunk, and the network between the ranks.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rheo/simulate/collectives/chunks.hpp"
#include "rheo/simulate/collectives/collective.hpp"
#include "rheo/simulate/network/message_network.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

enum class collective_event : unsigned char {
    arrived,        ///< a message of a step, or of the first part of a direct exchange
    arrived_back,   ///< of its second part
    handed_over,    ///< the rank may go on with its next step; direct: what came is added
    handed_back,    ///< direct, second part
    ready_to_send,  ///< direct: a message of the first part
};

/// What happens, and to which phase of which chunk at which rank.
struct collective_note {
    rank_id rank;
    std::int32_t chunk;
    std::int16_t phase;
    collective_event kind;
    std::int64_t key;
};

/// Of one rank, chunk and phase. Messages may come before the rank is there: they wait.
struct collective_progress {
    bool begun = false;
    bool handed = false;         ///< a hand-over has passed and no message was sent since
    bool waits = false;          ///< for the message of its step
    std::int32_t sent = 0;       ///< direct, second part
    std::int32_t added = 0;      ///< direct: hand-overs of the first part that have ended
    std::int32_t came_back = 0;  ///< direct, second part
    std::int32_t handed_back = 0;
    std::int64_t step = 0;
    std::int64_t came = 0;  ///< messages; of trees and halving-doubling a bit for each key
};

template <class Model>
class collective_board {
public:
    using time = typename Model::time;

    /// @pre collective_fault is empty
    collective_board(array_view<network_level<typename Model::link> const> levels, collective_request<Model> const& request)
        : request_{request}, network_{levels}
    {
        auto const chunks = cut_into_chunks(request.operation, request.size, request.chunks, network_.ranks());
        chunks_ = static_cast<std::int32_t>(chunks.count);
        phases_ = phases_of(request.operation, request.scope, chunks.each, levels);
        progress_.resize(static_cast<std::size_t>(network_.ranks()) * static_cast<std::size_t>(chunks_) * phases_.size());
    }

    collective_request<Model> const& request() const { return request_; }
    array_view<collective_phase const> phases() const { return phases_; }
    std::int32_t chunks() const { return chunks_; }
    int ranks() const { return network_.ranks(); }
    time now() const { return now_; }

    collective_phase const& phase_of(collective_note const& at) const { return phases_[static_cast<std::size_t>(at.phase)]; }
    int place_of(collective_note const& at) const { return at.rank.value / phase_of(at).stride % phase_of(at).members; }

    collective_progress& progress_of(collective_note const& at)
    {
        auto const chunk = static_cast<std::size_t>(at.rank.value) * static_cast<std::size_t>(chunks_) + static_cast<std::size_t>(at.chunk);
        return progress_[chunk * phases_.size() + static_cast<std::size_t>(at.phase)];
    }

    /// The rank's hand-over begins, with a sum of that size in it; `then` happens at its end.
    void hand_over(collective_note at, collective_event then, bytes added)
    {
        at.kind = then;
        auto const sums = request_.memory && added.count > 0 ? Model::addition(added, *request_.memory) : time{};
        network_.alarm(Model::sum(now_, Model::sum(request_.handover, sums)), at);
    }

    /// To another place of the rank's group; `as` happens there when it has come.
    void send(collective_note const& at, int place, bytes size, collective_event as, std::int64_t key)
    {
        rank_id const to{at.rank.value + (place - place_of(at)) * phase_of(at).stride};
        network_.send(at.rank, to, size, now_, {to, at.chunk, at.phase, as, key});
    }

    std::optional<collective_note> next()
    {
        auto const event = network_.next();
        if (!event) {
            return std::nullopt;
        }
        now_ = event->at;
        return event->note;
    }

private:
    collective_request<Model> request_;
    message_network<Model, collective_note> network_;
    std::int32_t chunks_ = 0;
    std::vector<collective_phase> phases_;
    std::vector<collective_progress> progress_;
    time now_{};
};

}  // namespace detail
}  // namespace rheo::inline v0
