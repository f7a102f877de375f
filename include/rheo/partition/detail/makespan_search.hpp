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
#include "rheo/partition/detail/row_bound.hpp"
#include "rheo/partition/detail/slowest_table.hpp"
#include "rheo/partition/optimal.hpp"
#include "rheo/partition/split_makespan.hpp"
#include "rheo/partition/split_memory.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/schedule/check/activations.hpp"
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
        : prices_{prices},
          program_{p},
          held_{held},
          best_{best},
          replay_{p},
          memory_{device_memory},
          layers_{prices.layers()},
          stages_{stages_per_copy(p)},
          per_node_{nodes > 0 ? prices.devices_per_node() : 1},
          all_devices_{nodes > 0 ? nodes * per_node_ : stages_},
          whole_{static_cast<std::size_t>(stages_) == p.rows.size() && p.copies == 1 && p.slices == 1}
    {
        count_items();
        if (memory_) {
            moments_ = held_at_once(held_);
            for (std::size_t stage = 0; stage < moments_.size(); ++stage) {
                int least = 2;
                for (auto s = stage; s < program_.placement.size(); s += moments_.size()) {
                    least = has_overlap(program_, program_.placement[s]) ? least : 1;
                }
                regions_.push_back(least);
            }
        }
        slowest_ = make_slowest_table(prices_, stages_, all_devices_, per_node_,
                                      [this](layer_span span, int devices, int stage) { return fits(span, devices, stage); });
        auto const n = static_cast<std::size_t>(layers_);
        least_.resize(n + 1, {no_partition, no_partition, no_partition, 0});
        for (auto l = n; l-- > 0;) {
            least_[l] = least_[l + 1];
            layer_span const one{layer_id{static_cast<int>(l)}, layer_id{static_cast<int>(l) + 1}};
            for (int d = 1; d <= per_node_; ++d) {
                least_[l].forward = std::min(least_[l].forward, prices_.forward(one, d));
                least_[l].backward = std::min(least_[l].backward, prices_.backward(one, d));
            }
            if (auto const whole = prices_.time(one, 1); whole > 0) {
                forward_part_ = std::min(forward_part_, static_cast<double>(prices_.forward(one, 1)) / static_cast<double>(whole));
                backward_part_ = std::min(backward_part_, static_cast<double>(prices_.backward(one, 1)) / static_cast<double>(whole));
            }
            if (l + 1 < n) {
                least_[l].send_activation = std::min(least_[l].send_activation, prices_.send_from(one));
            }
        }
        least_before_.resize(n + 1, 0);
        for (std::size_t l = 0; l < n; ++l) {
            least_before_[l + 1] = least_before_[l] + least_time(l);
        }
        heaviest_.resize(n + 1, 0);
        for (auto l = n; l-- > 0;) {
            heaviest_[l] = std::max(heaviest_[l + 1], least_before_[l] + items_ * least_time(l));
        }
        if (whole_) {
            for (auto const row : program_.placement) {
                windows_.push_back(windows_of(program_.rows[static_cast<std::size_t>(row)]));
            }
            worst_row_ = make_slowest_table(
                layers_, stages_, all_devices_, per_node_, [this](layer_span span, int d, int stage) { return row_bound(span, d, stage); },
                [this](layer_span span, int d) { return items_ * prices_.time(span, d); });
        }
        part_held_.resize(static_cast<std::size_t>(stages_) + 1, 0.0);
        for (std::size_t s = 1; items_ > 0 && s < part_held_.size(); ++s) {
            part_held_[s] = part_held_[s - 1] + (1.0 - part_held_[s - 1]) / static_cast<double>(items_);
        }
        cuts_.resize(static_cast<std::size_t>(stages_) + 1, layer_id{0});
        devices_.resize(static_cast<std::size_t>(stages_), 1);
        times_.resize(static_cast<std::size_t>(stages_), stage_times{});
    }

    /// Whether any cuts are allowed at all.
    constexpr bool possible() const { return slowest_.of(stages_, 0, all_devices_) != no_partition; }

    /// Improves `best` by all cuts of this program, as far as its effort goes. @pre possible()
    constexpr void run()
    {
        auto start = slowest_.reconstruct(
            [this](layer_span span, int devices, int stage) { return fits(span, devices, stage) ? prices_.time(span, devices) : no_partition; });
        climb(std::move(start.first), std::move(start.second));
        if (whole_) {
            start = worst_row_.reconstruct([this](layer_span span, int devices, int stage) { return row_bound(span, devices, stage); });
            climb(std::move(start.first), std::move(start.second));
        }
        visit(0, 0, all_devices_, 0, 0);
    }

private:
    constexpr std::int64_t least_time(std::size_t layer) const
    {
        layer_span const one{layer_id{static_cast<int>(layer)}, layer_id{static_cast<int>(layer) + 1}};
        auto least = no_partition;
        for (int d = 1; d <= per_node_; ++d) {
            least = std::min(least, prices_.time(one, d));
        }
        return least;
    }

    constexpr bool fits(layer_span span, int devices, int stage) const
    {
        auto const s = static_cast<std::size_t>(stage);
        return !memory_ || prices_.memory(span, devices, moments_[s], program_.slices, regions_[s]) <= *memory_;
    }

    /// What the row of a stage takes at least, with all layers and messages before and behind it at their least. @pre whole_
    constexpr std::int64_t row_bound(layer_span span, int devices, int stage) const
    {
        if (!fits(span, devices, stage)) {
            return no_partition;
        }
        auto const send = stages_ > 1 ? 2 * least_[0].send_activation : 0;
        auto const before = least_before_[at(span.begin)] + stage * send;
        auto const behind = least_before_.back() - least_before_[at(span.end)] + (stages_ - 1 - stage) * send;
        return before + items_ * prices_.time(span, devices) +
               idle_in(windows_[static_cast<std::size_t>(stage)], prices_.forward(span, devices), prices_.backward(span, devices), behind);
    }

    constexpr void count_items()
    {
        std::vector<std::int64_t> forwards(program_.placement.size(), 0);
        for (auto const& row : program_.rows) {
            for (auto const& i : row) {
                forwards[static_cast<std::size_t>(i.stage)] += i.kind == instruction_kind::forward ? 1 : 0;
                size_ += is_compute(i.kind) ? 1 : 0;
                whole_ = whole_ && i.kind != instruction_kind::weight_gradient;
            }
        }
        items_ = program_.slices > 1 ? 0 : *std::min_element(forwards.begin(), forwards.end());
    }

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
        if (stage + 1 < stages_) {
            times_[s + 1].send_gradient = times_[s].send_activation;
        }
    }

    /// Stages from `stage` on, of the layers from `begin` on, at what each takes at least. `longest`: what none of them may
    /// exceed in an answer as good as the best known.
    constexpr void set_rest(int stage, int begin, std::int64_t longest)
    {
        auto const& least = least_[static_cast<std::size_t>(begin)];
        auto forward = least.forward;
        auto backward = least.backward;
        auto const stages = stages_ - stage;
        if (per_node_ == 1 && items_ > 0 && longest < no_partition) {
            auto const each = prices_.time({layer_id{begin}, layer_id{layers_}}, 1) - (stages - 1) * longest;
            forward = std::max(forward, static_cast<std::int64_t>(static_cast<double>(each) * forward_part_ * (1 - 1e-12)));
            backward = std::max(backward, static_cast<std::int64_t>(static_cast<double>(each) * backward_part_ * (1 - 1e-12)));
        }
        for (auto s = static_cast<std::size_t>(stage); s < times_.size(); ++s) {
            times_[s].forward = forward / program_.slices;
            times_[s].backward = backward / program_.slices;
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
        for (int s = 0; s < stages_; ++s) {
            if (!fits(layers_of(cuts, stage_id{s}), devices[static_cast<std::size_t>(s)], s)) {
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

    /// What follows for the layers from `begin` on, still to be cut into `stages` stages, from what passes before and after them: the stage of
    /// any layer runs at least that layer for each microbatch; and no stage can be longer than (T - passed) / items, so T is
    /// at least what lets the stages together hold all layers.
    constexpr std::int64_t rest_bound(int stages, int begin, std::int64_t passed) const
    {
        if (!whole_ || stages == 0) {
            return 0;
        }
        auto const before = least_before_[static_cast<std::size_t>(begin)];
        auto const single = passed - before + heaviest_[static_cast<std::size_t>(begin)];
        auto const together = static_cast<double>(least_before_.back() - before) / part_held_[static_cast<std::size_t>(stages)];
        return std::max(single, passed + static_cast<std::int64_t>(together * (1 - 1e-12)));
    }

    /// All choices of `stage` and those after it, for the layers from `begin` on and so many devices; `head` and `tail` are what a
    /// microbatch takes at least before it reaches the stage and after it has left it.
    constexpr void visit(int stage, int begin, int devices_left, std::int64_t head, std::int64_t tail)
    {
        auto const s = static_cast<std::size_t>(stage);
        auto const left = stages_ - stage - 1;
        bool longer = true;  // whether a longer stage could still do
        for (int end = left == 0 ? layers_ : begin + 1; longer && end + left <= layers_; ++end) {
            layer_span const span{layer_id{begin}, layer_id{end}};
            longer = left == 0;
            for (int d = 1; d <= per_node_ && d <= devices_left; ++d) {
                if (!same_node(devices_left, d, per_node_) || !fits(span, d, stage)) {
                    continue;
                }
                auto bound = head + items_ * prices_.time(span, d) + tail;
                if (bound > best_.makespan) {
                    continue;
                }
                longer = true;
                auto const free = devices_left - (per_node_ > 1 ? d : 1);
                auto const rest = slowest_.of(left, end, free);
                if (rest == no_partition) {
                    continue;
                }
                if (whole_) {
                    bound = std::max({bound, row_bound(span, d, stage), worst_row_.of(left, end, free)});
                }
                cuts_[s + 1] = layer_id{end};
                devices_[s] = d;
                auto const send = left > 0 ? prices_.send_from(span) : 0;
                auto const next_head = head + (program_.slices > 1 ? 0 : prices_.forward(span, d) + (whole_ ? send : 0));
                auto const next_tail = whole_ ? tail + prices_.backward(span, d) + send : 0;
                bound = std::max({bound, next_head + items_ * rest + next_tail, rest_bound(left, end, next_head + next_tail)});
                if (useless(bound, stage)) {
                    continue;
                }
                bool const open = best_.effort < size_;
                if (!open) {
                    best_.effort -= size_;
                    ++best_.explored;
                }
                for (int before = 0; before <= stage; ++before) {
                    set_stage(before, layers_of(cuts_, stage_id{before}), devices_[static_cast<std::size_t>(before)]);
                }
                if (left > 0) {
                    auto const longest = items_ > 0 && best_.makespan < no_partition ? (best_.makespan - next_head - next_tail) / items_ : no_partition;
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
    int layers_;
    int stages_;
    int per_node_;
    int all_devices_;
    bool whole_;              ///< one stage per rank and whole backwards: what is left after a stage's last backward counts, too
    std::int64_t size_ = 0;   ///< instructions of the program
    std::int64_t items_ = 0;  ///< that each stage runs at least, with all of a microbatch
    std::vector<std::vector<held_items>> moments_;  ///< of each stage, whatever else its rank holds
    std::vector<int> regions_;                      ///< that the rank of each stage has for what is recomputed
    std::vector<std::vector<row_window>> windows_;  ///< of the stages' rows
    slowest_table slowest_;
    slowest_table worst_row_;  ///< where whole_
    std::vector<stage_times> least_;  ///< layer -> what any stage of the layers from it on takes at least
    std::vector<std::int64_t> least_before_;  ///< layer -> what the layers before it take at least, each on the devices that suit it best
    std::vector<std::int64_t> heaviest_;  ///< layer -> the most that a layer from it on, and what passes before it, takes
    std::vector<double> part_held_;       ///< stages -> the part of the makespan that so many stages can hold as work of a microbatch
    double forward_part_ = 1.0;
    double backward_part_ = 1.0;
    std::vector<layer_id> cuts_;
    std::vector<int> devices_;
    std::vector<stage_times> times_;
};

}  // namespace rheo::inline v0::detail
