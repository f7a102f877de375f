#pragma once
// SPDX-License-Identifier: Apache-2.0

// Double justification (Valls, Ballestin and Quintanilla, EJOR 165, 2005): every computation of a program, last ones first, goes
// as late as its rank has a gap for it before what needs it; then, first ones first, as early as there is a gap
// behind what it needs. No computation ends later than before, so no program becomes longer, and idle time that lay between
// the parts of a program is used by whatever fits. What ranks hold may grow: no memory cap is known here.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/schedule/core/precedence.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class OnlyWhenCalled = void>
class justifying {
public:
    constexpr justifying(program const& p, stage_costs const& costs) : form_{empty_like(p)}
    {
        auto const items = item_count(p);
        std::vector<std::size_t> known(3 * p.placement.size() * items, unknown);
        auto const at = [&](work_part part, std::size_t stage, std::size_t item) -> std::size_t& {
            return known[part_index(part, stage, item, p.placement.size(), items)];
        };
        for (std::size_t row = 0; row < p.rows.size(); ++row) {
            now_.push_back({});
            for (auto const& i : p.rows[row]) {
                expects(is_compute(i.kind), "only computations are justified, each by itself");
                expects(cost_of(costs, i) > seconds{0.0}, "only computations that take time are justified");
                at(part_of(i.kind), static_cast<std::size_t>(i.stage), static_cast<std::size_t>(i.item)) = all_.size();
                now_[row].push_back({{}, {}, all_.size()});
                all_.push_back({i, row, cost_of(costs, i), {}, {}});
            }
        }
        for (std::size_t c = 0; c < all_.size(); ++c) {
            auto const i = all_[c].instruction;
            for_each_need(form_, costs, part_of(i.kind), static_cast<std::size_t>(i.stage), static_cast<std::size_t>(i.item),
                          [&](work_part part, std::size_t stage, std::size_t item, seconds lag) {
                              auto const needed = at(part, stage, item);
                              expects(needed != unknown, "a program is justified when it is complete");
                              all_[c].before.add({needed, lag});
                              all_[needed].after.add({c, lag});
                          });
        }
    }

    constexpr program run()
    {
        begin_at_once();
        auto const late = packed(last_first(now_, &computation::after), &computation::after);  // in time that runs backwards
        auto const early = packed(last_first(late, &computation::before), &computation::before);
        auto result = form_;
        for (std::size_t row = 0; row < early.size(); ++row) {
            for (auto const& s : early[row]) {
                result.rows[row].push_back(all_[s.computation].instruction);
            }
        }
        return result;
    }

private:
    static constexpr auto unknown = std::size_t{0} - 1;

    struct neighbour {
        std::size_t computation;
        seconds lag;
    };
    struct neighbours {
        std::array<neighbour, 3> list{};  ///< stage, part and slice
        std::size_t count = 0;

        constexpr void add(neighbour n) { list[count++] = n; }
    };
    struct computation {
        rheo::instruction instruction;
        std::size_t row;
        seconds time;
        neighbours before;
        neighbours after;
    };
    struct interval {
        seconds begin;
        seconds end;
        std::size_t computation;
    };
    using lanes = std::vector<std::vector<interval>>;  ///< row -> what runs there, in order

    /// When what is needed has ended; nothing when some of it has no end yet.
    constexpr bool look_up(neighbours const& needs, std::vector<seconds> const& ends, seconds& begin) const
    {
        for (std::size_t n = 0; n < needs.count; ++n) {
            auto const end = ends[needs.list[n].computation];
            if (end < seconds{0.0}) {
                return false;
            }
            begin = std::max(begin, end + needs.list[n].lag);
        }
        return true;
    }

    /// The times of the program as it is.
    constexpr void begin_at_once()
    {
        std::vector<seconds> ends(all_.size(), seconds{-1.0});
        std::vector<std::size_t> next(now_.size(), 0);
        std::size_t left = all_.size();
        for (auto before = left + 1; left > 0 && left < before;) {
            before = left;
            for (std::size_t row = 0; row < now_.size(); ++row) {
                for (; next[row] < now_[row].size(); ++next[row], --left) {
                    auto& s = now_[row][next[row]];
                    s.begin = next[row] == 0 ? seconds{0.0} : now_[row][next[row] - 1].end;
                    if (!look_up(all_[s.computation].before, ends, s.begin)) {
                        break;
                    }
                    s.end = ends[s.computation] = s.begin + all_[s.computation].time;
                }
            }
        }
        expects(left == 0, "a program is justified when its order is acyclic");
    }

    /// All computations, those that end last first, each behind what it needs.
    constexpr std::vector<std::size_t> last_first(lanes const& of, neighbours computation::* needs) const
    {
        std::vector<std::size_t> order;
        std::vector<std::size_t> left;
        for (auto const& lane : of) {
            left.push_back(lane.size());
        }
        std::vector<std::uint8_t> taken(all_.size(), 0);
        while (order.size() < all_.size()) {
            interval const* last = nullptr;
            for (std::size_t row = 0; row < of.size(); ++row) {
                if (left[row] == 0 || (last != nullptr && of[row][left[row] - 1].end <= last->end)) {
                    continue;
                }
                auto const& s = of[row][left[row] - 1];
                bool ready = true;
                for (std::size_t n = 0; n < (all_[s.computation].*needs).count; ++n) {
                    ready = ready && taken[(all_[s.computation].*needs).list[n].computation] != 0;
                }
                last = ready ? &s : last;
            }
            order.push_back(last->computation);
            taken[last->computation] = 1;
            --left[all_[last->computation].row];
        }
        return order;
    }

    /// Each computation in turn at the first gap of its row behind what it needs.
    constexpr lanes packed(std::vector<std::size_t> const& order, neighbours computation::* needs) const
    {
        lanes result(form_.rows.size());
        std::vector<seconds> ends(all_.size(), seconds{-1.0});
        for (auto const c : order) {
            seconds begin{0.0};
            look_up(all_[c].*needs, ends, begin);
            auto& lane = result[all_[c].row];
            auto k = lane.size();
            while (k > 0 && lane[k - 1].end > begin) {
                --k;
            }
            for (; k < lane.size() && begin + all_[c].time > lane[k].begin; ++k) {
                begin = std::max(begin, lane[k].end);
            }
            ends[c] = begin + all_[c].time;
            lane.insert(lane.begin() + static_cast<std::ptrdiff_t>(k), {begin, ends[c], c});
        }
        return result;
    }

    program form_;
    std::vector<computation> all_;
    lanes now_;
};

}  // namespace detail

/// The program, justified at these costs: the same computations on the same ranks, no later. Cost: about its instructions x ranks.
/// @pre complete, acyclic, without transfers and overlapped pairs; costs of every stage, none of its computations for nothing
template <class OnlyWhenCalled = void>
constexpr program justified(program const& p, stage_costs const& costs)
{
    return detail::justifying{p, costs}.run();
}

}  // namespace rheo::inline v0
