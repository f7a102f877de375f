#pragma once
// SPDX-License-Identifier: Apache-2.0

// What is known of a collective under way: how far each of those that take part is with each phase of each chunk. How their messages travel is
// the business of a wire: a network of their own (collective_time.hpp), or one that they share with everything else (chakra/detail/meetings.hpp).

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/simulate/collectives/chunks.hpp"
#include "rheo/simulate/collectives/collective.hpp"
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
    rank_id rank;  ///< its number among those that take part
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

/// Who takes part in what.
template <class Model>
struct collective_parts {
    collective_request<Model> request;
    int members = 1;
    std::int32_t chunks = 1;
    std::vector<collective_phase> phases;
};

/// @tparam Wire has now(), alarm(time, note) and send(from, to, size, note), with numbers among those that take part; notes come back when
///   their time has come
template <class Model, class Wire>
class collective_board {
public:
    using time = typename Model::time;

    collective_board(Wire wire, collective_parts<Model> parts) : wire_{std::move(wire)}, parts_{std::move(parts)}
    {
        progress_.resize(static_cast<std::size_t>(parts_.members) * static_cast<std::size_t>(parts_.chunks) * parts_.phases.size());
    }

    collective_request<Model> const& request() const { return parts_.request; }
    array_view<collective_phase const> phases() const { return parts_.phases; }
    std::int32_t chunks() const { return parts_.chunks; }
    int members() const { return parts_.members; }

    collective_phase const& phase_of(collective_note const& at) const { return parts_.phases[static_cast<std::size_t>(at.phase)]; }
    int place_of(collective_note const& at) const { return at.rank.value / phase_of(at).stride % phase_of(at).members; }

    collective_progress& progress_of(collective_note const& at)
    {
        auto const chunk = static_cast<std::size_t>(at.rank.value) * static_cast<std::size_t>(parts_.chunks) + static_cast<std::size_t>(at.chunk);
        return progress_[chunk * parts_.phases.size() + static_cast<std::size_t>(at.phase)];
    }

    /// The rank's hand-over begins, with a sum of that size in it; `then` happens at its end.
    void hand_over(collective_note at, collective_event then, bytes added)
    {
        at.kind = then;
        auto const& memory = parts_.request.memory;
        auto const sums = memory && added.count > 0 ? Model::addition(added, *memory) : time{};
        wire_.alarm(Model::sum(wire_.now(), Model::sum(parts_.request.handover, sums)), at);
    }

    /// To another place of the rank's group; `as` happens there when it has come.
    void send(collective_note const& at, int place, bytes size, collective_event as, std::int64_t key)
    {
        rank_id const to{at.rank.value + (place - place_of(at)) * phase_of(at).stride};
        wire_.send(at.rank, to, size, {to, at.chunk, at.phase, as, key});
    }

private:
    Wire wire_;
    collective_parts<Model> parts_;
    std::vector<collective_progress> progress_;
};

}  // namespace detail
}  // namespace rheo::inline v0
