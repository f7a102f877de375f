#pragma once
// SPDX-License-Identifier: Apache-2.0

// Messages by their size: what they cost, and whether their bytes explain what they take. A message that is under way when its receiver comes shows only a
// part of its time; times are those of the messages whose two ends were there before.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "rheo/analyze/distribution.hpp"
#include "rheo/analyze/step/step_class.hpp"
#include "rheo/analyze/step/step_graph.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Messages of one size from one rank to another in one pipeline.
struct sized_messages {
    rank_id from;
    rank_id to;
    pipeline_id pipeline;
    bytes size;
    std::int64_t messages = 0;
    seconds exposed{};   ///< of all of them, from when sender and receiver were there
    seconds typical{};   ///< the median of those that were waited for all the time; 0: none was
    seconds quickest{};  ///< a tenth of these takes no longer

    friend constexpr bool operator==(sized_messages const&, sized_messages const&) = default;
};

/// The messages and sums of a run whose sizes are recorded.
struct message_sizes {
    std::vector<sized_messages> messages;  ///< by sender, receiver, pipeline and size
    bytes_per_second sums{};               ///< rate of the quickest tenth of the reductions that were waited for all the time; 0: not known
};

namespace detail {

/// How long an operation waited for what it awaits.
struct observed_wait {
    seconds exposed;  ///< from when those that it awaits were through
    bool is_whole;    ///< it was ready before they were: that is all that the message or sum took
};

template <class OnlyWhenCalled = void>
observed_wait wait_of(step_graph const& graph, step_node const& node)
{
    auto const ready = (node.before == no_step_node ? graph.begins[node.row] : graph.nodes[node.before].end) + node.host;
    auto const waited = node.end - node.own - ready;
    auto const exposed = std::max(std::min(node.lag, waited), seconds{});
    return {exposed, exposed > seconds{} && waited >= node.lag};
}

/// Of the message that a node awaits, or is an end of where sends wait. Where ranks share a stage a send may go to several receives, or the other way round:
/// what went from one to the other is no more than the smaller one. @pre it awaits a message
template <class OnlyWhenCalled = void>
bytes message_size_of(step_graph const& graph, step_node const& node)
{
    if (class_of(node.event->activity) == step_class::message) {
        return node.event->size;
    }
    auto const awaited = graph.awaits_of(node);  // sends and receives, in turn
    return std::min(graph.nodes[awaited[0]].event->size, graph.nodes[awaited[1]].event->size);
}

/// Adds up the messages of a run, a step at a time.
template <class OnlyWhenCalled = void>
class message_accountant {
public:
    void add(step_graph const& graph)
    {
        for (auto const& node : graph.nodes) {
            if (node.row == no_step_node || node.awaited == 0) {
                continue;
            }
            if (node.lag_class == step_class::message && !is_send(node)) {  // where sends wait, their receives do, too
                add_message(graph, node);
            } else if (node.lag_class == step_class::reduction) {
                add_sum(graph, node);
            }
        }
    }

    message_sizes finish()
    {
        message_sizes result;
        for (auto& [key, seen] : messages_) {
            if (!seen.whole.empty()) {
                seen.all.quickest = nth_smallest(seen.whole, seen.whole.size() / 10);
                seen.all.typical = lower_median(std::move(seen.whole));
            }
            result.messages.push_back(seen.all);
        }
        if (!sums_.empty()) {
            auto const nine_tenths = sums_.size() - 1 - sums_.size() / 10;
            result.sums = nth_smallest(std::move(sums_), nine_tenths);
        }
        return result;
    }

private:
    struct seen_messages {
        sized_messages all;
        std::vector<seconds> whole;
    };

    void add_message(step_graph const& graph, step_node const& node)
    {
        sized_messages const one{graph.ranks[graph.nodes[graph.awaits_of(node).front()].row], graph.ranks[node.row], node.event->pipeline,
                                 message_size_of(graph, node)};
        if (one.size <= bytes{}) {
            return;
        }
        auto& seen = messages_.try_emplace({one.from, one.to, one.pipeline, one.size}, seen_messages{one, {}}).first->second;
        ++seen.all.messages;
        auto const wait = wait_of(graph, node);
        seen.all.exposed += wait.exposed;
        if (wait.is_whole) {
            seen.whole.push_back(wait.exposed);
        }
    }

    /// A sum that one rank has alone is there at once and does not measure a link.
    void add_sum(step_graph const& graph, step_node const& node)
    {
        bool const is_shared = graph.nodes[graph.awaits_of(node).front()].awaited > 1;
        if (auto const wait = wait_of(graph, node); is_shared && wait.is_whole && node.event->size > bytes{}) {
            sums_.push_back({static_cast<double>(node.event->size.count) / wait.exposed.count});
        }
    }

    static bool is_send(step_node const& node) { return node.event->activity == activity::send_activation || node.event->activity == activity::send_gradient; }

    std::map<std::tuple<rank_id, rank_id, pipeline_id, bytes>, seen_messages> messages_;
    std::vector<bytes_per_second> sums_;
};

}  // namespace detail

/// Messages so small that what they take is mostly latency.
struct small_messages {
    pipeline_id pipeline;       ///< that waits for them most; what follows is of its messages
    std::int64_t messages = 0;  ///< that are so small
    bytes size{};               ///< the median of them
    seconds each{};             ///< what those take that are waited for most
    seconds by_rate{};          ///< and would take by the best rate that was seen
    seconds exposed{};
    double share = 0;  ///< of such messages of all pipelines in what all messages of known size were exposed

    friend constexpr bool operator==(small_messages const&, small_messages const&) = default;
};

/// No larger message is small.
inline constexpr bytes largest_small_message = kibibytes(64);
/// No network takes longer for a small message: what waits longer waits for something else.
inline constexpr seconds longest_latency = milliseconds(1.0);

/// What a message takes by the best rate that was seen: that of the quickest of its link, or of sums.
constexpr seconds time_by_rate(sized_messages const& m, bytes_per_second sums)
{
    return sums > bytes_per_second{} ? std::min(m.quickest, m.size / sums) : m.quickest;
}

/// True where messages take at least four times as long as their bytes.
constexpr bool is_mostly_latency(sized_messages const& m, bytes_per_second sums)
{
    return m.size < largest_small_message && m.typical > seconds{} && m.typical < longest_latency && m.typical >= time_by_rate(m, sums) * 4.0;
}

namespace detail {

/// @pre they are of one pipeline, and there are some
template <class OnlyWhenCalled = void>
small_messages sum_of(std::vector<sized_messages> of, bytes_per_second sums)
{
    std::sort(of.begin(), of.end(), [](auto const& a, auto const& b) { return a.size < b.size; });
    auto const& longest = *std::max_element(of.begin(), of.end(), [](auto const& a, auto const& b) { return a.exposed < b.exposed; });
    small_messages all{.pipeline = longest.pipeline, .each = longest.typical, .by_rate = time_by_rate(longest, sums)};
    for (auto const& m : of) {
        all.messages += m.messages;
        all.exposed += m.exposed;
    }
    std::int64_t before = 0;
    for (auto const& m : of) {
        all.size = before * 2 < all.messages ? m.size : all.size;
        before += m.messages;
    }
    return all;
}

}  // namespace detail

/// The small messages of the pipeline that waits for its own most; nothing where they are not the larger part of what is waited for.
template <class OnlyWhenCalled = void>
std::optional<small_messages> small_messages_of(message_sizes const& sizes)
{
    seconds all{};
    seconds small{};
    std::map<pipeline_id, std::vector<sized_messages>> by_pipeline;
    for (auto const& m : sizes.messages) {
        all += m.exposed;
        if (is_mostly_latency(m, sizes.sums)) {
            small += m.exposed;
            by_pipeline[m.pipeline].push_back(m);
        }
    }
    if (!(small * 2.0 > all)) {
        return std::nullopt;
    }
    std::optional<small_messages> most;
    for (auto const& [pipeline, of] : by_pipeline) {
        auto const here = detail::sum_of(of, sizes.sums);
        most = !most || here.exposed > most->exposed ? here : most;
    }
    most->share = small / all;
    return most;
}

}  // namespace rheo::inline v0
