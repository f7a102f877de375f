#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which sizes of pipelines a number of ranks makes, without enumerating multisets of sizes (there are
// 6.8e9 for sizes 8..232 and 256 ranks). Fix a deadline: each size then does a known number of
// microbatches by it, and the most that r ranks can do is a knapsack. The least deadline by which they can
// do the batch is found by bisection, and the knapsack's table then tells which sizes can complete a choice.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "rheo/pipeline/cost.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::detail {

/// The problem, in whole numbers. No more pipelines are made than there are microbatches, unless f + 1 need it.
struct size_problem {
    std::vector<int> sizes{};
    std::vector<cost_in_nanoseconds> costs{};
    int ranks = 0;
    int microbatches = 0;
    int fewest = 0;             ///< pipelines
    int most = 0;               ///< pipelines
    bool idle_allowed = false;  ///< fewer microbatches than the fewest pipelines: some get none
};

/// @pre ready has templates and the ranks are enough for the smallest
template <class OnlyWhenCalled = void>
constexpr size_problem make_size_problem(template_set_value const& ready, int ranks, int failures, int microbatches)
{
    size_problem problem{.ranks = ranks, .microbatches = microbatches};
    for (auto const& shape : ready.templates) {
        problem.sizes.push_back(size(shape));
        problem.costs.push_back(in_nanoseconds(shape.cost));
    }
    expects(are_template_sizes(problem.sizes), "the templates of a set must have distinct sizes, the smallest first");
    problem.fewest = std::min(failures + 1, ranks / problem.sizes.front());
    problem.most = std::max(problem.fewest, microbatches);
    problem.idle_allowed = microbatches < problem.fewest;
    return problem;
}

/// Stays negative when what further pipelines do is added.
inline constexpr std::int64_t not_possible = std::numeric_limits<std::int64_t>::min() / 4;

/// What a pipeline of each size does by the deadline.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::int64_t> done_by_sizes(size_problem const& problem, std::int64_t deadline)
{
    std::vector<std::int64_t> all;
    for (auto const cost : problem.costs) {
        auto const done = std::min<std::int64_t>(problem.microbatches, done_by(cost, deadline));
        all.push_back(done == 0 && !problem.idle_allowed ? not_possible : done);
    }
    return all;
}

/// most_done[j][r]: the most microbatches that exactly j pipelines of exactly r ranks do by the deadline;
/// in an open table the last row stands for that many pipelines or more.
struct size_table {
    bool open;
    std::vector<std::vector<std::int64_t>> most_done;
    std::vector<std::int64_t> done;  ///< by a pipeline of each size of the problem
};

template <class OnlyWhenCalled = void>
constexpr size_table tabulate(size_problem const& problem, std::int64_t deadline, bool open)
{
    auto const rows = static_cast<std::size_t>(open ? problem.fewest : problem.most);
    auto const ranks = static_cast<std::size_t>(problem.ranks);
    size_table table{open, std::vector<std::vector<std::int64_t>>(rows + 1, std::vector<std::int64_t>(ranks + 1, not_possible)),
                     done_by_sizes<OnlyWhenCalled>(problem, deadline)};
    table.most_done[0][0] = 0;
    auto const add = [&](std::vector<std::int64_t> const& from, std::vector<std::int64_t>& row) {  // one more pipeline, size by size
        for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
            auto const n = static_cast<std::size_t>(problem.sizes[i]);
            auto const done = table.done[i];
            for (std::size_t r = n; done >= 0 && r <= ranks; ++r) {
                row[r] = std::max(row[r], from[r - n] + done);
            }
        }
    };
    for (std::size_t j = 1; j <= rows; ++j) {
        auto& row = table.most_done[j];
        add(table.most_done[j - 1], row);
        if (open && j == rows) {
            add(row, row);  // and any more: it looks at what it has just written
        }
        for (auto& done : row) {
            done = done < 0 ? not_possible : done;
        }
    }
    return table;
}

enum class quick_answer : unsigned char { no, yes, unknown };

/// Whether all microbatches are done by the deadline, where that needs no table: not even if ranks could be shared out freely; or by as many pipelines as
/// there can be of the size that does most for its ranks, the rest of the ranks filled up.
template <class OnlyWhenCalled = void>
constexpr quick_answer does_all(size_problem const& problem, std::int64_t deadline)
{
    auto const done = done_by_sizes<OnlyWhenCalled>(problem, deadline);
    auto best = done.size();
    for (std::size_t i = 0; i < done.size(); ++i) {
        best = done[i] > 0 && (best == done.size() || done[i] * problem.sizes[best] > done[best] * problem.sizes[i]) ? i : best;
    }
    if (best == done.size()) {
        return quick_answer::unknown;
    }
    if (done[best] * problem.ranks < std::int64_t{problem.microbatches} * problem.sizes[best]) {
        return quick_answer::no;
    }
    auto made = problem.ranks / problem.sizes[best];
    auto sum = made * done[best];
    auto left = problem.ranks % problem.sizes[best];
    for (std::size_t i = done.size(); i-- > 0;) {
        for (; problem.sizes[i] <= left && done[i] >= 0; left -= problem.sizes[i], ++made) {
            sum += done[i];
        }
    }
    return made >= problem.fewest && sum >= problem.microbatches ? quick_answer::yes : quick_answer::unknown;
}

/// The most that further pipelines can do on exactly `ranks` ranks when `made` pipelines are there.
constexpr std::int64_t most_left(size_table const& table, size_problem const& problem, int made, int ranks)
{
    auto const last = static_cast<int>(table.most_done.size()) - 1;
    auto best = not_possible;
    for (int j = std::max(0, problem.fewest - made); j <= (table.open ? last : last - made); ++j) {
        best = std::max(best, table.most_done[static_cast<std::size_t>(j)][static_cast<std::size_t>(ranks)]);
    }
    return best;
}

/// What is known before sizes are listed: the least deadline, the most ranks used by it, and the table.
struct size_optimum {
    std::int64_t deadline;
    int used;  ///< 0: there is no room for all microbatches, whatever the sizes
    size_table table;
};

/// @pre problem.fewest >= 1 pipelines fit
template <class OnlyWhenCalled = void>
constexpr size_optimum least_deadline(size_problem const& problem)
{
    auto const smallest = problem.costs.front();
    auto cheapest_rank = std::numeric_limits<std::int64_t>::max();  // time per microbatch, if ranks could be shared out freely
    for (std::size_t i = 0; i < problem.sizes.size(); ++i) {
        cheapest_rank = std::min(cheapest_rank, problem.costs[i].per_microbatch * problem.sizes[i]);
    }
    auto const each = (problem.microbatches + problem.fewest - 1) / problem.fewest;
    auto late = time_of(smallest, each);
    bool room = true;  // whether that deadline is feasible; else the one by which everyone has done what it can
    for (auto const& cost : problem.costs) {
        room = room && cost.most >= problem.microbatches;
    }
    for (std::size_t i = 0; !room && i < problem.costs.size(); ++i) {
        late = std::max(late, time_of(problem.costs[i], std::min<std::int64_t>(problem.costs[i].most, problem.microbatches)));
    }
    auto early = std::min(late, cheapest_rank / problem.ranks * problem.microbatches) - 1;
    auto const feasible = [&](size_table const& table) {
        for (int r = problem.ranks; r > 0; --r) {
            if (most_left(table, problem, 0, r) >= problem.microbatches) {
                return r;
            }
        }
        return 0;
    };
    while (late - early > 1) {
        auto const middle = early + (late - early) / 2;
        auto const quick = does_all<OnlyWhenCalled>(problem, middle);
        bool const does = quick == quick_answer::unknown ? feasible(tabulate(problem, middle, true)) > 0 : quick == quick_answer::yes;
        (does ? late : early) = middle;
    }
    auto const open = problem.most >= problem.ranks / problem.sizes.front();
    auto table = tabulate(problem, late, open);
    auto const used = feasible(table);
    return {late, used, std::move(table)};
}

/// Lists multisets of sizes that keep the optimum's deadline and use of ranks, in lexicographic order of
/// `order` (positions in problem.sizes), at most `limit` of them, after at most `effort` steps.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<int>> list_choices(size_problem const& problem, size_optimum const& optimum, std::vector<std::size_t> const& order,
                                                     std::size_t limit, int effort)
{
    std::vector<std::vector<int>> result;
    std::vector<std::size_t> path;  // positions in `order`, not descending
    std::size_t next = 0;
    int left = optimum.used;
    std::int64_t done = 0;
    while (true) {
        if (left == 0) {
            std::vector<int> choice;
            for (auto const p : path) {
                choice.push_back(problem.sizes[order[p]]);
            }
            std::sort(choice.begin(), choice.end());
            result.push_back(choice);
            next = order.size();
        }
        if (result.size() >= limit || (effort <= 0 && !result.empty())) {
            return result;
        }
        bool deeper = false;
        for (; next < order.size() && !deeper; ++next) {
            --effort;
            auto const i = order[next];
            auto const n = problem.sizes[i];
            if (n > left || optimum.table.done[i] < 0) {
                continue;
            }
            auto const rest = most_left(optimum.table, problem, static_cast<int>(path.size()) + 1, left - n);
            if (rest >= 0 && done + optimum.table.done[i] + rest >= problem.microbatches) {
                path.push_back(next);
                left -= n;
                done += optimum.table.done[i];
                deeper = true;
                break;
            }
        }
        if (!deeper) {
            if (path.empty()) {
                return result;
            }
            auto const i = order[path.back()];
            next = path.back() + 1;
            path.pop_back();
            left += problem.sizes[i];
            done -= optimum.table.done[i];
        }
    }
}

}  // namespace rheo::inline v0::detail
