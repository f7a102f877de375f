#pragma once
// SPDX-License-Identifier: Apache-2.0

// Cuts and devices that minimise pipeline_estimate exactly, when a stage may take several devices of a node and any
// number of stages is allowed, at one common number of microbatches. From the back to the front: of what comes after a
// place, T = before + (nb - after) L + 2 sum_after needs only the slowest stage and the sum, as long as the
// slowest stage of all is still to come; once it is chosen, only its time L, which nothing before may exceed, and T so
// far. So each place keeps the answers that no other beats in both, and among equals the lexicographically smallest.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/partition/detail/slowest_table.hpp"
#include "rheo/partition/pipeline_estimate.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct estimate_split {
    std::vector<layer_id> cuts{};  ///< empty when there are none
    std::vector<int> devices{};    ///< per stage
    seconds estimate{};

    friend constexpr bool operator==(estimate_split const&, estimate_split const&) = default;
    constexpr explicit operator bool() const { return !cuts.empty(); }
};

namespace detail {

/// An answer for the last layers on the last devices.
struct estimate_label {
    std::int64_t limit;  ///< the slowest stage so far, or L once it is chosen
    std::int64_t value;  ///< the sum of the stages so far, or T once the slowest is chosen
    std::vector<layer_id> ends;
    std::vector<int> devices;
};

struct estimate_place {
    std::vector<estimate_label> open;    ///< the slowest stage is still to come: smaller limits are better
    std::vector<estimate_label> chosen;  ///< larger limits are better
};

/// Adds an answer unless one is as good in all, and takes out those that it makes useless.
template <class OnlyWhenCalled = void>
constexpr void add_label(std::vector<estimate_label>& labels, estimate_label added, bool larger_is_better)
{
    auto const as_good = [&](estimate_label const& a, estimate_label const& b) {
        return (larger_is_better ? a.limit >= b.limit : a.limit <= b.limit) && a.value <= b.value &&
               (a.ends != b.ends ? a.ends < b.ends : a.devices <= b.devices);
    };
    for (auto const& label : labels) {
        if (as_good(label, added)) {
            return;
        }
    }
    std::erase_if(labels, [&](auto const& label) { return as_good(added, label); });
    labels.push_back(std::move(added));
}

template <class OnlyWhenCalled = void>
constexpr estimate_label with_stage(estimate_label const& rest, std::int64_t limit, std::int64_t value, layer_id end, int devices)
{
    estimate_label label{limit, value, {end}, {devices}};
    label.ends.insert(label.ends.end(), rest.ends.begin(), rest.ends.end());
    label.devices.insert(label.devices.end(), rest.devices.begin(), rest.devices.end());
    return label;
}

/// The estimate of the splits with the least slowest stage, the best of all numbers of stages: no optimum is above it.
template <class Rule>
constexpr std::int64_t reachable_estimate(stage_prices const& prices, int nodes, int microbatches, Rule const& allows)
{
    auto best = no_partition;
    auto const all = nodes * prices.devices_per_node();
    for (int stages = nodes; stages <= std::min(all, prices.layers()); ++stages) {
        auto const allowed = [&](layer_span span, int devices, int stage) { return allows(span, devices, stages - stage); };
        auto const table = make_slowest_table(prices, stages, all, prices.devices_per_node(), allowed);
        if (table.of(stages, 0, all) == no_partition) {
            continue;
        }
        auto const [cuts, devices] = table.reconstruct(stage_time(prices, allowed));
        std::vector<std::int64_t> times;
        for (int s = 0; s < stages; ++s) {
            times.push_back(prices.time(layers_of(cuts, stage_id{s}), devices[static_cast<std::size_t>(s)]));
        }
        best = std::min(best, pipeline_estimate(times, microbatches));
    }
    return best;
}

/// Layer -> what the layers before it take at least, each on the devices that suit it best.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::int64_t> least_times_before(stage_prices const& prices)
{
    std::vector<std::int64_t> before{0};
    for (int l = 0; l < prices.layers(); ++l) {
        auto least = no_partition;
        for (int d = 1; d <= prices.devices_per_node(); ++d) {
            least = std::min(least, prices.time({layer_id{l}, layer_id{l + 1}}, d));
        }
        before.push_back(before.back() + least);
    }
    return before;
}

}  // namespace detail

/// The split of all layers over all devices of so many nodes with the least estimate, no stage on more than one node, ties to the
/// lexicographically smallest cuts, then devices. `allows(span, devices, stages_left)` may refuse stages; the stage itself counts.
/// @pre nodes >= 1, microbatches >= 1. Cost: O(layers^2 x devices^2 x devices of a node) times the answers that a place keeps.
template <class Rule>
constexpr estimate_split optimal_estimate(stage_prices const& prices, int nodes, int microbatches, Rule const& allows)
{
    expects(nodes >= 1, "a pipeline takes at least one node");
    expects(microbatches >= 1, "a step needs at least one microbatch");
    auto const layers = prices.layers();
    auto const per_node = prices.devices_per_node();
    auto const all = nodes * per_node;
    auto const width = static_cast<std::size_t>(all) + 1;
    auto const most = detail::reachable_estimate(prices, nodes, microbatches, allows);
    auto const least_before = detail::least_times_before(prices);
    auto const at_least = std::max<std::int64_t>(0, microbatches - std::min(all, layers));  // what the slowest stage counts for
    auto const place = [&](int begin, int used) { return static_cast<std::size_t>(begin) * width + static_cast<std::size_t>(used); };
    std::vector<detail::estimate_place> after(static_cast<std::size_t>(layers + 1) * width);  // with one stage less
    after[place(layers, 0)].open.push_back({-1, 0, {}, {}});
    std::vector<detail::estimate_label> whole;
    for (int stages = 1; stages <= all && stages <= layers; ++stages) {
        std::vector<detail::estimate_place> here(after.size());
        for (int begin = layers - stages; begin >= 0; --begin) {
            for (int used = stages; used <= all; ++used) {
                auto& labels = here[place(begin, used)];
                auto const before = least_before[static_cast<std::size_t>(begin)];
                for (int end = begin + 1; end <= layers; ++end) {
                    layer_span const span{layer_id{begin}, layer_id{end}};
                    for (int d = 1; d <= per_node && d <= used; ++d) {
                        auto const& rest = after[place(end, used - d)];
                        if ((rest.open.empty() && rest.chosen.empty()) || !detail::same_node(used, d, per_node) || !allows(span, d, stages)) {
                            continue;
                        }
                        auto const time = prices.time(span, d);
                        for (auto const& label : rest.open) {
                            auto const limit = std::max(label.limit, time);
                            if (begin > 0 && 2 * (label.value + time) + at_least * limit + before <= most) {
                                add_label(labels.open, with_stage(label, limit, label.value + time, span.end, d), false);
                            }
                            auto const total = (microbatches - (stages - 1)) * time + 2 * label.value;
                            if (time > label.limit && total + before <= most) {
                                add_label(labels.chosen, with_stage(label, time, total, span.end, d), true);
                            }
                        }
                        for (auto const& label : rest.chosen) {
                            if (time <= label.limit && label.value + time + before <= most) {
                                add_label(labels.chosen, with_stage(label, label.limit, label.value + time, span.end, d), true);
                            }
                        }
                    }
                }
            }
        }
        for (auto const& label : here[place(0, all)].chosen) {
            detail::add_label(whole, {0, label.value, label.ends, label.devices}, true);
        }
        after = std::move(here);
    }
    estimate_split answer;
    for (auto& label : whole) {
        auto const time = nanoseconds(static_cast<double>(label.value));
        if (!answer || time < answer.estimate) {
            label.ends.insert(label.ends.begin(), layer_id{0});
            answer = {std::move(label.ends), std::move(label.devices), time};
        }
    }
    return answer;
}

}  // namespace rheo::inline v0
