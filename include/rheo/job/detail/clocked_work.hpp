#pragma once
// SPDX-License-Identifier: Apache-2.0

// Times and energies of computations at the clocks of a plan: of a whole step at the clocks that its frontier has, of other work on the same ranks at
// clocks that are carried over, as a run does. Each frontier and each choice of clocks is made once.

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rheo/energy/clocks/carried_clocks.hpp"
#include "rheo/energy/clocks/straggler.hpp"
#include "rheo/energy/profile/profile.hpp"
#include "rheo/energy/profile/stage_profile.hpp"
#include "rheo/job/job_clocks.hpp"
#include "rheo/job/rank_slowness.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/plan_clocks.hpp"
#include "rheo/simulate/played_step/played_step.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// By row of all pipelines, then place in its program; nothing for what is no computation.
struct clocked_work {
    std::vector<std::vector<seconds>> times;
    std::vector<std::vector<joules>> energies;
};

/// What the computations that have ended have drawn.
inline joules drawn_by(clocked_work const& work, played_step<> const& played)
{
    joules sum{};
    for (std::size_t row = 0; row < played.rows.size(); ++row) {
        for (std::size_t place = 0; place < played.rows[row].done; ++place) {
            sum += work.energies[row][place];
        }
    }
    return sum;
}

template <class OnlyWhenCalled = void>
class plan_clock_choices {
public:
    /// @param exchanges of the job's model  @pre the clocks outlive it
    plan_clock_choices(job_clocks const& clocks, group_exchanges exchanges) : clocks_{&clocks}, exchanges_{std::move(exchanges)} {}

    /// @param whole plan of a step  @param work of it, or other work on its ranks
    result<clocked_work> work_of(plan const& whole, modelled_step const& work, bool is_whole, slow_factors const& slow)
    {
        auto const chosen = choose(whole, slow);
        if (!chosen) {
            return failure{"the plan cannot have clocks: " + chosen.error()};
        }
        clocked_work result;
        for (std::size_t i = 0; i < whole.pipelines.size(); ++i) {
            auto const& pipeline = whole.pipelines[i];
            auto const groups = groups_of(pipeline);
            std::vector<double> factors;
            for (auto const& group : groups) {
                factors.push_back(factor_of(slow, group));
            }
            auto stages = profile_of_stages(clocks_->layers, pipeline.cuts);
            if (!stages) {
                return failure{"the plan cannot have clocks: " + stages.error()};
            }
            options_by_kind options{with_own_positions(*std::move(stages), pipeline, factors, exchanges_, clocks_->request.costs.blocking)};
            auto const compute = is_whole ? program{} : program_of_pipeline(whole, i);
            auto const& p = work.pipelines[i].program;
            auto const chain = stages_per_copy(p);
            for (std::size_t row = 0; row < p.rows.size(); ++row) {
                auto clocks = chosen->clocks[i][row];
                if (!is_whole) {
                    clocks = carried_clocks(highest_clocks(compute.rows[row], clocks, chain), p.rows[row], chain);
                }
                if (auto error = add_row(result, p.rows[row], clocks, options, chain, {static_cast<std::int32_t>(row)}, groups[row].size()); !error.empty()) {
                    return failure{std::move(error)};
                }
            }
        }
        return result;
    }

private:
    /// The options of each position, stage and kind, looked up once.
    class options_by_kind {
    public:
        explicit options_by_kind(profile stages) : stages_{std::move(stages)} {}

        /// At the clock; where the plan has none, at the highest. Null: the profile has nothing.
        clock_option const* at(rank_id position, int stage, instruction_kind kind, megahertz const* clock)
        {
            auto [found, is_new] = all_.try_emplace({position.value, stage, kind});
            if (is_new) {
                found->second = options_of(stages_, position, stage_id{stage}, kind);
            }
            clock_option const* best = nullptr;
            for (auto const& option : found->second) {
                if (clock != nullptr && option.clock == *clock) {
                    return &option;
                }
                best = best == nullptr || best->clock < option.clock ? &option : best;
            }
            return best;
        }

    private:
        profile stages_;
        std::map<std::tuple<int, int, instruction_kind>, std::vector<clock_option>> all_;
    };

    static double factor_of(slow_factors const& slow, std::vector<rank_id> const& group)
    {
        double factor = 1.0;
        for (std::size_t r = 0; !slow.empty() && r < group.size(); ++r) {
            factor = std::max(factor, rheo::factor_of(slow, group[r]));
        }
        return factor;
    }

    /// @param ranks of the position  @returns what the profile lacks; empty if nothing
    std::string add_row(clocked_work& result, std::vector<instruction> const& row, std::vector<megahertz> const& clocks, options_by_kind& options, int chain,
                        rank_id position, std::size_t ranks) const
    {
        auto& times = result.times.emplace_back(row.size());
        auto& energies = result.energies.emplace_back(row.size());
        std::size_t next = 0;
        for (std::size_t place = 0; place < row.size(); ++place) {
            auto const i = row[place];
            if (!is_compute(i.kind)) {
                continue;
            }
            auto const* const option = options.at(position, i.stage % chain, i.kind, next < clocks.size() ? &clocks[next] : nullptr);
            ++next;
            if (option == nullptr) {
                return "the clock profile has nothing for " + std::string{profile_name(i.kind)} + " of a stage";
            }
            times[place] = option->time;
            energies[place] = option->energy + clocks_->request.costs.blocking * option->time * static_cast<double>(ranks - 1);
        }
        return {};
    }

    result<chosen_clocks> choose(plan const& whole, slow_factors const& factors)
    {
        std::vector<slow_rank> slow;
        for (std::size_t r = 0; clocks_->answers_slow_ranks && r < factors.size(); ++r) {
            if (factors[r] != 1.0) {
                slow.push_back({rank_id{static_cast<std::int32_t>(r)}, factors[r]});
            }
        }
        std::vector<pipeline_frontier_key> keys;
        std::vector<pipeline_frontier const*> all;
        for (std::size_t i = 0; i < whole.pipelines.size(); ++i) {
            keys.push_back(frontier_key_of(whole, i, array_view<slow_rank const>{slow}, exchanges_.grid));
            auto place = frontiers_.find(keys.back());
            if (place == frontiers_.end()) {
                auto made = make_pipeline_frontier(whole, i, clocks_->layers, clocks_->request, array_view<slow_rank const>{slow}, exchanges_);
                if (!made) {
                    return failure{made.error()};
                }
                place = frontiers_.emplace(keys.back(), *std::move(made)).first;
            }
            all.push_back(&place->second);
        }
        auto known = chosen_.find(keys);
        if (known == chosen_.end()) {
            known = chosen_.emplace(keys, choose_clocks(array_view<pipeline_frontier const* const>{all}, clocks_->request)).first;
        }
        return known->second;
    }

    job_clocks const* clocks_;
    group_exchanges exchanges_;
    std::map<pipeline_frontier_key, pipeline_frontier> frontiers_;
    std::map<std::vector<pipeline_frontier_key>, result<chosen_clocks>> chosen_;
};

}  // namespace detail
}  // namespace rheo::inline v0
