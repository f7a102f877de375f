#pragma once
// SPDX-License-Identifier: Apache-2.0

// Ranks that compute more slowly than the others. Stages differ, so times cannot be compared as they are: what a layer of each kind takes is fitted to
// all of them, as a quantile regression (Koenker and Bassett 1978) that follows the quicker ranks; who takes much longer than its layers is slow.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "rheo/analyze/distribution.hpp"
#include "rheo/analyze/step/recorded_step.hpp"
#include "rheo/analyze/step/step_class.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What a rank computes of a microbatch.
struct rank_load {
    rank_id rank;
    std::vector<double> layers;  ///< of each kind
    seconds time{};              ///< of one microbatch on all of its stages, at the highest clock of all ranks

    friend bool operator==(rank_load const&, rank_load const&) = default;
};

/// A rank's time against that of its layers.
struct rank_pace {
    rank_id rank;
    seconds time{};
    seconds expected{};  ///< 0: not known

    friend constexpr bool operator==(rank_pace, rank_pace) = default;
};

/// Slower than expected: 1.3 takes 30 % longer. 1 where nothing is expected.
constexpr double slowness(rank_pace const& pace) { return pace.expected > seconds{} ? pace.time / pace.expected : 1.0; }

/// Nobody is slow by less.
inline constexpr double least_slowness = 1.2;

namespace detail {

/// Solves a system of n <= 8 equations by elimination. @returns false where it has no single solution
template <class OnlyWhenCalled = void>
bool solve(std::vector<std::vector<double>> rows, std::vector<double>& x)
{
    auto const n = rows.size();
    for (std::size_t k = 0; k < n; ++k) {
        auto const pivot = std::max_element(rows.begin() + static_cast<std::ptrdiff_t>(k), rows.end(),
                                            [k](auto const& a, auto const& b) { return std::abs(a[k]) < std::abs(b[k]); });
        if (std::abs((*pivot)[k]) < 1e-9) {
            return false;
        }
        std::swap(rows[k], *pivot);
        for (std::size_t r = 0; r < n; ++r) {
            auto const times = r == k ? 0.0 : rows[r][k] / rows[k][k];
            for (std::size_t c = k; times != 0.0 && c <= n; ++c) {
                rows[r][c] -= times * rows[k][c];
            }
        }
    }
    x.resize(n);
    for (std::size_t k = 0; k < n; ++k) {
        x[k] = rows[k][n] / rows[k][k];
    }
    return true;
}

inline double dot(std::vector<double> const& a, std::vector<double> const& b)
{
    double sum = 0.0;
    for (std::size_t k = 0; k < a.size(); ++k) {
        sum += a[k] * b[k];
    }
    return sum;
}

/// The times of the kinds, at least 0, of least loss: a rank's relative excess costs a quarter, its being early three quarters. The optimum of such a
/// regression goes through as many of the rows as there are unknowns, so all such choices are tried. Ranks of equal layers are one row.
template <class OnlyWhenCalled = void>
class layer_time_fit {
public:
    layer_time_fit(array_view<rank_load const> loads, std::size_t kinds) : kinds_{kinds}
    {
        std::map<std::vector<double>, std::vector<double>> times;
        for (auto const& load : loads) {
            times[load.layers].push_back(load.time.count);
        }
        for (auto const& [layers, of_ranks] : times) {
            rows_.push_back({layers, nth_smallest(of_ranks, of_ranks.size() / 4), static_cast<double>(of_ranks.size())});
        }
        std::stable_sort(rows_.begin(), rows_.end(), [](row const& a, row const& b) { return a.weight > b.weight; });
        rows_.resize(std::min(rows_.size(), most_rows));
    }

    /// Empty where the rows do not determine the times.
    std::vector<double> fit()
    {
        chosen_.clear();
        choose(0);
        return best_;
    }

private:
    struct row {
        std::vector<double> layers;
        double time;
        double weight;
    };
    static constexpr std::size_t most_rows = 24;

    /// Of the rows, and of the kinds that may take no time, which come after them.
    void choose(std::size_t from)
    {
        if (chosen_.size() == kinds_) {
            try_chosen();
            return;
        }
        for (auto next = from; next < rows_.size() + kinds_; ++next) {
            chosen_.push_back(next);
            choose(next + 1);
            chosen_.pop_back();
        }
    }

    void try_chosen()
    {
        std::vector<std::vector<double>> equations;
        for (auto const c : chosen_) {
            std::vector<double> equation(kinds_ + 1, 0.0);
            if (c < rows_.size()) {
                std::copy(rows_[c].layers.begin(), rows_[c].layers.end(), equation.begin());
                equation.back() = rows_[c].time;
            } else {
                equation[c - rows_.size()] = 1.0;
            }
            equations.push_back(std::move(equation));
        }
        std::vector<double> x;
        if (!solve(std::move(equations), x) || std::any_of(x.begin(), x.end(), [](double time) { return time < -1e-12; })) {
            return;
        }
        double loss = 0.0;
        for (auto const& r : rows_) {
            auto const excess = (r.time - dot(r.layers, x)) / r.time;
            loss += r.weight * (excess > 0.0 ? 0.25 * excess : -0.75 * excess);
        }
        if (loss < least_ - 1e-12) {
            least_ = loss;
            best_ = x;
        }
    }

    std::size_t kinds_;
    std::vector<row> rows_;
    std::vector<std::size_t> chosen_;
    std::vector<double> best_;
    double least_ = std::numeric_limits<double>::infinity();
};

template <class OnlyWhenCalled = void>
megahertz highest_clock(array_view<recorded_step const> steps)
{
    megahertz highest{};
    for (auto const& step : steps) {
        for (auto const& row : step.rows) {
            for (auto const& e : row.events) {
                highest = std::max(highest, e.clock);
            }
        }
    }
    return highest;
}

}  // namespace detail

/// What the ranks of a generation compute, their operations at a quantile of their times. A stage's layers are those whose gradients it posts; ranks
/// that share a stage are left out, because it is not recorded how they share it. A rank that a plan runs at a lower clock is not slow: times are taken
/// to be those of clocks. @param kinds of the model's layers, from 0 on. Cost: linear in the events.
template <class OnlyWhenCalled = void>
std::vector<rank_load> loads_of(array_view<recorded_step const> steps, generation_id generation, array_view<int const> kinds, double quantile = 0.5)
{
    using place = std::tuple<rank_id, pipeline_id, stage_id>;
    std::map<std::pair<place, step_class>, std::vector<seconds>> times;
    std::map<place, std::set<std::int32_t>> layers;
    std::map<std::pair<pipeline_id, stage_id>, std::set<rank_id>> holders;
    auto const highest = detail::highest_clock(steps);
    for (auto const& step : steps) {
        if (step.generation != generation || !step.whole) {
            continue;
        }
        for (auto const& row : step.rows) {
            for (auto const& e : row.events) {
                if (!is_instruction(e.activity)) {
                    continue;
                }
                place const at{e.rank, e.pipeline, e.stage};
                if (is_work(class_of(e.activity))) {
                    auto const clock = e.clock > megahertz{} ? e.clock / highest : 1.0;
                    times[{at, class_of(e.activity)}].push_back((e.end - e.start) * clock);
                    holders[{e.pipeline, e.stage}].insert(e.rank);
                } else if (e.activity == activity::post_reduction && e.item >= 0 && static_cast<std::size_t>(e.item) < kinds.size()) {
                    layers[at].insert(e.item);
                }
            }
        }
    }
    auto const count = kinds.empty() ? std::size_t{0} : static_cast<std::size_t>(*std::max_element(kinds.begin(), kinds.end())) + 1;
    std::map<rank_id, rank_load> loads;
    std::set<rank_id> shared;
    for (auto const& [at, of_stage] : layers) {
        auto& load = loads[std::get<rank_id>(at)];
        load.rank = std::get<rank_id>(at);
        load.layers.resize(count);
        for (auto const layer : of_stage) {
            load.layers[static_cast<std::size_t>(kinds[static_cast<std::size_t>(layer)])] += 1.0;
        }
    }
    for (auto const& [stage, ranks] : holders) {
        if (ranks.size() > 1) {
            shared.insert(ranks.begin(), ranks.end());
        }
    }
    for (auto const& [key, all] : times) {
        if (auto const load = loads.find(std::get<rank_id>(key.first)); load != loads.end()) {
            load->second.time += nth_smallest(all, static_cast<std::size_t>(static_cast<double>(all.size() - 1) * quantile));
        }
    }
    std::vector<rank_load> result;
    for (auto& [rank, load] : loads) {
        if (!shared.contains(rank) && load.time > seconds{}) {
            result.push_back(std::move(load));
        }
    }
    return result;
}

/// What a layer of each kind takes forwards and backwards; empty where the ranks' layers do not tell, and with more than six kinds. Cost: for k kinds
/// and r different stages (the 24 that most ranks have) (r + k choose k) fits.
template <class OnlyWhenCalled = void>
std::vector<seconds> layer_times_of(array_view<rank_load const> loads)
{
    auto const kinds = loads.empty() ? std::size_t{0} : loads.front().layers.size();
    std::vector<seconds> times;
    if (kinds > 0 && kinds <= 6) {
        for (auto const time : detail::layer_time_fit<>{loads, kinds}.fit()) {
            times.push_back(seconds{std::max(time, 0.0)});
        }
    }
    return times;
}

/// The pace of each rank, in their order. @param layer_times by kind; empty: nothing is expected
template <class OnlyWhenCalled = void>
std::vector<rank_pace> paces_of(array_view<rank_load const> loads, array_view<seconds const> layer_times)
{
    std::vector<rank_pace> paces;
    for (auto const& load : loads) {
        paces.push_back({load.rank, load.time, {}});
        for (std::size_t k = 0; k < layer_times.size(); ++k) {
            paces.back().expected += layer_times[k] * load.layers[k];
        }
    }
    return paces;
}

/// Those that are slow, the slowest first: beyond least_slowness, and beyond three times the median distance of all ranks from what is expected.
template <class OnlyWhenCalled = void>
std::vector<rank_pace> slow_ranks(array_view<rank_pace const> paces)
{
    std::vector<double> distances;
    for (auto const& pace : paces) {
        distances.push_back(std::abs(slowness(pace) - 1.0));
    }
    auto const usual = distances.empty() ? 0.0 : lower_median(std::move(distances));
    std::vector<rank_pace> slow;
    for (auto const& pace : paces) {
        if (slowness(pace) > std::max(least_slowness, 1.0 + 3.0 * usual)) {
            slow.push_back(pace);
        }
    }
    std::stable_sort(slow.begin(), slow.end(), [](rank_pace const& a, rank_pace const& b) { return slowness(a) > slowness(b); });
    return slow;
}

}  // namespace rheo::inline v0
