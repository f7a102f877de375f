#pragma once
// SPDX-License-Identifier: Apache-2.0

// Branch and bound over active schedules (Giffler and Thompson,
// 1960): the instruction that could end first names a rank, and every instruction of that rank that could
// begin before that end is tried next. A branch is left when the head + work + tail of some rank, counted
// from where the branch stands, is no better than the best schedule so far. Microbatches are alike, so
// the first stage of a copy takes its own in order; which copy each one takes is settled, as for the list schedule.
//
// Under a memory cap a forward that fits need not come first even if it delays no rank, since what it holds may be in the way.
// So where a forward could end first, it is tried as well that none of these comes next: they are barred until
// their rank has done something else. With that every order is reached, and the bounds hold as they ignore the cap.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/precedence.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/search/exact_answer.hpp"
#include "rheo/schedule/search/list_schedule.hpp"

namespace rheo::inline v0::detail {

template <class OnlyWhenCalled = void>
class branch_and_bound {
public:
    constexpr branch_and_bound(list_request const& request, long most_nodes) : request_{&request}, most_nodes_{most_nodes}
    {
        auto const kinds = static_cast<std::size_t>(request.split ? 3 : 2);
        stages_ = request.placement.size();
        chain_ = stages_ / static_cast<std::size_t>(request.copies);
        form_ = placed_program(request.ranks, request.placement, request.copies);
        form_.slices = request.slices;
        items_ = static_cast<std::size_t>(request.microbatches) * static_cast<std::size_t>(request.slices);
        for (std::size_t kind = 0; kind < kinds; ++kind) {
            for (std::size_t s = 0; s < stages_; ++s) {
                for (std::size_t m = 0; m < items_; ++m) {
                    operations_.push_back(make_operation(kind, s, m));
                }
            }
        }
        auto const slices = static_cast<std::size_t>(request.slices);
        for (std::size_t kind = 0; kind < kinds; ++kind) {  // an order in which each comes after what it needs
            for (std::size_t s = 0; s < stages_; ++s) {
                for (std::size_t m = 0; m < items_; ++m) {
                    auto const item = kind == 1 ? m / slices * slices + slices - 1 - m % slices : m;
                    auto const stage = kind == 1 ? stages_ - 1 - s : s;
                    if (stage / chain_ == copy_of(item)) {
                        sorted_.push_back(index(kind, stage, item));
                    }
                }
            }
        }
        tails_.resize(operations_.size());
        for (std::size_t k = sorted_.size(); k-- > 0;) {
            auto const& o = operations_[sorted_[k]];
            for (auto const& n : o.after) {
                tails_[n.operation] = std::max(tails_[n.operation], tails_[sorted_[k]] + o.time + n.lag);
            }
        }
        ends_.resize(operations_.size());
        placed_.resize(operations_.size(), 1);
        for (auto const k : sorted_) {  // a microbatch runs through one copy: on the others its operations count as done
            placed_[k] = 0;
        }
        barred_.resize(operations_.size(), 0);
        clocks_.resize(static_cast<std::size_t>(request.ranks));
        held_.resize(clocks_.size());
    }

    /// The longest that an order without idle can take: nothing that is found is longer.
    constexpr seconds whole_work() const
    {
        seconds sum{1.0};
        for (auto const k : sorted_) {
            sum += operations_[k].time;
            for (auto const& n : operations_[k].after) {
                sum += n.lag;
            }
        }
        return sum;
    }

    /// Searches for something shorter than `best`, which `known` achieves.
    constexpr exact_answer run(program const& known, seconds best)
    {
        best_ = {known, best, bound(), false, 0};
        auto const root = best_.lower_bound;
        if (root < best_.makespan) {
            explore(0);
        }
        best_.is_optimal = best_.nodes <= most_nodes_ && !best_.program.rows.empty();
        best_.lower_bound = best_.is_optimal ? best_.makespan : root;
        return best_;
    }

private:
    struct need {
        std::size_t operation;
        seconds lag;
    };
    struct operation {
        rheo::instruction instruction;
        std::size_t rank;
        seconds time;
        bytes takes;  ///< activations, as long as it is placed and not given back
        bytes gives;
        std::vector<need> after;
    };

    constexpr std::size_t copy_of(std::size_t item) const
    {
        return item / static_cast<std::size_t>(request_->slices) % static_cast<std::size_t>(request_->copies);
    }

    constexpr std::size_t index(std::size_t kind, std::size_t s, std::size_t m) const
    {
        return part_index(static_cast<work_part>(kind), s, m, stages_, items_);
    }

    constexpr operation make_operation(std::size_t kind, std::size_t s, std::size_t m) const
    {
        auto const whole = request_->split ? instruction_kind::input_gradient : instruction_kind::backward;
        auto const k = kind == 0 ? instruction_kind::forward : kind == 1 ? whole : instruction_kind::weight_gradient;
        auto const slices = static_cast<std::size_t>(request_->slices);
        auto const between = slices * static_cast<std::size_t>(request_->copies);  // from a microbatch to the copy's next
        auto const activation = request_->activations.empty() ? bytes{1} : request_->activations[s];
        operation o{make_instruction(k, stage_id{static_cast<int>(s)}, microbatch_id{static_cast<int>(m)}),
                    static_cast<std::size_t>(request_->placement[s]),
                    {},
                    kind == 0 ? activation : bytes{},
                    kind == (request_->split ? 2U : 1U) ? activation : bytes{},
                    {}};
        o.time = cost_of(request_->costs, o.instruction);
        if (kind == 0 && s % chain_ == 0 && m % slices == 0 && m >= between) {
            o.after.push_back({index(0, s, m - between), {}});
        }
        for_each_need(form_, request_->costs, static_cast<work_part>(kind), s, m, [&](work_part part, std::size_t stage, std::size_t item, seconds lag) {
            o.after.push_back({index(static_cast<std::size_t>(part), stage, item), lag});
        });
        return o;
    }

    /// Head + work + tail of every rank from where the search stands.
    constexpr seconds bound()
    {
        std::vector<seconds> ends = ends_;
        std::vector<seconds> head(clocks_.size(), seconds{-1.0});
        std::vector<seconds> work(clocks_.size());
        std::vector<seconds> tail(clocks_.size());
        seconds result{0.0};
        for (auto const clock : clocks_) {
            result = std::max(result, clock);
        }
        for (auto const k : sorted_) {
            if (placed_[k] != 0) {
                result = std::max(result, ends[k] + tails_[k]);
                continue;
            }
            auto const& o = operations_[k];
            auto start = clocks_[o.rank];
            for (auto const& n : o.after) {
                start = std::max(start, ends[n.operation] + n.lag);
            }
            ends[k] = start + o.time;
            result = std::max(result, ends[k] + tails_[k]);
            bool const first = head[o.rank] < seconds{0.0};
            head[o.rank] = first ? start : std::min(head[o.rank], start);
            tail[o.rank] = first ? tails_[k] : std::min(tail[o.rank], tails_[k]);
            work[o.rank] += o.time;
        }
        for (std::size_t r = 0; r < head.size(); ++r) {
            if (head[r] >= seconds{0.0}) {
                result = std::max(result, head[r] + work[r] + tail[r]);
            }
        }
        return result;
    }

    constexpr bool fits(operation const& o) const { return request_->cap == bytes{} || o.takes == bytes{} || held_[o.rank] + o.takes <= request_->cap; }

    constexpr void explore(std::size_t count)
    {
        if (++best_.nodes > most_nodes_) {
            return;
        }
        if (count == sorted_.size()) {
            best_.makespan = *std::max_element(clocks_.begin(), clocks_.end());
            best_.program = form_;
            for (auto const k : order_) {
                best_.program.rows[operations_[k].rank].push_back(operations_[k].instruction);
            }
            return;
        }
        std::vector<std::size_t> ready;
        std::vector<seconds> starts;
        std::size_t first = 0;
        for (std::size_t k = 0; k < operations_.size(); ++k) {
            auto const& o = operations_[k];
            bool can = placed_[k] == 0 && barred_[k] == 0 && fits(o);
            auto start = clocks_[o.rank];
            for (auto const& n : o.after) {
                can = can && placed_[n.operation] != 0;
                start = std::max(start, ends_[n.operation] + n.lag);
            }
            if (can) {
                ready.push_back(k);
                starts.push_back(start);
                if (start + o.time < starts[first] + operations_[ready[first]].time) {
                    first = ready.size() - 1;
                }
            }
        }
        if (ready.empty()) {
            return;  // what is left does not fit, or is barred
        }
        auto const rank = operations_[ready[first]].rank;
        auto const end = starts[first] + operations_[ready[first]].time;
        std::vector<std::size_t> choices;  // gradients first: they let other ranks continue
        for (std::size_t c = ready.size(); c-- > 0;) {
            if (operations_[ready[c]].rank == rank && (starts[c] < end || c == first)) {
                choices.push_back(c);
            }
        }
        for (auto const c : choices) {
            place(ready[c], starts[c], count);
        }
        if (request_->cap > bytes{} && operations_[ready[first]].takes > bytes{}) {
            for (auto const c : choices) {
                barred_[ready[c]] = 1;
            }
            explore(count);
            for (auto const c : choices) {
                barred_[ready[c]] = 0;
            }
        }
    }

    /// Looks at the orders in which the operation comes next on its rank; then nothing of that rank is barred any more.
    constexpr void place(std::size_t k, seconds start, std::size_t count)
    {
        auto const& o = operations_[k];
        auto const clock = clocks_[o.rank];
        auto const barred = barred_;
        for (std::size_t other = 0; other < operations_.size(); ++other) {
            barred_[other] = operations_[other].rank == o.rank ? 0 : barred_[other];
        }
        placed_[k] = 1;
        ends_[k] = clocks_[o.rank] = start + o.time;
        held_[o.rank] += o.takes;
        held_[o.rank] -= o.gives;
        order_.push_back(k);
        if (bound() < best_.makespan) {
            explore(count + 1);
        }
        order_.pop_back();
        held_[o.rank] += o.gives;
        held_[o.rank] -= o.takes;
        clocks_[o.rank] = clock;
        placed_[k] = 0;
        ends_[k] = {};
        barred_ = barred;
    }

    list_request const* request_;
    program form_;
    long most_nodes_;
    std::size_t stages_ = 0;
    std::size_t chain_ = 0;  ///< stages of a copy
    std::size_t items_ = 0;
    std::vector<operation> operations_;
    std::vector<std::size_t> sorted_;
    std::vector<seconds> tails_;  ///< from an operation's end to the end of all that needs it
    std::vector<seconds> ends_;
    std::vector<std::uint8_t> placed_;
    std::vector<std::uint8_t> barred_;  ///< does not come next on its rank
    std::vector<seconds> clocks_;
    std::vector<bytes> held_;
    std::vector<std::size_t> order_;
    exact_answer best_{};
};

}  // namespace rheo::inline v0::detail
