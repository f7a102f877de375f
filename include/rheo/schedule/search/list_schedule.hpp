#pragma once
// SPDX-License-Identifier: Apache-2.0

// A schedule by list scheduling (Graham, 1969) for any placement, per-stage costs and memory: whenever a
// rank is free, the instruction that can begin first is taken; of several, an input gradient or backward
// before a forward, older microbatches before younger, deep stages before shallow, a weight gradient last. It is not optimal, but
// never idles while it could work, except for memory.
//
// Memory: a forward begins only when its activation fits under the cap and leaves every deeper stage of the rank what
// one microbatch needs there, all its slices, counting what that stage holds already. So the oldest microbatch of a copy can
// always continue: what is younger left it room, and what lies deeper is its own. (Of several copies that have stopped, the
// one that stopped deepest is taken; stages equally deep are distinguished by their copy.) A cap that holds one microbatch on
// each stage of a rank cannot lead into a hang.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What a list schedule is made for.
struct list_request {
    int ranks;
    std::vector<int> placement;
    stage_costs costs;
    int microbatches;
    int copies = 1;                       ///< microbatch m takes copy m % copies
    bool split = false;                   ///< input and weight gradients apart
    std::vector<bytes> activations = {};  ///< stage -> held from F to B or W; none: one byte each
    bytes cap = {};                       ///< of activations per rank; 0: none
    int slices = 1;                       ///< of each microbatch; costs and activations are a slice's
};

/// A compute program and what it takes.
struct listed_schedule {
    rheo::program program;
    seconds makespan;  ///< at the request's costs
};

namespace detail {

template <class OnlyWhenCalled = void>
class list_scheduler {
public:
    constexpr explicit list_scheduler(list_request const& request)
        : request_{&request}, result_{placed_program(request.ranks, request.placement, request.copies)}
    {
        result_.slices = request.slices;
        auto const stages = request.placement.size();
        chain_ = stages / static_cast<std::size_t>(request.copies);
        held_.resize(stages);
        clocks_.resize(static_cast<std::size_t>(request.ranks));
        done_.resize(stages * 3, 0);
        ends_.resize(stages * 2);
        stages_of_.resize(clocks_.size());
        for (std::size_t s = 0; s < stages; ++s) {
            activations_.push_back(request.activations.empty() ? bytes{1} : request.activations[s]);
            whole_.push_back(activations_.back() * request.slices);
            auto const copies = static_cast<std::size_t>(request.copies);
            auto const all = static_cast<std::size_t>(request.microbatches);
            wanted_.push_back((all + copies - 1 - s / chain_) / copies * static_cast<std::size_t>(request.slices));
        }
        for (std::size_t depth = 0; depth < chain_; ++depth) {
            for (auto s = depth; s < stages; s += chain_) {
                stages_of_[rank_of(s)].push_back(s);
            }
        }
    }

    /// True when every rank can hold one microbatch on each of its stages.
    constexpr bool fits() const
    {
        for (auto const& stages : stages_of_) {
            bytes sum;
            for (auto const s : stages) {
                sum += whole_[s];
            }
            if (request_->cap > bytes{} && sum > request_->cap) {
                return false;
            }
        }
        return true;
    }

    constexpr program run()
    {
        choices_.resize(wanted_.size());
        first_of_.resize(stages_of_.size(), 0);
        for (std::size_t s = 0; s < choices_.size(); ++s) {
            look_again(s);
        }
        for (std::size_t rank = 0; rank < stages_of_.size(); ++rank) {
            look_at_rank(rank);
        }
        for (choice c = best(); c.found; c = best()) {
            take(c);
            for (auto const s : stages_of_[rank_of(c.stage)]) {  // what is taken changes its rank and the stages beside it
                look_again(s);
            }
            look_at_rank(rank_of(c.stage));
            for (auto const s : {c.stage - 1, c.stage + 1}) {
                if (s < choices_.size() && rank_of(s) != rank_of(c.stage)) {
                    look_again(s);
                    look_at_rank(rank_of(s));
                }
            }
        }
        return result_;
    }

    constexpr seconds makespan() const
    {
        seconds last{0.0};
        for (auto const clock : clocks_) {
            last = std::max(last, clock);
        }
        return last;
    }

private:
    struct choice {
        bool found = false;
        std::size_t stage = 0;
        int kind = 0;  ///< 0 forward, 1 backward or input gradient, 2 weight gradient
        seconds start{};
        int rank_of_kind = 0;  ///< smaller is taken first at equal start
    };

    constexpr std::size_t rank_of(std::size_t stage) const { return static_cast<std::size_t>(request_->placement[stage]); }
    constexpr std::size_t& done(std::size_t stage, int kind) { return done_[3 * stage + static_cast<std::size_t>(kind)]; }
    constexpr std::vector<seconds>& ends(std::size_t stage, int kind) { return ends_[2 * stage + static_cast<std::size_t>(kind)]; }

    constexpr bool has_room(std::size_t stage) const
    {
        if (request_->cap == bytes{}) {
            return true;
        }
        bytes need;
        bool deeper = false;
        for (auto const other : stages_of_[rank_of(stage)]) {
            if (other == stage) {
                need += std::max(held_[stage] + activations_[stage], whole_[stage]);
                deeper = true;
            } else {
                need += deeper && held_[other] < whole_[other] ? whole_[other] : held_[other];
            }
        }
        return need <= request_->cap;
    }

    /// The item, counted within a copy, of the k-th instruction of a kind: backwards take the slices of a microbatch from the last one on.
    constexpr std::size_t item_of(int kind, std::size_t k) const
    {
        auto const slices = static_cast<std::size_t>(request_->slices);
        return kind == 0 ? k : k / slices * slices + slices - 1 - k % slices;
    }

    /// The next instruction of a kind on a stage, if its inputs are known.
    constexpr choice next(std::size_t stage, int kind)
    {
        auto const k = done(stage, kind);
        if (k == wanted_[stage] || (kind == 2 && (!request_->split || k == done(stage, 1))) || (kind == 1 && item_of(kind, k) >= done(stage, 0)) ||
            (kind == 0 && !has_room(stage))) {
            return {};
        }
        auto start = clocks_[rank_of(stage)];
        auto const c = stage % chain_;
        bool const has_source = kind == 0 ? c > 0 : kind == 1 && c + 1 < chain_;
        if (has_source) {
            auto const source = kind == 0 ? stage - 1 : stage + 1;
            if (done(source, kind) <= k) {
                return {};
            }
            auto ready = ends(source, kind)[k];
            if (rank_of(source) != rank_of(stage)) {
                ready += kind == 0 ? request_->costs[source].send_activation : request_->costs[source].send_gradient;
            }
            start = std::max(start, ready);
        }
        auto const chain = static_cast<int>(chain_);
        auto const age = static_cast<int>(k) * chain + chain - static_cast<int>(c);
        auto const all = request_->microbatches * request_->slices * chain + 1;
        return {true, stage, kind, start, kind == 1 ? age : kind == 0 ? all + age : 2 * all};
    }

    static constexpr bool is_before(choice const& a, choice const& b)
    {
        if (!a.found || !b.found) {
            return a.found;
        }
        return a.start.count < b.start.count || (a.start.count == b.start.count && a.rank_of_kind < b.rank_of_kind);
    }

    constexpr void look_again(std::size_t stage)
    {
        choices_[stage] = {};
        for (int kind = 0; kind < 3; ++kind) {
            if (auto const c = next(stage, kind); is_before(c, choices_[stage])) {
                choices_[stage] = c;
            }
        }
    }

    /// The best choice of a rank, from those of its stages.
    constexpr void look_at_rank(std::size_t rank)
    {
        first_of_[rank] = stages_of_[rank].empty() ? 0 : stages_of_[rank].front();
        for (auto const s : stages_of_[rank]) {
            if (is_before(choices_[s], choices_[first_of_[rank]])) {
                first_of_[rank] = s;
            }
        }
    }

    constexpr choice best() const
    {
        choice first;
        for (std::size_t rank = 0; rank < first_of_.size(); ++rank) {
            if (!stages_of_[rank].empty() && is_before(choices_[first_of_[rank]], first)) {
                first = choices_[first_of_[rank]];
            }
        }
        return first;
    }

    constexpr void take(choice c)
    {
        auto const k = done(c.stage, c.kind)++;
        auto const whole = request_->split ? instruction_kind::input_gradient : instruction_kind::backward;
        auto const kind = c.kind == 0 ? instruction_kind::forward : c.kind == 1 ? whole : instruction_kind::weight_gradient;
        auto const slices = static_cast<std::size_t>(request_->slices);
        auto const in_copy = item_of(c.kind, k);
        auto const microbatch = static_cast<int>(in_copy / slices) * request_->copies + static_cast<int>(c.stage / chain_);
        auto const item = microbatch * request_->slices + static_cast<int>(in_copy % slices);
        auto const i = make_instruction(kind, stage_id{static_cast<int>(c.stage)}, microbatch_id{item});
        result_.rows[rank_of(c.stage)].push_back(i);
        auto const end = c.start + cost_of(request_->costs, i);
        clocks_[rank_of(c.stage)] = end;
        if (c.kind < 2) {
            ends(c.stage, c.kind).push_back(end);
        }
        if (c.kind == 0) {
            held_[c.stage] += activations_[c.stage];
        } else if (c.kind == 2 || !request_->split) {
            held_[c.stage] -= activations_[c.stage];
        }
    }

    list_request const* request_;
    program result_;
    std::size_t chain_ = 0;
    std::vector<std::vector<std::size_t>> stages_of_;  ///< rank -> its stages, shallow ones first
    std::vector<bytes> activations_;
    std::vector<bytes> whole_;  ///< stage -> activations of one microbatch
    std::vector<bytes> held_;   ///< by stage
    std::vector<seconds> clocks_;
    std::vector<std::size_t> wanted_;         ///< stage -> microbatches
    std::vector<choice> choices_;             ///< stage -> what it could do next
    std::vector<std::size_t> first_of_;       ///< rank -> its stage with the best choice
    std::vector<std::size_t> done_;           ///< (stage, kind) -> how many
    std::vector<std::vector<seconds>> ends_;  ///< (stage, forward or backward) -> when each ended
};

}  // namespace detail

/// The list schedule of the request, or why there is none. Cost: instructions x (ranks + 3 x squared stages of a rank).
/// @pre costs (and activations, if any) of every stage of every copy
template <class OnlyWhenCalled = void>
constexpr result<listed_schedule> list_schedule(list_request const& request)
{
    expects(request.ranks >= 1 && request.microbatches >= 0, "a list schedule needs ranks and microbatches");
    expects(request.slices >= 1 && request.copies >= 1, "a list schedule needs a slice and a copy of the model");
    expects(request.costs.size() == request.placement.size(), "a list schedule needs the costs of every stage");
    expects(request.activations.empty() || request.activations.size() == request.placement.size(), "a list schedule needs the activations of every stage");
    detail::list_scheduler scheduler{request};
    if (!scheduler.fits()) {
        return failure{"the memory cap does not hold one microbatch on each stage of a rank"};
    }
    auto program = scheduler.run();
    return listed_schedule{std::move(program), scheduler.makespan()};
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<listed_schedule> list_schedule<>(list_request const&);
#endif

}  // namespace rheo::inline v0
