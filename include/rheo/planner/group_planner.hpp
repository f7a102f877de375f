#pragma once
// SPDX-License-Identifier: Apache-2.0

// How pipelines of groups continue when ranks are lost, leave or wait. The choices: ranks that wait take the places of lost ones, or the groups share what
// those had; groups grow; ranks that wait make a pipeline; all pipelines are rebuilt. Of those that survive the most losses, up to f, of nodes and then of
// ranks, the cheapest by the rule of recovery_price.hpp is taken: the step as the planner models it, against the bytes that move. Rebuilt groups have the
// request's degree; a smaller one, whose ranks hold more, only where the planner chose the degree or where it survives more losses.

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "rheo/model/grid.hpp"
#include "rheo/model/model.hpp"
#include "rheo/pipeline/grow_groups.hpp"
#include "rheo/pipeline/membership.hpp"
#include "rheo/pipeline/repair_groups.hpp"
#include "rheo/plan/holdings_under.hpp"
#include "rheo/planner/changed_plan.hpp"
#include "rheo/planner/detail/group_choice.hpp"
#include "rheo/planner/group_prices.hpp"
#include "rheo/planner/make_plan_on.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/reshard/missing_bytes.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// The nodes and spares that the request asks for.
constexpr membership_rules membership_rules_of(planning_request const& request) { return {.node_size = request.node_size, .reserved_spares = request.spares}; }

/// Chooses pipelines of groups: a pure function of its arguments and of what it was made from. Threads may share it.
template <class OnlyWhenCalled = void>
class group_planner {
public:
    /// @param known of the job, without `regroup`  @param ranks at launch
    group_planner(model_description model, planning_request request, replanning known, int ranks)
        : model_{std::move(model)},
          request_{std::move(request)},
          known_{std::move(known)},
          tensors_{joined_by_layers(tensor_bytes_of(known_.state, known_.formats))},
          prices_{make_step_prices(model_, request_, grid_of(model_))},
          ranks_{ranks}
    {
        request_.pipelines.clear();
        request_.layers.clear();
        request_.shares.clear();
        plan_on(numbered_ranks(ranks), degree(), request_.spares, request_.failures);  // cuts its templates
    }

    /// @param before the pipelines in force  @param holdings of all members, ascending by rank  @param leaving members that get no place
    /// @returns why there are no pipelines. Cost: for each degree that of instantiate, once that of its templates, and a model of the step; where ranks
    /// change places, that of plan_reshard
    result<recomposition> operator()(array_view<pipeline_instance const> before, array_view<rank_holdings const> holdings,
                                     array_view<rank_id const> leaving) const
    {
        membership now{before, holdings, detail::ranks_that_stay(holdings, leaving)};
        if (now.staying.empty()) {
            return failure{"no rank stays"};
        }
        auto const all = static_cast<int>(now.staying.size());
        for (auto const& pipeline : before) {
            for (auto const rank : ranks_of(pipeline)) {
                ++(std::binary_search(now.staying.begin(), now.staying.end(), rank) ? now.placed : now.gone);
            }
        }
        now.waiting = all - std::max(std::min(now.placed + now.gone, all), all - request_.spares);
        consider_repairs(now);
        consider_rebuilt(now, degree());
        detail::keep_most_surviving(now.choices, request_.failures);
        bool const survive = !now.choices.empty() && detail::survives(now.choices.front(), request_.failures);
        for (auto smaller = degree() - 1; now.gone > 0 && smaller >= 1 && (request_.tensor.is_chosen || !survive); --smaller) {
            consider_rebuilt(now, smaller);
        }
        if (now.choices.empty()) {
            return failure{std::move(now.error)};
        }
        detail::keep_most_surviving(now.choices, request_.failures);
        auto const& losses = known_.wanted.losses;
        recovery_price const price{time_to_next_loss(losses, all), losses.copy_rate, {}, detail::any_lost(before, holdings)};
        return detail::cheapest(std::move(now.choices), price, [&](detail::group_choice& choice) { place(choice, now); });
    }

private:
    struct membership {
        array_view<pipeline_instance const> before;
        array_view<rank_holdings const> holdings;
        std::vector<rank_id> staying;  ///< ascending
        int placed = 0;                ///< so many of them have a place before
        int gone = 0;                  ///< ranks that had a place and do not stay
        int waiting = 0;               ///< ranks that are to have no place, because they are reserved
        std::vector<detail::group_choice> choices{};
        std::string error{};  ///< why there is none
    };

    void consider_repairs(membership& now) const
    {
        for (auto const fill : {group_filling::all, group_filling::only_empty}) {
            auto repaired = repair_groups(now.before, now.staying, {request_.microbatches, request_.failures, request_.node_size, fill},
                                          [&](pipeline_instance const& pipeline) { return detail::fits_alone(pipeline, model_, request_); });
            if (!repaired) {
                now.error = repaired.error();
                return;
            }
            consider(now, *repaired);
            if (fill == group_filling::all && static_cast<int>(repaired->spares.size()) > now.waiting) {
                consider_growth(now, *repaired);
                consider_more(now, *repaired);
            }
            if (now.gone == 0 || now.placed == std::ssize(now.staying)) {
                return;  // no rank that waits has taken a place
            }
        }
    }

    /// Ranks that wait join groups.
    void consider_growth(membership& now, recomposition next) const
    {
        auto const free = next.spares.end() - now.waiting;
        std::vector<rank_id> const join{next.spares.begin(), free};
        auto left = grow_groups(next.pipelines, join, {degree(), request_.node_size});
        bool const fit = std::all_of(next.pipelines.begin(), next.pipelines.end(),
                                     [&](pipeline_instance const& pipeline) { return detail::fits_alone(pipeline, model_, request_); });
        if (fit && left.size() < join.size()) {
            left.insert(left.end(), free, next.spares.end());
            next.spares = std::move(left);
            consider(now, std::move(next));
        }
    }

    /// Ranks that wait make pipelines beside those that stay.
    void consider_more(membership& now, recomposition const& repaired) const
    {
        auto const free = repaired.spares.end() - now.waiting;
        std::vector<rank_id> const join{repaired.spares.begin(), free};
        auto const made = plan_on(join, degree(), 0, 0);
        if (made && repaired.pipelines.size() + made->plan.pipelines.size() <= static_cast<std::size_t>(request_.microbatches)) {
            auto next = repaired;
            next.pipelines.insert(next.pipelines.end(), made->plan.pipelines.begin(), made->plan.pipelines.end());
            next.spares = made->plan.spares;
            next.spares.insert(next.spares.end(), free, repaired.spares.end());
            consider(now, std::move(next));
        }
    }

    /// All pipelines are rebuilt. Reserved ranks have places if no other choice has f + 1 pipelines.
    void consider_rebuilt(membership& now, int degree) const
    {
        auto made = plan_on(now.staying, degree, now.waiting, request_.failures);
        bool const enough = std::any_of(now.choices.begin(), now.choices.end(), [](auto const& choice) { return !choice.next.degraded; });
        if (now.waiting > 0 && !enough && (!made || made->degraded)) {
            made = plan_on(now.staying, degree, 0, request_.failures);
        }
        if (made) {
            auto next = recomposition_of(made->plan);
            next.rebuilt = true;
            consider(now, std::move(next));
        } else {
            now.error = made.error();
        }
    }

    /// The request's.
    int degree() const { return std::max(request_.tensor.largest(), 1); }

    result<initial_plan> plan_on(std::vector<rank_id> const& ranks, int degree, int spares, int failures) const
    {
        auto request = request_;
        request.tensor.values = {degree};
        request.spares = spares;
        request.failures = failures;
        if (static_cast<int>(ranks.size()) - spares < degree) {
            return failure{"fewer ranks than a group has"};
        }
        if (degree == 1 && request.memory_limit) {
            return make_initial_plan(model_, request, ranks, limit_refusal::limit_only);
        }
        if (degree > 1) {
            return detail::grouped_plan(model_, request, ranks, [&](planning_request const& of_groups, array_view<rank_id const> numbers) {
                return detail::plan_of_templates(templates_of(degree, of_groups), model_, of_groups, numbers, limit_refusal::limit_only);
            });
        }
        return detail::plan_of_templates(templates_of(degree, request), model_, request, ranks, limit_refusal::limit_only);
    }

    template_set_value const& templates_of(int degree, planning_request const& of_groups) const
    {
        auto const& limit = of_groups.memory_limit;
        std::lock_guard const lock{mutex_};
        auto const [place, is_new] = templates_.try_emplace({degree, limit.has_value()});
        if (is_new) {
            place->second = ready_templates(model_, of_groups, ranks_ / degree, limit);
        }
        return place->second;
    }

    void consider(membership& now, recomposition next) const
    {
        next.degraded = static_cast<int>(next.pipelines.size()) < request_.failures + 1;
        if (!next.rebuilt) {
            next.shares = shares_by_speed(next.pipelines, request_.microbatches);
        }
        auto as_plan = detail::plan_of(next.pipelines, next.shares, model_, request_);
        as_plan.spares = next.spares;
        next.time = time_of_step(as_plan, model_, request_, prices_);
        auto const after = holdings_under(as_plan, now.staying, known_.cells_per_layer, known_.optimizer);
        now.choices.push_back({std::move(next), std::move(as_plan), survivability_of(after, tensors_, nodes_of(after, request_.node_size))});
    }

    /// Ranks of rebuilt pipelines change places so that few bytes move. @post choice.next.moved is known
    void place(detail::group_choice& choice, membership const& now) const
    {
        if (choice.next.rebuilt) {
            choice.as_plan = with_fewest_moves(std::move(choice.as_plan), now.staying, now.holdings, known_, membership_rules_of(request_));
            choice.next.pipelines = choice.as_plan.pipelines;
            choice.next.spares = choice.as_plan.spares;
        }
        auto const after = holdings_under(choice.as_plan, now.staying, known_.cells_per_layer, known_.optimizer);
        choice.next.moved = missing_bytes(now.holdings, after, tensors_);
    }

    model_description model_;
    planning_request request_;
    replanning known_;
    std::vector<tensor_bytes> tensors_;
    step_prices prices_;  ///< of groups as large as the grid
    int ranks_;
    mutable std::mutex mutex_;
    mutable std::map<std::pair<int, bool>, template_set_value> templates_;  ///< by degree, and whether memory is limited
};

}  // namespace rheo::inline v0
