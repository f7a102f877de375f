#pragma once
// SPDX-License-Identifier: Apache-2.0

// The meaning of a set of programs, in one place: the ranks of all pipelines run their rows in order,
// each instruction waits for what it needs, a reduction waits for all its holders. The deadlock check,
// the timeline and the simulator are observers of this one run.
//
// Any order of progress ends in the same state: what one rank may do is never taken away by another
// (a receive names its sender), so one run decides for all runs, in time linear in the instructions
// times the passes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "rheo/schedule/core/message_queues.hpp"
#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/transport.hpp"
#include "rheo/schedule/core/verdict.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// One rank of the product: pipeline and position in it, and its number among the rows of all pipelines.
struct row_ref {
    pipeline_id pipeline;
    int position;
    std::size_t row;
};

namespace detail {

template <class Transport, class Observer>
class interpretation {
public:
    constexpr ~interpretation() = default;  // explicit, because nvcc does not see that the implicit one is constexpr
    constexpr interpretation(array_view<program const> programs, Observer& observer, array_view<std::size_t const> limits, Transport transport)
        : programs_{programs}, observer_{&observer}, transport_{transport}
    {
        for (std::size_t p = 0; p < programs.size(); ++p) {
            facts_.push_back(facts_of(programs[p], rows_.size()));
            for (std::size_t position = 0; position < programs[p].rows.size(); ++position) {
                rows_.push_back({pipeline_id{static_cast<int>(p)}, static_cast<int>(position), rows_.size()});
                count_holders(programs[p].rows[position]);
            }
        }
        next_.resize(rows_.size(), 0);
        for (auto const& r : rows_) {
            limits_.push_back(limits.empty() ? row(r).size() : std::min(limits[r.row], row(r).size()));
        }
    }

    constexpr verdict run()
    {
        for (auto const& r : rows_) {
            for (std::size_t k = 0; k < row(r).size(); ++k) {
                if (!has_meaning(r, row(r)[k]) || !is_paired(row(r), k)) {
                    return refused(program_error::misplaced, {r.pipeline, r.position, row(r)[k]});
                }
            }
        }
        for (bool progress = true; progress;) {
            progress = false;
            for (auto const& r : rows_) {
                while (next_[r.row] < limits_[r.row] && advance(r)) {
                    progress = true;
                }
            }
        }
        return judge();
    }

private:
    constexpr std::vector<instruction> const& row(row_ref r) const { return programs_[at(r.pipeline)].rows[static_cast<std::size_t>(r.position)]; }

    constexpr int position_of(row_ref r, int stage) const { return programs_[at(r.pipeline)].placement[static_cast<std::size_t>(stage)]; }

    constexpr void count_holders(std::vector<instruction> const& instructions)
    {
        std::vector<std::uint8_t> seen;
        for (auto const& i : instructions) {
            auto const unit = static_cast<std::size_t>(i.item);
            if (!is_reduction(i.kind) || i.item < 0) {
                continue;
            }
            if (unit >= holders_.size()) {
                holders_.resize(unit + 1, 0);
                posted_.resize(unit + 1, 0);
            }
            if (unit >= seen.size()) {
                seen.resize(unit + 1, 0);
            }
            holders_[unit] += seen[unit] == 0 ? 1 : 0;
            seen[unit] = 1;
        }
    }

    constexpr bool has_meaning(row_ref r, instruction i) const
    {
        if (i.item < 0 || i.stage < 0) {
            return false;
        }
        auto const stages = static_cast<int>(facts_[at(r.pipeline)].stages);
        auto const other = counterpart(i).stage;
        auto const chain = facts_[at(r.pipeline)].chain;
        return i.stage < stages && other >= 0 && other < stages && other / chain == i.stage / chain && position_of(r, i.stage) == r.position;
    }

    /// False for an overlap that a forward and a whole backward do not follow.
    static constexpr bool is_paired(std::vector<instruction> const& row, std::size_t k)
    {
        return row[k].kind != instruction_kind::overlap ||
               (k + 2 < row.size() && row[k + 1].kind == instruction_kind::forward && row[k + 2].kind == instruction_kind::backward);
    }

    /// True when the instruction's inputs exist; those of a transfer are looked at where it is performed.
    constexpr bool has_inputs(row_ref r, instruction i)
    {
        auto& f = facts_[at(r.pipeline)];
        auto const local = [&](int stage) {
            return position_of(r, stage) == r.position ? !f.holds(stage, i.item, evicted) : std::is_same_v<Transport, shared_memory>;
        };
        auto const beside = [&](int stage) { return std::is_same_v<Transport, shared_memory> || position_of(r, stage) == r.position; };
        bool const whole = !f.holds(i.stage, i.item, evicted);
        auto const received = [&](int source, int here, int sent) {
            return f.holds(i.stage, i.item, here) && (!std::is_same_v<Transport, nonblocking> || f.holds(source, i.item, sent));
        };
        switch (i.kind) {
        case instruction_kind::forward:
            return f.slices_done(i.stage, i.item, true) && (f.begins_copy(i.stage) || received(i.stage - 1, activation_here, activation_sent) ||
                                                            (local(i.stage - 1) && f.holds(i.stage - 1, i.item, forward_done)));
        case instruction_kind::backward:
        case instruction_kind::input_gradient:
            return whole && f.holds(i.stage, i.item, forward_done) && f.slices_done(i.stage, i.item, false) &&
                   (f.ends_copy(i.stage) || received(i.stage + 1, gradient_here, gradient_sent) ||
                    (beside(i.stage + 1) && f.holds(i.stage + 1, i.item, gradient_done)));
        case instruction_kind::weight_gradient:
        case instruction_kind::send_gradient: return given() || f.holds(i.stage, i.item, gradient_done);
        case instruction_kind::send_activation: return given() || (whole && f.holds(i.stage, i.item, forward_done));
        case instruction_kind::evict: return whole && f.holds(i.stage, i.item, forward_done) && !f.holds(i.stage, i.item, gradient_done);
        case instruction_kind::recompute: return !whole;
        default: return true;
        }
    }

    static constexpr bool given() { return std::is_same_v<Transport, rendezvous_of_given>; }

    constexpr void note(row_ref r, instruction i)
    {
        constexpr int facts[] = {forward_done, gradient_done | weight_done, gradient_done, weight_done, activation_sent, activation_here, gradient_sent,
                                 gradient_here};
        auto& known = facts_[at(r.pipeline)].of(i.stage, i.item);
        known = static_cast<std::uint8_t>(known | facts[static_cast<std::size_t>(i.kind)]);
    }

    constexpr bool advance(row_ref r)
    {
        auto const i = row(r)[next_[r.row]];
        if (i.kind == instruction_kind::post_reduction) {
            posted_[static_cast<std::size_t>(i.item)] += 1;
            observer_->post(r, i);
        } else if (i.kind == instruction_kind::await_reduction) {
            if (posted_[static_cast<std::size_t>(i.item)] < holders_[static_cast<std::size_t>(i.item)]) {
                return false;
            }
            observer_->await(r, i);
        } else if (i.kind == instruction_kind::overlap) {
            if (!has_inputs(r, row(r)[next_[r.row] + 1]) || !has_inputs(r, row(r)[next_[r.row] + 2])) {
                return false;
            }
            if constexpr (requires { observer_->overlap(r, i); }) {
                observer_->overlap(r, i);
            }
        } else if (is_local(i.kind)) {
            if (!has_inputs(r, i)) {
                return false;
            }
            auto& known = facts_[at(r.pipeline)].of(i.stage, i.item);
            known = static_cast<std::uint8_t>(known ^ evicted);
            if constexpr (requires { observer_->keep(r, i); }) {
                observer_->keep(r, i);
            }
        } else if (is_compute(i.kind)) {
            if (!given() && !has_inputs(r, i)) {
                return false;
            }
            note(r, i);
            observer_->compute(r, i);
        } else {
            return transfer(r, i);
        }
        ++next_[r.row];
        return true;
    }

    constexpr bool transfer(row_ref r, instruction i)
    {
        if constexpr (std::is_same_v<Transport, nonblocking>) {
            if (is_receive(i.kind)) {
                observer_->receive(r, i);
            } else if (has_inputs(r, i)) {
                observer_->send(r, i);
            } else {
                return false;
            }
            note(r, i);
            ++next_[r.row];
            return true;
        } else if constexpr (std::is_same_v<Transport, fifo> || std::is_same_v<Transport, tagged>) {
            return pass(r, i);
        } else {
            auto const met = counterpart(i);
            auto& f = facts_[at(r.pipeline)];
            auto const other = rows_[f.first_row + static_cast<std::size_t>(position_of(r, met.stage))];
            if (other.row == r.row || next_[other.row] == limits_[other.row] || row(other)[next_[other.row]] != met) {
                return false;
            }
            auto const sender = is_send(i.kind) ? r : other;
            auto const receiver = is_send(i.kind) ? other : r;
            auto const sent = is_send(i.kind) ? i : met;
            if (!has_inputs(sender, sent)) {
                return false;
            }
            note(receiver, counterpart(sent));
            observer_->transfer(sender, receiver, sent);
            ++next_[r.row];
            ++next_[other.row];
            return true;
        }
    }

    /// A transfer through queues.
    constexpr bool pass(row_ref r, instruction i)
    {
        auto& f = facts_[at(r.pipeline)];
        auto const met = counterpart(i);
        bool const up = i.kind == instruction_kind::send_activation || i.kind == instruction_kind::receive_activation;
        auto const other = f.first_row + static_cast<std::size_t>(position_of(r, met.stage));
        if (is_send(i.kind)) {
            if (other == r.row || !has_inputs(r, i) || !queues_.put(transport_, r.row, other, up, i)) {
                return false;
            }
            observer_->send(r, i);
        } else {
            bool const sent = f.holds(met.stage, met.item, up ? activation_sent : gradient_sent);
            if (other == r.row || !sent || !queues_.take(transport_, other, r.row, up, met)) {
                return false;
            }
            observer_->receive(r, i);
        }
        note(r, i);
        ++next_[r.row];
        return true;
    }

    constexpr verdict judge() const
    {
        verdict result;
        for (auto const& r : rows_) {
            if (next_[r.row] < row(r).size()) {
                result.culprits.push_back({r.pipeline, r.position, row(r)[next_[r.row]]});
            }
        }
        if (!result.culprits.empty()) {
            result.ok = false;
            result.fault = program_error::hang;
            for (auto const& r : rows_) {
                if (auto const crossed = crossing(r); !crossed.empty()) {
                    return {false, program_error::crossed, crossed};
                }
            }
        }
        return result;
    }

    /// A stuck send of row r and the receive of something else that would take its message; empty when there is none.
    constexpr std::vector<waiting_row> crossing(row_ref r) const
    {
        if (!std::is_same_v<Transport, rendezvous> || next_[r.row] == row(r).size() || !is_send(row(r)[next_[r.row]].kind)) {
            return {};
        }
        auto const i = row(r)[next_[r.row]];
        auto const other = rows_[facts_[at(r.pipeline)].first_row + static_cast<std::size_t>(position_of(r, counterpart(i).stage))];
        if (next_[other.row] == row(other).size()) {
            return {};
        }
        auto const met = row(other)[next_[other.row]];
        if (!is_receive(met.kind) || met == counterpart(i) || position_of(other, counterpart(met).stage) != r.position) {
            return {};
        }
        return {{r.pipeline, r.position, i}, {other.pipeline, other.position, met}};
    }

    array_view<program const> programs_;
    Observer* observer_;
    Transport transport_;
    message_queues<> queues_;
    std::vector<pipeline_facts> facts_;
    std::vector<row_ref> rows_;
    std::vector<std::size_t> next_;  ///< row -> its next instruction
    std::vector<std::size_t> limits_;
    std::vector<int> holders_;       ///< unit -> rows that name it
    std::vector<int> posted_;
};

}  // namespace detail

/// An observer that looks at nothing; base of those that look at something.
struct no_observer {
    constexpr void compute(row_ref, instruction) {}
    constexpr void transfer(row_ref, row_ref, instruction) {}  ///< rendezvous: sender, receiver, the send
    constexpr void send(row_ref, instruction) {}               ///< nonblocking
    constexpr void receive(row_ref, instruction) {}            ///< nonblocking
    constexpr void post(row_ref, instruction) {}
    constexpr void await(row_ref, instruction) {}
};

/// Runs the product of the programs, one per pipeline, to its end or until nothing moves. The observer
/// hears of every instruction in an order in which each comes after all that it waits for.
/// `limits` (empty: none) stops row k of the product after limits[k] instructions, as the loss of its rank does.
/// A transport with values, as `fifo`, is given as one. Returns ok, or `misplaced`, or `crossed`, or `hang` with the stuck state.
template <class Transport, class Observer>
constexpr verdict interpret(array_view<program const> programs, Observer& observer, array_view<std::size_t const> limits = {}, Transport transport = {})
{
    return detail::interpretation<Transport, Observer>{programs, observer, limits, transport}.run();
}

}  // namespace rheo::inline v0
