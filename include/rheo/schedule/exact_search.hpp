#pragma once
// SPDX-License-Identifier: Apache-2.0

// The shortest order of all, for small sizes: branch and bound over active schedules (Giffler and Thompson,
// 1960): the instruction that could end first names a rank, and every instruction of that rank that could
// begin before that end is tried next. A branch is left when the head + work + tail of some rank, counted
// from where the branch stands, is no better than the best schedule so far. Microbatches are alike, so
// the first stage takes them in order. Memory is not bounded here; see list_schedule for that.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/schedule/cost.hpp"
#include "rheo/schedule/list_schedule.hpp"
#include "rheo/schedule/program.hpp"
#include "rheo/schedule/timeline.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// The best order found and what is known of it.
struct exact_answer {
    program what;
    seconds makespan;
    seconds lower_bound;  ///< equal to the makespan when the search came to its end
    bool is_optimal;
    long nodes;           ///< branches looked at
};

namespace detail {

class exact_searching {
public:
    constexpr exact_searching(list_request const& request, long most_nodes) : request_{&request}, most_nodes_{most_nodes}
    {
        auto const stages = request.placement.size();
        auto const microbatches = static_cast<std::size_t>(request.microbatches);
        auto const index = [&](std::size_t kind, std::size_t s, std::size_t m) { return (kind * stages + s) * microbatches + m; };
        for (std::size_t kind = 0; kind < (request.split ? 3U : 2U); ++kind) {
            for (std::size_t s = 0; s < stages; ++s) {
                for (std::size_t m = 0; m < microbatches; ++m) {
                    auto const whole = request.split ? instruction_kind::input_gradient : instruction_kind::backward;
                    auto const k = kind == 0 ? instruction_kind::forward : kind == 1 ? whole : instruction_kind::weight_gradient;
                    operation o{make_instruction(k, stage_id{static_cast<int>(s)}, microbatch_id{static_cast<int>(m)}),
                        static_cast<std::size_t>(request.placement[s]), {}, {}};
                    o.time = cost_of(request.costs, o.what);
                    if (kind == 0 && s > 0) {
                        o.after.push_back({index(0, s - 1, m), lag(s - 1, s)});
                    } else if (kind == 0 && m > 0) {
                        o.after.push_back({index(0, 0, m - 1), {}});
                    } else if (kind > 0) {
                        o.after.push_back({index(kind - 1, s, m), {}});
                    }
                    if (kind == 1 && s + 1 < stages) {
                        o.after.push_back({index(1, s + 1, m), lag(s + 1, s)});
                    }
                    operations_.push_back(o);
                }
            }
        }
        for (std::size_t kind = 0; kind < (request.split ? 3U : 2U); ++kind) {  // an order in which each comes after what it needs
            for (std::size_t s = 0; s < stages; ++s) {
                for (std::size_t m = 0; m < microbatches; ++m) {
                    sorted_.push_back(index(kind, kind == 1 ? stages - 1 - s : s, m));
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
        placed_.resize(operations_.size());
        clocks_.resize(static_cast<std::size_t>(request.ranks));
    }

    /// Searches for something shorter than `best`, which `known` achieves.
    constexpr exact_answer run(program const& known, seconds best)
    {
        best_ = {known, best, bound(), false, 0};
        auto const root = best_.lower_bound;
        if (root < best_.makespan) {
            explore(0);
        }
        best_.is_optimal = best_.nodes <= most_nodes_;
        best_.lower_bound = best_.is_optimal ? best_.makespan : root;
        return best_;
    }

private:
    struct need {
        std::size_t operation;
        seconds lag;
    };
    struct operation {
        instruction what;
        std::size_t rank;
        seconds time;
        std::vector<need> after;
    };

    constexpr seconds lag(std::size_t from, std::size_t to) const
    {
        if (request_->placement[from] == request_->placement[to]) {
            return {};
        }
        return to > from ? request_->costs[from].send_activation : request_->costs[from].send_gradient;
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
            if (placed_[k]) {
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

    constexpr void explore(std::size_t count)
    {
        if (++best_.nodes > most_nodes_) {
            return;
        }
        if (count == operations_.size()) {
            best_.makespan = *std::max_element(clocks_.begin(), clocks_.end());
            best_.what = placed_program(request_->ranks, request_->placement);
            for (auto const k : order_) {
                best_.what.rows[operations_[k].rank].push_back(operations_[k].what);
            }
            return;
        }
        std::vector<std::size_t> ready;
        std::vector<seconds> starts;
        std::size_t first = 0;
        for (std::size_t k = 0; k < operations_.size(); ++k) {
            auto const& o = operations_[k];
            bool can = !placed_[k];
            auto start = clocks_[o.rank];
            for (auto const& n : o.after) {
                can = can && placed_[n.operation];
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
        auto const rank = operations_[ready[first]].rank;
        auto const end = starts[first] + operations_[ready[first]].time;
        std::vector<std::size_t> choices;  // gradients first: they let other ranks go on
        for (std::size_t c = ready.size(); c-- > 0;) {
            if (operations_[ready[c]].rank == rank && (starts[c] < end || c == first)) {
                choices.push_back(c);
            }
        }
        for (auto const c : choices) {
            auto const k = ready[c];
            auto const clock = clocks_[rank];
            placed_[k] = true;
            ends_[k] = clocks_[rank] = starts[c] + operations_[k].time;
            order_.push_back(k);
            if (bound() < best_.makespan) {
                explore(count + 1);
            }
            order_.pop_back();
            clocks_[rank] = clock;
            placed_[k] = false;
            ends_[k] = {};
        }
    }

    list_request const* request_;
    long most_nodes_;
    std::vector<operation> operations_;
    std::vector<std::size_t> sorted_;
    std::vector<seconds> tails_;  ///< from an operation's end to the end of all that needs it
    std::vector<seconds> ends_;
    std::vector<bool> placed_;
    std::vector<seconds> clocks_;
    std::vector<std::size_t> order_;
    exact_answer best_{};
};

}  // namespace detail

/// The shortest order of the request's computations, with its proof: when the search ends within `most_nodes`, the makespan is
/// the lower bound; else the best order found stands beside the bound of the whole problem. The memory cap is not heeded.
/// @pre one copy of the model; costs of every stage
constexpr exact_answer exact_schedule(list_request const& request, long most_nodes = 1'000'000)
{
    expects(request.copies == 1, "the exact search knows one copy of the model");
    auto unbounded = request;
    unbounded.cap = bytes{};
    auto const known = list_schedule(unbounded);
    return detail::exact_searching{unbounded, most_nodes}.run(known.what, makespan(known.what, unbounded.costs));
}

}  // namespace rheo::inline v0
