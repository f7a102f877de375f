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

#include "rheo/schedule/check/detail/dataflow.hpp"
#include "rheo/schedule/check/row_ref.hpp"
#include "rheo/schedule/core/message_queues.hpp"
#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/transport.hpp"
#include "rheo/schedule/core/verdict.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class Transport, class Observer>
class interpretation {
public:
    constexpr ~interpretation() = default;  // explicit, because nvcc does not see that the implicit one is constexpr
    constexpr interpretation(array_view<program const> programs, Observer& observer, array_view<std::size_t const> limits, Transport transport)
        : programs_{programs}, flow_{programs}, observer_{&observer}, transport_{transport}
    {
        for (std::size_t p = 0; p < programs.size(); ++p) {
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
                if (!flow_.has_meaning(r, row(r)[k]) || !is_paired(row(r), k)) {
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

    /// False for an overlap that a forward and a whole backward do not follow.
    static constexpr bool is_paired(std::vector<instruction> const& row, std::size_t k)
    {
        return row[k].kind != instruction_kind::overlap ||
               (k + 2 < row.size() && row[k + 1].kind == instruction_kind::forward && row[k + 2].kind == instruction_kind::backward);
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
            if (!flow_.has_inputs(r, row(r)[next_[r.row] + 1]) || !flow_.has_inputs(r, row(r)[next_[r.row] + 2])) {
                return false;
            }
            if constexpr (requires { observer_->overlap(r, i); }) {
                observer_->overlap(r, i);
            }
        } else if (is_local(i.kind)) {
            if (!flow_.has_inputs(r, i)) {
                return false;
            }
            flow_.turn_activation(r, i);
            if constexpr (requires { observer_->keep(r, i); }) {
                observer_->keep(r, i);
            }
        } else if (is_compute(i.kind)) {
            if (!flow_.given() && !flow_.has_inputs(r, i)) {
                return false;
            }
            flow_.note(r, i);
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
            } else if (flow_.has_inputs(r, i)) {
                observer_->send(r, i);
            } else {
                return false;
            }
            flow_.note(r, i);
            ++next_[r.row];
            return true;
        } else if constexpr (std::is_same_v<Transport, fifo> || std::is_same_v<Transport, tagged>) {
            return pass(r, i);
        } else {
            auto const met = counterpart(i);
            auto const other = rows_[flow_.row_of(r, met.stage)];
            if (other.row == r.row || next_[other.row] == limits_[other.row] || row(other)[next_[other.row]] != met) {
                return false;
            }
            auto const sender = is_send(i.kind) ? r : other;
            auto const receiver = is_send(i.kind) ? other : r;
            auto const sent = is_send(i.kind) ? i : met;
            if (!flow_.has_inputs(sender, sent)) {
                return false;
            }
            flow_.note(receiver, counterpart(sent));
            observer_->transfer(sender, receiver, sent);
            ++next_[r.row];
            ++next_[other.row];
            return true;
        }
    }

    /// A transfer through queues.
    constexpr bool pass(row_ref r, instruction i)
    {
        auto const met = counterpart(i);
        bool const up = i.kind == instruction_kind::send_activation || i.kind == instruction_kind::receive_activation;
        auto const other = flow_.row_of(r, met.stage);
        if (is_send(i.kind)) {
            if (other == r.row || !flow_.has_inputs(r, i) || !queues_.put(transport_, r.row, other, up, i)) {
                return false;
            }
            observer_->send(r, i);
        } else {
            if (other == r.row || !flow_.is_sent(r, met) || !queues_.take(transport_, other, r.row, up, met)) {
                return false;
            }
            observer_->receive(r, i);
        }
        flow_.note(r, i);
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
        auto const other = rows_[flow_.row_of(r, counterpart(i).stage)];
        if (next_[other.row] == row(other).size()) {
            return {};
        }
        auto const met = row(other)[next_[other.row]];
        if (!is_receive(met.kind) || met == counterpart(i) || flow_.position_of(other, counterpart(met).stage) != r.position) {
            return {};
        }
        return {{r.pipeline, r.position, i}, {other.pipeline, other.position, met}};
    }

    array_view<program const> programs_;
    dataflow<Transport> flow_;
    Observer* observer_;
    Transport transport_;
    message_queues<> queues_;
    std::vector<row_ref> rows_;
    std::vector<std::size_t> next_;  ///< row -> its next instruction
    std::vector<std::size_t> limits_;
    std::vector<int> holders_;  ///< unit -> rows that name it
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
