// SPDX-License-Identifier: Apache-2.0
#include "executor/clocks/clock_sweep.hpp"

#include <bit>
#include <cstddef>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

void clock_sweep::committed(joules computing, std::size_t clocks)
{
    expects(clocks >= 1, "a device has at least one clock");
    if (ended_) {
        return;
    }
    drawn_ += measures() ? computing : joules{};
    if (++step_ < rule_.settle + rule_.measure) {
        return;
    }
    rises_ = at_ > 0 && drawn_ > before_ ? rises_ + 1 : 0;
    before_ = drawn_;
    drawn_ = {};
    step_ = 0;
    ended_ = rises_ == rule_.rises || at_ + 1 >= clocks;
    at_ += ended_ ? 0 : 1;
}

void sweep_rows::take(megahertz clock, computed_sums const& sums, std::span<layer_id const> cuts, std::span<seconds const> layer_times, bool throttled)
{
    for (auto const& [computation, sum] : sums) {
        auto const span = layers_of(cuts, stage_id{computation.first});
        seconds whole{};
        for (auto l = span.begin; l < span.end; ++l) {
            whole += layer_times[at(l)];
        }
        for (auto l = span.begin; l < span.end; ++l) {
            auto const share = layer_times[at(l)] / whole;
            auto& here = sums_[{l.value, computation.second, -clock.count, throttled ? 1 : 0}];
            here.count += sum.count;
            here.time += share * sum.time;
            here.energy += share * sum.energy;
        }
    }
}

void sweep_rows::waited(seconds time, joules energy)
{
    if (time > seconds{} && energy > joules{}) {
        waiting_.time += time;
        waiting_.energy += energy;
    }
}

std::vector<std::int64_t> sweep_rows::words() const
{
    std::vector<std::int64_t> words{std::bit_cast<std::int64_t>(waiting_.time.count), std::bit_cast<std::int64_t>(waiting_.energy.count)};
    for (auto const& [k, sum] : sums_) {
        words.insert(words.end(), {k.layer, static_cast<std::int64_t>(k.kind), std::bit_cast<std::int64_t>(k.below), k.throttled, sum.count,
                                   std::bit_cast<std::int64_t>(sum.time.count), std::bit_cast<std::int64_t>(sum.energy.count)});
    }
    return words;
}

void sweep_rows::add(std::span<std::int64_t const> words)
{
    expects(words.size() % 7 == 2, "measured rows come in seven words each, after two of waiting");
    waited({std::bit_cast<double>(words[0])}, {std::bit_cast<double>(words[1])});
    for (std::size_t i = 2; i < words.size(); i += 7) {
        auto& here = sums_[{static_cast<int>(words[i]), static_cast<instruction_kind>(words[i + 1]), std::bit_cast<double>(words[i + 2]),
                            static_cast<int>(words[i + 3])}];
        here.count += words[i + 4];
        here.time += seconds{std::bit_cast<double>(words[i + 5])};
        here.energy += joules{std::bit_cast<double>(words[i + 6])};
    }
}

profile sweep_rows::rows() const
{
    profile result;
    result.blocking = blocking();
    for (auto const& [k, sum] : sums_) {
        auto const held = k.throttled == 0 ? sums_.end() : sums_.find({k.layer, k.kind, k.below, 0});
        if (sum.count > 0 && sum.energy > joules{} && sum.time > seconds{} && held == sums_.end()) {
            auto const count = static_cast<double>(sum.count);
            result.rows.push_back({.stage = stage_id{k.layer},
                                   .kind = k.kind,
                                   .clock = {-k.below},
                                   .time = sum.time / count,
                                   .energy = sum.energy / count,
                                   .throttled = k.throttled != 0});
        }
    }
    return result;
}

}  // namespace rheo::inline v0
