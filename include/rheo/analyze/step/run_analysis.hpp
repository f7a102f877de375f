#pragma once
// SPDX-License-Identifier: Apache-2.0

// All steps of a run together: where the ranks' time went, what the steps are as long as, what they would be without a class, the slowest one and why.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/analyze/distribution.hpp"
#include "rheo/analyze/step/bubble.hpp"
#include "rheo/analyze/step/build_graph.hpp"
#include "rheo/analyze/step/message_sizes.hpp"
#include "rheo/analyze/step/recorded_step.hpp"
#include "rheo/analyze/step/step_account.hpp"
#include "rheo/analyze/step/step_class.hpp"
#include "rheo/analyze/step/step_graph.hpp"
#include "rheo/analyze/step/step_replay.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A rank over all steps.
struct rank_steps {
    rank_record record;
    std::int64_t steps = 0;
    class_times times{};    ///< in steps
    seconds critical{};     ///< of its operations on critical paths
    seconds slack{};        ///< by how much all of its operations could have ended later, added up over the steps
    std::int64_t last = 0;  ///< steps in which it was the last one to come to the vote
};

/// Messages of one rank to another that were waited for.
struct link_waits {
    rank_id from;
    rank_id to;
    std::int64_t messages = 0;  ///< all of them
    std::int64_t waited = 0;    ///< that came after they were needed
    seconds exposed{};          ///< from when sender and receiver were there
    bytes largest{};            ///< message; 0: not known

    friend constexpr bool operator==(link_waits const&, link_waits const&) = default;
};

/// What a rank spent more time on than in the median step of its generation.
struct grown_time {
    rank_id rank;
    step_class in;
    seconds by;

    friend constexpr bool operator==(grown_time const&, grown_time const&) = default;
};

struct slowest_step {
    generation_id generation;
    step_id step;
    attempt_id attempt;
    seconds time;
    std::optional<grown_time> because;  ///< nothing where it is not 1 % longer than the median, or no single growth explains half of that

    friend constexpr bool operator==(slowest_step const&, slowest_step const&) = default;
};

struct run_analysis {
    std::vector<rank_steps> ranks;  ///< by rank
    std::int64_t partial = 0;       ///< steps of which a recovery has cut off a part; they are in no figure but the ranks' times
    std::int64_t unmatched = 0;     ///< receives without the record of their send
    std::int64_t stalled = 0;       ///< whole steps longer than three times the median of their generation; of the sums in none but the ranks' times
    seconds stalled_for{};          ///< their length together
    seconds span{};                 ///< of the other whole steps together; the next three are sums over them, too
    class_times critical;           ///< what critical paths consist of
    class_times saved;              ///< by how much the steps would be shorter if a class took no time
    step_breakdown breakdown{};     ///< its idle shares are means by length
    distribution times;             ///< of the whole steps, stalled ones too
    std::optional<slowest_step> slowest;
    std::vector<link_waits> links;  ///< by sender and receiver
    message_sizes sizes;
};

namespace detail {

/// Adds up the steps of a run, one at a time.
template <class OnlyWhenCalled = void>
class run_accountant {
public:
    explicit run_accountant(recorded_run const& run)
    {
        std::map<generation_id, std::vector<seconds>> lengths;
        for (auto const& step : run.steps) {
            if (step.whole) {
                lengths[step.generation].push_back(length_of(step));
            }
        }
        for (auto& [generation, all] : lengths) {
            usual_[generation] = lower_median(std::move(all));
        }
        for (auto const& record : run.ranks) {
            place_of_[record.rank] = run_.ranks.size();
            run_.ranks.push_back({record});
        }
        accounts_.resize(run_.ranks.size());
    }

    void add(recorded_step const& step, step_graph const& graph)
    {
        auto const accounts = accounts_of(graph);
        for (std::size_t r = 0; r < accounts.size(); ++r) {
            auto& rank = run_.ranks[place_of_.at(graph.ranks[r])];
            rank.times += accounts[r];
            ++rank.steps;
        }
        run_.unmatched += graph.unmatched;
        if (!step.whole) {
            ++run_.partial;
            return;
        }
        auto const length = length_of(step);
        for (std::size_t r = 0; r < accounts.size(); ++r) {
            accounts_[place_of_.at(graph.ranks[r])].push_back({lengths_.size(), step.generation, accounts[r]});
        }
        lengths_.push_back({&step, length});
        if (length > usual_.at(step.generation) * 3.0) {
            ++run_.stalled;
            run_.stalled_for += length;
            return;
        }
        run_.span += length;
        auto const path = critical_path_of(graph);
        run_.critical += path.times;
        for (auto const n : path.nodes) {
            if (auto const& node = graph.nodes[n]; node.row != no_step_node) {
                run_.ranks[place_of_.at(graph.ranks[node.row])].critical += node.own;
            }
        }
        add_saved(graph, length);
        add_breakdown(graph, length);
        add_slack(graph);
        add_last(graph);
        add_links(graph);
        messages_.add(graph);
    }

    run_analysis finish()
    {
        for (auto* share : {&run_.breakdown.idle, &run_.breakdown.idle_by_schedule}) {
            *share = run_.span > seconds{} ? *share / run_.span.count : 0.0;
        }
        std::vector<whole_nanoseconds> times;
        for (auto const& [step, length] : lengths_) {
            times.push_back({in_whole_nanoseconds(std::max(length, seconds{}))});
        }
        run_.times = distribution_of(std::move(times));
        find_slowest();
        for (auto const& [ends, waits] : links_) {
            run_.links.push_back(waits);
        }
        run_.sizes = messages_.finish();
        return std::move(run_);
    }

private:
    struct account_of_step {
        std::size_t step;  ///< among the whole ones
        generation_id generation;
        class_times times;
    };

    /// From the first rank's begin to the last one's end.
    static seconds length_of(recorded_step const& step)
    {
        auto begin = step.rows.front().begin;
        auto end = step.rows.front().events.back().end;
        for (auto const& row : step.rows) {
            begin = std::min(begin, row.begin);
            end = std::max(end, row.events.back().end);
        }
        return end - begin;
    }

    void add_links(step_graph const& graph)
    {
        for (auto const& node : graph.nodes) {
            if (node.row == no_step_node || node.awaited == 0 || node.lag_class != step_class::message) {
                continue;
            }
            auto const from = graph.ranks[graph.nodes[graph.awaits_of(node).front()].row];
            auto const to = graph.ranks[node.row];
            auto& link = links_[{from, to}];
            link.from = from;
            link.to = to;
            ++link.messages;
            link.largest = std::max(link.largest, message_size_of(graph, node));
            auto const exposed = wait_of(graph, node).exposed;
            link.waited += exposed > seconds{} ? 1 : 0;
            link.exposed += exposed;
        }
    }

    void add_saved(step_graph const& graph, seconds length)
    {
        class_times there;
        for (auto const& node : graph.nodes) {
            there[node.own_class] += node.own;
            there[node.lag_class] += std::max(node.lag, seconds{});
            there[step_class::host] += node.host;
        }
        for (std::size_t c = 0; c < step_class_count; ++c) {
            run_.saved.of[c] += there.of[c] > seconds{} ? length - span_without(graph, static_cast<step_class>(c)) : seconds{};
        }
    }

    void add_breakdown(step_graph const& graph, seconds length)
    {
        auto const breakdown = breakdown_of(graph);
        run_.breakdown.schedule += breakdown.schedule;
        run_.breakdown.uneven += breakdown.uneven;
        run_.breakdown.vote += breakdown.vote;
        run_.breakdown.reductions += breakdown.reductions;
        run_.breakdown.messages += breakdown.messages;
        run_.breakdown.host += breakdown.host;
        run_.breakdown.idle += length.count * breakdown.idle;
        run_.breakdown.idle_by_schedule += length.count * breakdown.idle_by_schedule;
    }

    void add_slack(step_graph const& graph)
    {
        auto const slack = slack_of(graph);
        std::vector<seconds> least(graph.ranks.size(), seconds{std::numeric_limits<double>::infinity()});
        for (std::size_t n = 0; n < slack.size(); ++n) {
            if (auto const& node = graph.nodes[n]; node.row != no_step_node && is_work(node.own_class)) {
                least[node.row] = std::min(least[node.row], slack[n]);
            }
        }
        for (std::size_t r = 0; r < least.size(); ++r) {
            if (least[r] < seconds{std::numeric_limits<double>::infinity()}) {
                run_.ranks[place_of_.at(graph.ranks[r])].slack += least[r];
            }
        }
    }

    void add_last(step_graph const& graph)
    {
        step_node const* last = nullptr;  // before a vote
        for (auto const& node : graph.nodes) {
            if (node.own_class == step_class::vote && node.before != no_step_node) {
                auto const& before = graph.nodes[node.before];
                last = last == nullptr || !(before.end < last->end) ? &before : last;
            }
        }
        if (last != nullptr) {
            ++run_.ranks[place_of_.at(graph.ranks[last->row])].last;
        }
    }

    void find_slowest()
    {
        if (lengths_.empty()) {
            return;
        }
        auto const shorter = [](auto const& a, auto const& b) { return a.second < b.second; };
        auto const most = std::max_element(lengths_.begin(), lengths_.end(), shorter);
        auto const& step = *most->first;
        run_.slowest = slowest_step{step.generation, step.step, step.attempt, most->second, std::nullopt};
        auto const longer = most->second - usual_.at(step.generation);
        std::optional<grown_time> grown;
        for (std::size_t place = 0; place < accounts_.size(); ++place) {
            add_growth(grown, place, static_cast<std::size_t>(most - lengths_.begin()));
        }
        if (grown && longer > usual_.at(step.generation) / 100.0 && grown->by >= longer / 2.0) {
            run_.slowest->because = grown;
        }
    }

    /// What a rank has more of in a step than in the median one, if that is more than what was found before.
    void add_growth(std::optional<grown_time>& grown, std::size_t place, std::size_t step) const
    {
        auto const& accounts = accounts_[place];
        auto const mine = std::lower_bound(accounts.begin(), accounts.end(), step, [](account_of_step const& a, std::size_t s) { return a.step < s; });
        if (mine == accounts.end() || mine->step != step) {
            return;
        }
        for (std::size_t c = 0; c < step_class_count - 1; ++c) {  // a bubble is somebody else's doing
            std::vector<seconds> usual;
            for (auto const& other : accounts) {
                if (other.generation == mine->generation) {
                    usual.push_back(other.times.of[c]);
                }
            }
            auto const by = mine->times.of[c] - lower_median(std::move(usual));
            if (!grown || by > grown->by) {
                grown = grown_time{run_.ranks[place].record.rank, static_cast<step_class>(c), by};
            }
        }
    }

    run_analysis run_;
    std::map<rank_id, std::size_t> place_of_;
    std::map<generation_id, seconds> usual_;  ///< length of a whole step
    std::map<std::pair<rank_id, rank_id>, link_waits> links_;
    message_accountant<> messages_;
    std::vector<std::vector<account_of_step>> accounts_;             ///< by rank
    std::vector<std::pair<recorded_step const*, seconds>> lengths_;  ///< of the whole steps
};

}  // namespace detail

/// @pre times are within 10^9 s of the launch. @param sends_wait as for graph_of. A refusal names the step whose records contradict each other.
/// Cost: n log n in the events of a step, about twenty passes over it; memory for one step's graph, a few numbers per rank and step, and one for each message and sum that was
/// waited for all the time.
template <class OnlyWhenCalled = void>
result<run_analysis> analyze_run(recorded_run const& run, bool sends_wait = false)
{
    detail::run_accountant<> accountant{run};
    for (auto const& step : run.steps) {
        auto const graph = graph_of(step, sends_wait);
        if (!graph) {
            return failure{graph.error()};
        }
        accountant.add(step, *graph);
    }
    return accountant.finish();
}

}  // namespace rheo::inline v0
