#pragma once
// SPDX-License-Identifier: Apache-2.0

// Branch and bound over the cuts (and devices) of one program's stages, in lexicographic order. A partial choice is
// pruned by three bounds from below: the slowest stage that the rest must have, the worst row that it must have, and the replay of the program with the
// decided stages at their times and the others at the least that they can take in any answer as good as the best known.
// The search begins from good answers, found by moving single cuts of the partitions with the least slowest stage and with the least worst row.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/partition/detail/replay.hpp"
#include "rheo/partition/detail/split_bounds.hpp"
#include "rheo/partition/optimal.hpp"
#include "rheo/partition/split_makespan.hpp"
#include "rheo/partition/split_memory.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0::detail {

/// The best answer so far, over all programs that are tried, and what was left open.
struct best_split {
    std::int64_t makespan = no_partition;
    std::vector<layer_id> cuts{};
    std::vector<int> devices{};
    int ranks = 0;                     ///< of its program
    std::int64_t open = no_partition;  ///< the least bound of what was not looked at
    std::int64_t effort = 0;           ///< instructions that may still be replayed below a choice
    int explored = 0;                  ///< partial choices whose makespan was computed
};

template <class OnlyWhenCalled = void>
class makespan_search {
public:
    /// @param nodes whose devices are all used; 0: one device per stage @param held what is held like the program's, with evictions or without
    constexpr makespan_search(stage_prices const& prices, program const& p, int nodes, std::optional<bytes> device_memory, program const& held,
                              best_split& best)
        : prices_{prices}, program_{p}, held_{held}, best_{best}, replay_{p}, memory_{device_memory}, bounds_{prices, p, nodes, device_memory, held}
    {
        auto const stages = static_cast<std::size_t>(bounds_.stages());
        cuts_.resize(stages + 1, layer_id{0});
        devices_.resize(stages, 1);
        times_.resize(stages, stage_times{});
    }

    /// Whether any cuts are allowed at all.
    constexpr bool possible() const { return bounds_.slowest().of(bounds_.stages(), 0, bounds_.devices()) != no_partition; }

    /// Improves `best` by all cuts of this program, as far as its effort goes. @pre possible()
    constexpr void run()
    {
        auto start = bounds_.slowest().reconstruct(
            [this](layer_span span, int devices, int stage) { return bounds_.fits(span, devices, stage) ? prices_.time(span, devices) : no_partition; });
        climb(std::move(start.first), std::move(start.second));
        if (bounds_.whole()) {
            start = bounds_.worst_row().reconstruct([this](layer_span span, int devices, int stage) { return bounds_.row_bound(span, devices, stage); });
            climb(std::move(start.first), std::move(start.second));
        }
        visit(0, 0, bounds_.devices(), 0, 0);
    }

private:
    /// Whether all that a rank holds fits; only asked where ranks hold several stages.
    constexpr bool ranks_fit() const
    {
        return !memory_ || program_.placement.size() == program_.rows.size() || fullest_device(prices_, held_, cuts_, devices_) <= *memory_;
    }

    constexpr void set_stage(int stage, layer_span span, int devices)
    {
        auto const s = static_cast<std::size_t>(stage);
        auto const back = times_[s].send_gradient;
        times_[s] = times_of_stage(prices_, program_.slices, span, devices);
        times_[s].send_gradient = back;
        if (stage + 1 < bounds_.stages()) {
            times_[s + 1].send_gradient = times_[s].send_activation;
        }
    }

    /// Stages from `stage` on, of the layers from `begin` on, at what each takes at least. `longest`: what none of them may
    /// exceed in an answer as good as the best known.
    constexpr void set_rest(int stage, int begin, std::int64_t longest)
    {
        auto const least = bounds_.least_of_rest(bounds_.stages() - stage, begin, longest);
        for (auto s = static_cast<std::size_t>(stage); s < times_.size(); ++s) {
            times_[s].forward = least.forward / program_.slices;
            times_[s].backward = least.backward / program_.slices;
            auto const send = s + 1 < times_.size() ? least.send_activation / program_.slices : 0;
            times_[s].send_activation = send;
            if (s + 1 < times_.size()) {
                times_[s + 1].send_gradient = send;
            }
        }
    }

    /// The makespan of these cuts; no_partition when they are not allowed.
    constexpr std::int64_t evaluate(std::vector<layer_id> const& cuts, std::vector<int> const& devices)
    {
        for (int s = 0; s < bounds_.stages(); ++s) {
            if (!bounds_.fits(layers_of(cuts, stage_id{s}), devices[static_cast<std::size_t>(s)], s)) {
                return no_partition;
            }
        }
        times_ = times_of_split(prices_, program_.slices, cuts, devices);
        devices_ = devices;
        cuts_ = cuts;
        return ranks_fit() ? replay_(times_) : no_partition;
    }

    constexpr void take(std::int64_t makespan, std::vector<layer_id> const& cuts, std::vector<int> const& devices)
    {
        if (makespan < best_.makespan ||
            (makespan == best_.makespan && makespan < no_partition && std::pair{cuts, devices} < std::pair{best_.cuts, best_.devices})) {
            best_.makespan = makespan;
            best_.cuts = cuts;
            best_.devices = devices;
            best_.ranks = static_cast<int>(program_.rows.size());
        }
    }

    constexpr void climb(std::vector<layer_id> cuts, std::vector<int> devices)
    {
        auto reached = evaluate(cuts, devices);
        take(reached, cuts, devices);
        bool better = true;
        for (int round = 0; better && round < 32; ++round) {
            better = false;
            for (std::size_t c = 1; c + 1 < cuts.size(); ++c) {
                for (int const move : {-1, 1}) {
                    auto moved = cuts;
                    moved[c].value += move;
                    auto const makespan = are_cuts(moved) ? evaluate(moved, devices) : no_partition;
                    if (makespan < reached) {
                        reached = makespan;
                        cuts = std::move(moved);
                        take(reached, cuts, devices);
                        better = true;
                    }
                }
            }
        }
    }

    /// True when nothing that begins with the cuts up to `stage` can be better, or as good and lexicographically smaller.
    constexpr bool useless(std::int64_t bound, int stage) const
    {
        if (bound != best_.makespan) {
            return bound > best_.makespan;
        }
        for (std::size_t c = 1; c <= static_cast<std::size_t>(stage) + 1 && c < best_.cuts.size(); ++c) {
            if (cuts_[c] != best_.cuts[c]) {
                return cuts_[c] > best_.cuts[c];
            }
        }
        return false;
    }

    /// All choices of `stage` and those after it, for the layers from `begin` on and so many devices; `head` and `tail` are what a
    /// microbatch takes at least before it reaches the stage and after it has left it.
    constexpr void visit(int stage, int begin, int devices_left, std::int64_t head, std::int64_t tail)
    {
        auto const s = static_cast<std::size_t>(stage);
        auto const left = bounds_.stages() - stage - 1;
        bool longer = true;  // whether a longer stage could still do
        for (int end = left == 0 ? bounds_.layers() : begin + 1; longer && end + left <= bounds_.layers(); ++end) {
            layer_span const span{layer_id{begin}, layer_id{end}};
            longer = left == 0;
            for (int d = 1; d <= bounds_.devices_per_node() && d <= devices_left; ++d) {
                if (!same_node(devices_left, d, bounds_.devices_per_node()) || !bounds_.fits(span, d, stage)) {
                    continue;
                }
                auto bound = head + bounds_.items() * prices_.time(span, d) + tail;
                if (bound > best_.makespan) {
                    continue;
                }
                longer = true;
                auto const free = devices_left - (bounds_.devices_per_node() > 1 ? d : 1);
                auto const rest = bounds_.slowest().of(left, end, free);
                if (rest == no_partition) {
                    continue;
                }
                if (bounds_.whole()) {
                    bound = std::max({bound, bounds_.row_bound(span, d, stage), bounds_.worst_row().of(left, end, free)});
                }
                cuts_[s + 1] = layer_id{end};
                devices_[s] = d;
                auto const send = left > 0 ? prices_.send_from(span) : 0;
                auto const next_head = head + (program_.slices > 1 ? 0 : prices_.forward(span, d) + (bounds_.whole() ? send : 0));
                auto const next_tail = bounds_.whole() ? tail + prices_.backward(span, d) + send : 0;
                bound = std::max({bound, next_head + bounds_.items() * rest + next_tail, bounds_.rest_bound(left, end, next_head + next_tail)});
                if (useless(bound, stage)) {
                    continue;
                }
                bool const open = best_.effort < bounds_.size();
                if (!open) {
                    best_.effort -= bounds_.size();
                    ++best_.explored;
                }
                for (int before = 0; before <= stage; ++before) {
                    set_stage(before, layers_of(cuts_, stage_id{before}), devices_[static_cast<std::size_t>(before)]);
                }
                if (left > 0) {
                    auto const longest =
                        bounds_.items() > 0 && best_.makespan < no_partition ? (best_.makespan - next_head - next_tail) / bounds_.items() : no_partition;
                    set_rest(stage + 1, end, longest);
                }
                auto const replayed = replay_(times_);
                if (left == 0) {
                    take(ranks_fit() ? replayed : no_partition, cuts_, devices_);
                } else if (bound = std::max(bound, replayed); useless(bound, stage)) {
                    continue;
                } else if (open) {
                    best_.open = std::min(best_.open, bound);
                } else {
                    visit(stage + 1, end, free, next_head, next_tail);
                }
            }
        }
    }

    stage_prices const& prices_;
    program const& program_;
    program const& held_;
    best_split& best_;
    replay<> replay_;
    std::optional<bytes> memory_;
    split_bounds<OnlyWhenCalled> bounds_;
    std::vector<layer_id> cuts_;
    std::vector<int> devices_;
    std::vector<stage_times> times_;
};

}  // namespace rheo::inline v0::detail
