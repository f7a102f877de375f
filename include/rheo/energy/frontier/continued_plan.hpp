#pragma once
// SPDX-License-Identifier: Apache-2.0

// Plans for a long program from those of a shorter one that is in its steady state, each with its proof. An operation
// takes as long as its like in the shorter program: the one for the microbatch with the same distance from the beginning,
// or from the end, or for any one in the middle. The flow that proves it is one maximal flow through the whole program.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/energy/frontier/certificate.hpp"
#include "rheo/energy/frontier/event_network.hpp"
#include "rheo/energy/frontier/flow_from_plan.hpp"
#include "rheo/energy/frontier/frontier.hpp"
#include "rheo/energy/frontier/steady_state.hpp"

namespace rheo::inline v0 {

/// A plan of a continued curve, and what its flow proves.
struct continued_plan {
    certificate claim;
    proof checked;  ///< without a reason: the plan is optimal, whatever it was carried over from

    constexpr explicit operator bool() const { return static_cast<bool>(checked); }
};

namespace detail {

/// The operations of a network by stage, kind and microbatch.
template <class OnlyWhenCalled = void>
class operation_table {
public:
    constexpr explicit operator bool() const { return sound_; }

    constexpr explicit operation_table(event_network const& network)
    {
        for (auto const& o : network.operations) {
            stages_ = std::max(stages_, o.instruction.stage + 1);
            items_ = std::max(items_, o.instruction.item + 1);
        }
        places_.assign(static_cast<std::size_t>(stages_ * kinds * items_), -1);
        for (std::size_t k = 0; k < network.operations.size(); ++k) {
            auto const computation = network.operations[k].instruction;
            sound_ = sound_ && find(computation, computation.item) < 0;  // concurrent pipelines cannot be distinguished
            places_[place(computation, computation.item)] = static_cast<int>(k);
        }
    }

    constexpr int items() const { return items_; }

    /// The operation that is `computation` for another microbatch; -1: there is none.
    constexpr int find(instruction computation, int item) const
    {
        return computation.stage < stages_ && item < items_ ? places_[place(computation, item)] : -1;
    }

private:
    static constexpr int kinds = static_cast<int>(instruction_kind::weight_gradient) + 1;

    constexpr std::size_t place(instruction computation, int item) const
    {
        return static_cast<std::size_t>((computation.stage * kinds + static_cast<int>(computation.kind)) * items_ + item);
    }

    int stages_ = 0;
    int items_ = 0;
    std::vector<int> places_;
    bool sound_ = true;
};

/// The microbatch nearest to the middle from which on all ranks take as long for a period as for the next one, in both
/// plans of the shorter program; -1: there is none.
template <class OnlyWhenCalled = void>
constexpr int steady_microbatch(operation_table<> const& table, event_network const& network, int period, timed_plan const& one, timed_plan const& other)
{
    std::vector<bool> like(static_cast<std::size_t>(table.items()), true);  // a period later all take as long
    for (std::size_t k = 0; k < network.operations.size(); ++k) {
        auto const computation = network.operations[k].instruction;
        auto const next = table.find(computation, computation.item + period);
        auto const n = static_cast<std::size_t>(next);
        bool const same = next >= 0 && one.durations[k] == one.durations[n] && other.durations[k] == other.durations[n];
        like[static_cast<std::size_t>(computation.item)] = like[static_cast<std::size_t>(computation.item)] && same;
    }
    int best = -1;
    auto const off = [&](int i) { return i < table.items() / 2 ? table.items() / 2 - i : i - table.items() / 2; };
    for (int item = 0; item + period <= table.items(); ++item) {
        bool steady = true;
        for (int k = 0; k < period; ++k) {
            steady = steady && like[static_cast<std::size_t>(item + k)];
        }
        best = steady && (best < 0 || off(item) < off(best)) ? item : best;
    }
    return best;
}

/// Operation of the longer network -> its like in the shorter one; empty when some operation has none.
template <class OnlyWhenCalled = void>
constexpr std::vector<int> likes_of(event_network const& longer, operation_table<> const& shorter, int steady, int more, int period)
{
    std::vector<int> result;
    for (auto const& o : longer.operations) {
        auto const item = o.instruction.item < steady           ? o.instruction.item
                          : o.instruction.item >= steady + more ? o.instruction.item - more
                                                                : steady + (o.instruction.item - steady) % period;
        result.push_back(shorter.find(o.instruction, item));
        if (result.back() < 0) {
            return {};
        }
    }
    return result;
}

/// When everything happens at the earliest if each operation takes what its like takes.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::int32_t> earliest_like(activity_network const& p, timed_plan const& plan, std::vector<int> const& likes)
{
    std::vector<std::int32_t> events(static_cast<std::size_t>(p.network.events), 0);
    for (auto const& arc : p.network.arcs) {
        auto const time = arc.operation < 0 ? least_time(p, arc) : plan.durations[static_cast<std::size_t>(likes[static_cast<std::size_t>(arc.operation)])];
        auto& end = events[static_cast<std::size_t>(arc.to)];
        end = std::max(end, events[static_cast<std::size_t>(arc.from)] + time.count);
    }
    return events;
}

/// The plan of that length with what its flow proves; the flow is of at most that value.
template <class OnlyWhenCalled = void>
constexpr continued_plan continued_with(steady_state const& s, frontier const& curve, int microbatches, ticks wanted, nanojoules most)
{
    auto const& p = curve.activities;
    auto const k = vertex_before(curve, wanted);
    auto const next = std::min(k + 1, curve.vertices.size() - 1);
    auto const one = plan_at(s.shorter, s.shorter.vertices[k].time);
    auto const other = plan_at(s.shorter, s.shorter.vertices[next].time);
    continued_plan result{{}, {{}, {}, "the longer program is not like the shorter one"}};
    operation_table const table{s.shorter.activities.network};
    auto const steady = table ? steady_microbatch(table, s.shorter.activities.network, s.period, one, other) : -1;
    auto const likes = steady < 0 ? std::vector<int>{} : likes_of(p.network, table, steady, microbatches - s.microbatches, s.period);
    if (likes.empty()) {
        return result;
    }
    auto const late = (curve.vertices[k].time - wanted).count;
    auto const before = earliest_like(p, one, likes);
    auto events = earliest_like(p, other, likes);
    for (std::size_t v = 0; v < events.size(); ++v) {  // as between the vertices of any frontier
        events[v] = std::max(before[v] - late, events[v]);
    }
    if (events.back() <= wanted.count) {
        events.back() = wanted.count;
        auto flows = flow_for(p, events, most);
        if (flows.empty()) {
            result.checked.error = "the plan that was carried over is not of least cost";
            return result;
        }
        result.claim = {std::move(events), std::move(flows)};
        result.checked = verify(p, result.claim);
        if (result.checked && result.checked.cost != cost_at(curve, wanted)) {
            result.checked.error = "the curve of the longer program is another one";
        }
    }
    return result;
}

}  // namespace detail

/// The plan within a time, carried over from the shorter program. @pre `curve` is continued_curve's for these microbatches,
/// time >= that of its fastest vertex. Cost: passes over both programs and a maximal flow through the longer one.
template <class OnlyWhenCalled = void>
constexpr continued_plan continued_at(steady_state const& s, frontier const& curve, int microbatches, ticks time)
{
    return detail::continued_with(s, curve, microbatches, std::min(time, curve.vertices.front().time), {std::int64_t{1} << 60U});
}

/// True when the first vertex of a continued curve is proved to be that of least energy. Cost: that of continued_at.
template <class OnlyWhenCalled = void>
constexpr bool proved_least(steady_state const& s, frontier const& curve, int microbatches)
{
    return static_cast<bool>(
        detail::continued_with(s, curve, microbatches, curve.vertices.front().time, detail::waiting_per_tick(curve.activities, curve.waiting)));
}

/// The same as a frontier of one point, from which real clocks follow. @pre plan was made from the curve for that time
template <class OnlyWhenCalled = void>
constexpr frontier frontier_at(frontier const& curve, continued_plan const& plan, ticks time)
{
    auto const wanted = std::min(time, curve.vertices.front().time);
    return {curve.activities, curve.waiting, {{wanted, cost_at(curve, wanted), curve.vertices[detail::vertex_before(curve, wanted)].slope}}, plan.claim.events};
}

/// The plans of several times as a frontier: between them it has plans that keep their times, but are not the least. They come
/// slowest first, each made from the curve for its time, the first and last for those of the curve's ends.
template <class OnlyWhenCalled = void>
constexpr frontier frontier_through(frontier const& curve, std::vector<continued_plan> const& plans)
{
    frontier result{curve.activities, curve.waiting, {}, {}};
    for (auto const& plan : plans) {
        ticks const time{plan.claim.events.back()};
        auto const cost = cost_at(curve, time);
        if (!result.vertices.empty()) {
            auto& before = result.vertices.back();
            before.slope = {(cost - before.cost).count / (before.time - time).count};
        }
        result.vertices.push_back({time, cost, curve.vertices.back().slope});
        result.events.insert(result.events.end(), plan.claim.events.begin(), plan.claim.events.end());
    }
    return result;
}

/// True when every vertex of a continued curve is proved, with them all between, and where it begins. Cost: that of continued_at per vertex.
template <class OnlyWhenCalled = void>
constexpr bool proved_everywhere(steady_state const& s, frontier const& curve, int microbatches)
{
    bool all = proved_least(s, curve, microbatches);
    for (std::size_t k = 0; all && k < curve.vertices.size(); ++k) {
        all = static_cast<bool>(continued_at(s, curve, microbatches, curve.vertices[k].time));
    }
    return all;
}

}  // namespace rheo::inline v0
