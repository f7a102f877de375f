#pragma once
// SPDX-License-Identifier: Apache-2.0

// The reductions of a step under way: each holder of a unit begins when it has posted it, and is through when it has the sums of all.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/simulate/collectives/detail/collective_play.hpp"
#include "rheo/simulate/network/message_network.hpp"
#include "rheo/simulate/network/model_time.hpp"
#include "rheo/simulate/network/nccl.hpp"
#include "rheo/simulate/played_step/detail/exchange_in_rounds.hpp"
#include "rheo/simulate/played_step/detail/folded_step.hpp"
#include "rheo/simulate/played_step/detail/reduction_rounds.hpp"
#include "rheo/simulate/played_step/detail/unit_wire.hpp"
#include "rheo/simulate/played_step/played_step.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// All reductions of a step.
template <class Model>
class unit_sums {
public:
    using network = message_network<Model, step_note>;
    using time = typename Model::time;

    /// A unit as a row knows it.
    struct place {
        std::uint32_t unit;
        rank_id member;
    };

    /// @param step the first block of `fold`
    unit_sums(modelled_step const& step, array_view<network_level<typename Model::link> const> levels, step_rules<Model> const& rules, step_fold const& fold)
        : rules_{rules}, levels_{levels}
    {
        std::uint32_t row = 0;
        for (auto const& pipeline : step.pipelines) {
            for (std::size_t position = 0; position < pipeline.program.rows.size(); ++position, ++row) {
                places_.emplace_back();
                for (auto const& i : pipeline.program.rows[position]) {
                    if (i.kind == instruction_kind::post_reduction) {
                        join(row, pipeline.ranks[position], static_cast<std::size_t>(i.item));
                    }
                }
            }
        }
        for (std::size_t u = 0; u < units_.size(); ++u) {
            units_[u].size = u < step.sums.size() ? step.sums[u] : bytes{};
            units_[u].missing = units_[u].rows.size();
            for (std::int32_t block = 1; block < fold.blocks; ++block) {
                for (std::size_t m = 0; m < units_[u].rows.size(); ++m) {
                    units_[u].ranks.push_back(rank_id{units_[u].ranks[m].value + block * fold.ranks});
                }
            }
        }
    }

    /// A row has posted the unit. @param through is called with each row that is through with the unit
    template <class Through>
    void post(network& carrier, std::uint32_t row, reduction_id unit, Through const& through)
    {
        auto& u = units_[at(unit)];
        auto const member = member_of(row, unit);
        if (--u.missing == 0) {
            u.last_post = carrier.now();
        }
        if (u.ranks.size() == 1) {
            u.through[at(member)] = 1;
            return;
        }
        if (rules_.reduction == step_reduction::nccl) {
            if (u.missing == 0) {
                carrier.alarm(Model::sum(carrier.now(), model_time<Model>(time_by_nccl(u))), {step_event::sums, static_cast<std::uint32_t>(unit.value), 0, {}});
            }
            return;
        }
        if (goes_in_rounds(u)) {
            if (!u.rounds) {
                u.rounds = std::make_unique<exchange_in_rounds<Model>>(wire_of(carrier, unit), u.rows.size(), rounds_of(u));
            }
            u.rounds->begin(member, ender_of(u, through));
            return;
        }
        if (!u.exact) {
            u.exact = std::make_unique<collective_play<Model, unit_wire<Model>>>(wire_of(carrier, unit), parts_of(u));
        }
        u.exact->begin(member);
    }

    /// The same for what happens on the network.
    template <class Through>
    void happen(step_note const& note, Through const& through)
    {
        auto& u = units_[note.subject];
        if (rules_.reduction == step_reduction::nccl) {
            std::fill(u.through.begin(), u.through.end(), char{1});
            for (auto const row : u.rows) {
                through(row);
            }
        } else if (u.rounds) {
            u.rounds->happen(note.inner, ender_of(u, through));
        } else if (u.exact->happen(note.inner)) {
            ender_of(u, through)(note.inner.rank);
        }
    }

    bool is_through(std::uint32_t row, reduction_id unit) const { return units_[at(unit)].through[at(member_of(row, unit))] != 0; }
    time last_post(reduction_id unit) const { return units_[at(unit)].last_post; }

private:
    struct unit_state {
        std::vector<std::uint32_t> rows;  ///< by member that is played
        std::vector<rank_id> ranks;       ///< by member
        std::vector<char> through;
        std::size_t missing = 0;  ///< posts
        time last_post{};
        bytes size{};
        std::unique_ptr<collective_play<Model, unit_wire<Model>>> exact;
        std::unique_ptr<exchange_in_rounds<Model>> rounds;
    };

    void join(std::uint32_t row, rank_id rank, std::size_t unit)
    {
        if (unit >= units_.size()) {
            units_.resize(unit + 1);
        }
        auto& u = units_[unit];
        places_[row].push_back({static_cast<std::uint32_t>(unit), rank_id{static_cast<std::int32_t>(u.rows.size())}});
        u.rows.push_back(row);
        u.ranks.push_back(rank);
        u.through.push_back(0);
    }

    template <class Through>
    static auto ender_of(unit_state& u, Through const& through)
    {
        return [&u, &through](rank_id member) {
            u.through[at(member)] = 1;
            through(u.rows[at(member)]);
        };
    }

    rank_id member_of(std::uint32_t row, reduction_id unit) const
    {
        for (auto const& p : places_[row]) {
            if (p.unit == static_cast<std::uint32_t>(unit.value)) {
                return p.member;
            }
        }
        return {-1};
    }

    /// Of the sums as integers, as the executor has NCCL add them. Nodes count as equally full.
    seconds time_by_nccl(unit_state const& u) const
    {
        std::vector<std::int32_t> nodes;
        for (auto const rank : u.ranks) {
            nodes.push_back(rank.value / levels_[0].members);
        }
        std::sort(nodes.begin(), nodes.end());
        auto machine = *rules_.nccl;
        machine.nodes = static_cast<int>(std::unique(nodes.begin(), nodes.end()) - nodes.begin());
        machine.ranks = (static_cast<int>(u.ranks.size()) + machine.nodes - 1) / machine.nodes * machine.nodes;
        auto const choice = nccl_all_reduce(machine, u.size);
        expects(static_cast<bool>(choice), "NCCL's machine is checked before a step is played");
        return choice->time;
    }

    message_count messages_of(unit_state const& u) const
    {
        return u.ranks.size() > static_cast<std::size_t>(rules_.most_exact_holders) ? message_count::joined : message_count::each;
    }

    bool goes_in_rounds(unit_state const& u) const
    {
        bool const goes_direct = rules_.reduction == step_reduction::slice_owner || rules_.reduction == step_reduction::direct;
        return rules_.reduction == step_reduction::node_first || (goes_direct && messages_of(u) == message_count::joined);
    }

    std::vector<exchange_round> rounds_of(unit_state const& u)
    {
        auto const values = rules_.reduction == step_reduction::direct ? rules_.sum_bytes : 4;  // floats, where sums are of integers
        reduced_unit const unit{u.size.count / rules_.sum_bytes, rules_.sum_bytes, values};
        if (rules_.reduction == step_reduction::node_first) {
            return node_first_rounds(levels_, u.ranks, unit, messages_of(u));
        }
        if (!(u.ranks == paired_)) {  // often those of the unit before
            paired_ = u.ranks;
            pairs_ = sender_order(joined_pairs_of(levels_, u.ranks));
        }
        return owner_rounds(pairs_, u.ranks.size(), unit);
    }

    collective_form form() const
    {
        switch (rules_.reduction) {
        case step_reduction::ring: return collective_form::ring;
        case step_reduction::tree: return collective_form::tree;
        case step_reduction::direct: return collective_form::direct;
        default: return collective_form::slice_owner;
        }
    }

    unit_wire<Model> wire_of(network& carrier, reduction_id unit) { return {carrier, units_[at(unit)].ranks, static_cast<std::uint32_t>(unit.value)}; }

    collective_parts<Model> parts_of(unit_state const& u) const
    {
        collective_parts<Model> parts;
        parts.request = {.operation = collective::all_reduce, .form = form(), .memory = rules_.memory, .sum_bytes = rules_.sum_bytes};
        parts.members = static_cast<int>(u.rows.size());
        parts.phases = {{collective::all_reduce, 0, 1, parts.members, u.size}};
        return parts;
    }

    step_rules<Model> rules_;
    array_view<network_level<typename Model::link> const> levels_;
    std::vector<unit_state> units_;
    std::vector<std::vector<place>> places_;  ///< row -> its units
    std::vector<rank_id> paired_;             ///< holders whose pairs are known
    std::vector<exchange_pair> pairs_;
};

}  // namespace detail
}  // namespace rheo::inline v0
