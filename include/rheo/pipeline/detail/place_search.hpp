#pragma once
// SPDX-License-Identifier: Apache-2.0

// The sizes of pipelines and the ranks in their places that cost least, by any price that grows with the time of a step and with the bytes
// moved. Sizes come from the knapsack's table of a deadline, those that can move the fewest bytes first; places are an assignment
// problem, solved exactly, and only where a bound from below says that a choice may be cheaper than the best so far.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "rheo/pipeline/detail/choose_sizes.hpp"
#include "rheo/pipeline/detail/place_costs.hpp"
#include "rheo/pipeline/split_batch.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/reshard/assignment.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0::detail {

/// Above, pipelines that lost no rank keep their places: assigning so many ranks at once takes seconds.
inline constexpr int most_ranks_placed_at_once = 512;

/// A pipeline that all of its ranks survived, which are so many-th of the survivors.
struct whole_pipeline {
    int size;
    std::vector<std::size_t> survivors;
};

/// The costs of all places of pipelines of these sizes: rows are places, pipeline by pipeline, columns these survivors.
template <class OnlyWhenCalled = void>
constexpr assignment_costs costs_of_places(place_costs const& costs, template_set_value const& ready, std::vector<int> const& sizes,
                                           std::vector<std::size_t> const& survivors)
{
    assignment_costs matrix{0, static_cast<int>(survivors.size()), {}};
    for (auto const n : sizes) {
        for (auto const& layers : layers_by_position(template_of_size(ready, n))) {
            for (auto const r : survivors) {
                matrix.values.push_back(costs.of(r, layers));
            }
        }
        matrix.rows += n;
    }
    return matrix;
}

/// Sizes with the survivors in their places.
struct chosen_places {
    std::vector<int> sizes{};  ///< ascending; empty: nothing was found
    std::vector<whole_pipeline> kept{};
    std::vector<int> placed{};             ///< the sizes without those that are kept
    std::vector<std::size_t> survivors{};  ///< that the columns stand for
    seconds step{};
    bytes moved{};
    matching places{};
    assignment_costs matrix{};
};

/// Most choices of sizes that are listed where a deadline leaves several.
inline constexpr std::size_t most_choices = 64;

/// Price: (time of a step, bytes moved) -> seconds.
template <class Price>
struct place_search {
    size_problem const* problem;
    place_costs const* costs;
    template_set_value const* ready;
    Price price;
    seconds quickest;                                          ///< no step is shorter
    seconds to_beat{std::numeric_limits<double>::infinity()};  ///< what is found costs less than this
    std::vector<whole_pipeline> whole{};                       ///< keep their places where a choice has pipelines of their size; none: all ranks are placed
    chosen_places best{};
    std::int64_t work = 0;                           ///< so far; a place beside a survivor is one, cubed
    std::vector<std::vector<std::int64_t>> least{};  ///< by size: what so many pipelines miss at least
    std::vector<std::vector<int>> tried{};

    static constexpr std::int64_t most_work = 1 << 19;
    static constexpr int most_steps = 4096;

    constexpr std::vector<std::int64_t> const& least_of(std::size_t size)
    {
        least.resize(problem->sizes.size());
        if (least[size].empty()) {
            auto const pipelines = problem->ranks / problem->sizes[size];
            least[size] = least_missing(*costs, layers_by_position(ready->templates[size]), std::max(1, pipelines));
        }
        return least[size];
    }

    /// The sizes ascending by bytes missed per rank, so that lists begin with those that fit what is held.
    constexpr std::vector<std::size_t> order_of_sizes()
    {
        std::vector<std::size_t> order;
        for (std::size_t moved = 0; moved < problem->sizes.size(); ++moved) {
            auto place = order.size();
            order.push_back(moved);
            for (; place > 0 && least_of(moved)[1] * problem->sizes[order[place - 1]] < least_of(order[place - 1])[1] * problem->sizes[moved]; --place) {
                order[place] = order[place - 1];
            }
            order[place] = moved;
        }
        return order;
    }

    constexpr bytes least_moved(std::vector<int> const& sizes)
    {
        bytes sum;
        for (std::size_t first = 0; first < sizes.size();) {
            auto last = first;
            while (last < sizes.size() && sizes[last] == sizes[first]) {
                ++last;
            }
            auto const size = std::lower_bound(problem->sizes.begin(), problem->sizes.end(), sizes[first]) - problem->sizes.begin();
            sum += bytes{least_of(static_cast<std::size_t>(size))[last - first]};
            first = last;
        }
        return sum;
    }

    /// Multisets of sizes that end by the deadline and use so many ranks, most of them first.
    constexpr std::vector<std::vector<int>> list(size_optimum within, int fewest_used, std::vector<std::size_t> const& order, std::size_t limit) const
    {
        std::vector<std::vector<int>> choices;
        for (; within.used >= std::max(1, fewest_used) && choices.size() < limit; --within.used) {
            auto more = list_choices(*problem, within, order, limit - choices.size(), most_steps);
            choices.insert(choices.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
        }
        return choices;
    }

    /// Takes out of the sizes the pipelines that stay, and out of the survivors their ranks.
    constexpr chosen_places without_kept(std::vector<int> const& sizes) const
    {
        chosen_places chosen{.sizes = sizes, .placed = sizes};
        std::vector<char> is_kept(costs->survivors, 0);
        for (auto const& pipeline : whole) {
            auto const found = std::lower_bound(chosen.placed.begin(), chosen.placed.end(), pipeline.size);
            if (found == chosen.placed.end() || *found != pipeline.size) {
                continue;
            }
            chosen.placed.erase(found);
            chosen.kept.push_back(pipeline);
            for (auto const survivor : pipeline.survivors) {
                is_kept[survivor] = 1;
            }
        }
        for (std::size_t survivor = 0; survivor < is_kept.size(); ++survivor) {
            if (is_kept[survivor] == 0) {
                chosen.survivors.push_back(survivor);
            }
        }
        return chosen;
    }

    constexpr void place(std::vector<int> const& sizes, seconds step)
    {
        auto chosen = without_kept(sizes);
        chosen.matrix = costs_of_places(*costs, *ready, chosen.placed, chosen.survivors);
        chosen.places = cheapest_matching(chosen.matrix);
        chosen.step = step;
        chosen.moved = bytes{to_assignment(chosen.places, chosen.matrix).cost};
        auto const placed = static_cast<std::int64_t>(chosen.survivors.size());
        work += placed * placed * placed;
        if (auto const cost = price(step, chosen.moved); cost < to_beat) {
            to_beat = cost;
            best = std::move(chosen);
        }
    }

    /// The cheapest of the choices of sizes that the table of a deadline lists, if it costs less than what was found so far.
    /// All that are listed are tried while there are few ranks; one at least, unless there is something to beat.
    constexpr void search(size_optimum const& within, int fewest_used, std::size_t limit)
    {
        constexpr std::int64_t work_of_split = 256;  // of a pipeline
        bool const is_quickest = in_whole_nanoseconds(quickest) >= within.deadline;
        auto const is_open = [&] { return to_beat.count == std::numeric_limits<double>::infinity(); };
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < problem->sizes.size(); ++i) {
            order.push_back(i);
        }
        auto choices = list(within, fewest_used, order, 2);
        if (choices.size() == 1 && is_quickest && is_open()) {
            return place(choices.front(), quickest);
        }
        if (choices.size() > 1) {
            choices = list(within, fewest_used, order_of_sizes(), limit);
        }
        struct bounded_choice {
            bytes least;
            std::vector<int> sizes;
        };
        std::vector<bounded_choice> ranked;
        for (auto& sizes : choices) {
            if (std::find(tried.begin(), tried.end(), sizes) == tried.end()) {
                auto const moved = least_moved(sizes);
                ranked.push_back({moved, std::move(sizes)});
            }
        }
        std::sort(ranked.begin(), ranked.end(), [](auto const& a, auto const& b) { return a.least != b.least ? a.least < b.least : a.sizes < b.sizes; });
        for (auto const& choice : ranked) {
            if (!is_open() && (price(quickest, choice.least) >= to_beat || work >= most_work)) {
                return;
            }
            auto step = quickest;
            if (!is_quickest) {
                step = split_batch(costs_of_sizes(*ready, choice.sizes), problem->microbatches).time;
                work += work_of_split * static_cast<std::int64_t>(choice.sizes.size());
            }
            if (price(step, choice.least) < to_beat) {
                place(choice.sizes, step);
            }
            tried.push_back(choice.sizes);
        }
    }
};

}  // namespace rheo::inline v0::detail
