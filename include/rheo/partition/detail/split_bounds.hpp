#pragma once
// SPDX-License-Identifier: Apache-2.0

// What any choice of cuts of a program's stages takes at least, whatever the rest of it is: for a stage that begins at a layer, for the row of a
// stage, and for all stages behind one. The search over cuts (makespan_search.hpp) prunes by it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rheo/partition/cuts.hpp"
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

template <class OnlyWhenCalled = void>
class split_bounds {
public:
    /// @param nodes whose devices are all used; 0: one device per stage @param held what is held like the program's, with evictions or without
    constexpr split_bounds(stage_prices const& prices, program const& p, int nodes, std::optional<bytes> device_memory, program const& held)
        : prices_{prices},
          program_{p},
          memory_{device_memory},
          layers_{prices.layers()},
          stages_{stages_per_copy(p)},
          per_node_{nodes > 0 ? prices.devices_per_node() : 1},
          all_devices_{nodes > 0 ? nodes * per_node_ : stages_},
          whole_{static_cast<std::size_t>(stages_) == p.rows.size() && p.copies == 1 && p.slices == 1}
    {
        count_items();
        if (memory_) {
            moments_ = held_at_once(held);
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
    }

    constexpr int layers() const { return layers_; }
    constexpr int stages() const { return stages_; }
    constexpr int devices_per_node() const { return per_node_; }
    constexpr int devices() const { return all_devices_; }
    /// Whether each rank has one stage and whole backwards: what is left after a stage's last backward counts, too.
    constexpr bool whole() const { return whole_; }
    /// Instructions of the program.
    constexpr std::int64_t size() const { return size_; }
    /// That each stage runs at least, with all of a microbatch.
    constexpr std::int64_t items() const { return items_; }
    /// The slowest stage that the layers from one on must have.
    constexpr slowest_table const& slowest() const { return slowest_; }
    /// The worst row that they must have. @pre whole()
    constexpr slowest_table const& worst_row() const { return worst_row_; }

    /// Whether the memory of a stage's devices suffices for it.
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

    /// What each of so many stages takes at least for a microbatch, of the layers from `begin` on. `longest`: what none of them may exceed.
    constexpr stage_times least_of_rest(int stages, int begin, std::int64_t longest) const
    {
        auto least = least_[static_cast<std::size_t>(begin)];
        if (per_node_ == 1 && items_ > 0 && longest < no_partition) {
            auto const each = prices_.time({layer_id{begin}, layer_id{layers_}}, 1) - (stages - 1) * longest;
            least.forward = std::max(least.forward, static_cast<std::int64_t>(static_cast<double>(each) * forward_part_ * (1 - 1e-12)));
            least.backward = std::max(least.backward, static_cast<std::int64_t>(static_cast<double>(each) * backward_part_ * (1 - 1e-12)));
        }
        return least;
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

    stage_prices const& prices_;
    program const& program_;
    std::optional<bytes> memory_;
    int layers_;
    int stages_;
    int per_node_;
    int all_devices_;
    bool whole_;                                    ///< one stage per rank and whole backwards: what is left after a stage's last backward counts, too
    std::int64_t size_ = 0;                         ///< instructions of the program
    std::int64_t items_ = 0;                        ///< that each stage runs at least, with all of a microbatch
    std::vector<std::vector<held_items>> moments_;  ///< of each stage, whatever else its rank holds
    std::vector<int> regions_;                      ///< that the rank of each stage has for what is recomputed
    std::vector<std::vector<row_window>> windows_;  ///< of the stages' rows
    slowest_table slowest_;
    slowest_table worst_row_;                 ///< where whole_
    std::vector<stage_times> least_;          ///< layer -> what any stage of the layers from it on takes at least
    std::vector<std::int64_t> least_before_;  ///< layer -> what the layers before it take at least, each on the devices that suit it best
    std::vector<std::int64_t> heaviest_;      ///< layer -> the most that a layer from it on, and what passes before it, takes
    std::vector<double> part_held_;           ///< stages -> the part of the makespan that so many stages can hold as work of a microbatch
    double forward_part_ = 1.0;
    double backward_part_ = 1.0;
};

}  // namespace rheo::inline v0::detail
