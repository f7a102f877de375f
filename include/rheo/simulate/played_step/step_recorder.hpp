#pragma once
// SPDX-License-Identifier: Apache-2.0

// The events of a step that is played, as the executor would record them. A message is shown from when it enters the network until it has arrived.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/simulate/played_step/played_step.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// An observer of play_step, on networks whose times are seconds.
template <class OnlyWhenCalled = void>
class step_recorder {
public:
    static constexpr bool sees_messages = true;

    /// @param energies row of all pipelines -> place in its program -> what the computation draws; null: not known  @pre both outlive it
    explicit step_recorder(modelled_step const& step, std::vector<std::vector<joules>> const* energies = nullptr) : step_{&step}, energies_{energies}
    {
        for (std::size_t p = 0; p < step.pipelines.size(); ++p) {
            for (std::size_t position = 0; position < step.pipelines[p].program.rows.size(); ++position) {
                rows_.push_back({p, position});
            }
        }
    }

    /// A row has ended an instruction.
    void operator()(std::uint32_t row, std::size_t place, seconds begin, seconds end)
    {
        auto const i = step_->pipelines[rows_[row].pipeline].program.rows[rows_[row].position][place];
        if (is_event(i.kind) && !is_send(i.kind) && !is_receive(i.kind)) {
            add(row, i, begin, end);
            events_.back().energy = energies_ == nullptr ? joules{} : (*energies_)[row][place];
        }
    }

    /// A message, by a number that no other on its way has, has entered the network.
    void enters(std::size_t number, std::uint32_t from, std::uint32_t to, instruction send) { on_way_[number] = {from, to, send}; }

    void arrives(std::size_t number, seconds entered, seconds arrived)
    {
        auto const found = on_way_.find(number);
        auto const [from, to, send] = found->second;
        on_way_.erase(found);
        bool const up = send.kind == instruction_kind::send_activation;
        auto received = send;
        received.kind = up ? instruction_kind::receive_activation : instruction_kind::receive_gradient;
        received.stage = static_cast<std::int16_t>(send.stage + (up ? 1 : -1));
        add(from, send, entered, arrived);
        add(to, received, entered, arrived);
    }

    /// The step has ended without losses: all have voted and updated.
    void end(played_step<> const& played)
    {
        auto const voted = played.end - step_->update;
        for (auto const& row : played.rows) {
            events_.push_back(detail::phase_event(*step_, row.rank, activity::decide, step_->begin + row.end, step_->begin + voted));
            events_.push_back(detail::phase_event(*step_, row.rank, activity::update, step_->begin + voted, step_->begin + played.end));
        }
    }

    /// In the order in which they ended.
    std::vector<trace_event> take() { return std::move(events_); }

private:
    struct row_place {
        std::size_t pipeline;
        std::size_t position;
    };
    struct message {
        std::uint32_t from;
        std::uint32_t to;
        instruction send;
    };

    void add(std::uint32_t row, instruction i, seconds begin, seconds end)
    {
        auto const [p, position] = rows_[row];
        auto const& pipeline = step_->pipelines[p];
        events_.push_back({.rank = pipeline.ranks[position],
                           .activity = activity_of(i.kind),
                           .pipeline = pipeline_id{static_cast<std::int32_t>(p)},
                           .stage = stage_of(i),
                           .item = i.item,
                           .generation = step_->generation,
                           .step = step_->step,
                           .attempt = step_->attempt,
                           .peer = detail::peer_of(pipeline, i),
                           .start = step_->begin + begin,
                           .end = step_->begin + end,
                           .size = detail::exchanged_bytes(*step_, pipeline, i)});
    }

    modelled_step const* step_;
    std::vector<std::vector<joules>> const* energies_;
    std::vector<row_place> rows_;
    std::unordered_map<std::size_t, message> on_way_;
    std::vector<trace_event> events_;
};

}  // namespace rheo::inline v0
