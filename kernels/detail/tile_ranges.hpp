#pragma once
// SPDX-License-Identifier: Apache-2.0

// Cutting a count into equal tiles with a shorter last one, and random words for any run of elements.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>

#include "kernels/detail/loops.hpp"
#include "kernels/dropout/dropout.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/tiles.hpp"

namespace rheo::inline v0::detail {

constexpr std::int64_t tiles_in(std::int64_t count, std::int64_t tile) { return (count + tile - 1) / tile; }

struct element_range {
    std::int64_t begin;
    std::int64_t count;
};

constexpr element_range range_of(std::int64_t t, std::int64_t tile, std::int64_t count)
{
    return {.begin = t * tile, .count = std::min(tile, count - t * tile)};
}

/// Elements of a tile of an elementwise operation: 64 KiB of floats, so that a tile's inputs share a cache.
inline constexpr std::int64_t element_tile = 16384;

// Slots of a worker's scratch memory.
inline constexpr int words_slot = 0;
inline constexpr int product_slot = 1;
inline constexpr int second_product_slot = 2;
inline constexpr int row_slot = 3;
inline constexpr int order_slot = 4;

/// Dropout made ready for the loops.
class dropping {
public:
    explicit dropping(dropout const& drop) : rows_{drop.rows}, threshold_{dropout_threshold(drop)}, scale_{dropout_scale<float>(drop)}
    {
        auto const stream = stream_of(drop.key);
        parts_ = {.key = {stream.key[0], stream.key[1]}, .high = {stream.high[0], stream.high[1]}};
    }

    bool active() const { return threshold_ != 0; }

    /// The rule for one row of an item whose rows are `width` wide.
    drop_rule row_rule(tile_pool& pool, int worker, std::int64_t row, std::int64_t width) const { return rule(pool, worker, rows_(row) * width, width); }

    /// Calls f(first, count, rule) for runs of an item's elements begin .. begin + count - 1 whose numbers follow each other.
    template <class F>
    void for_runs(tile_pool& pool, int worker, element_range elements, std::int64_t width, F&& f) const
    {
        if (rows_.is_all()) {
            f(elements.begin, elements.count, rule(pool, worker, rows_.begin * width + elements.begin, elements.count));
            return;
        }
        for (auto at = elements.begin; at < elements.begin + elements.count;) {
            auto const column = at % width;
            auto const count = std::min(width - column, elements.begin + elements.count - at);
            f(at, count, rule(pool, worker, rows_(at / width) * width + column, count));
            at += count;
        }
    }

    /// The rule for elements first .. first + count - 1, valid until the worker asks again.
    drop_rule rule(tile_pool& pool, int worker, std::int64_t first, std::int64_t count) const
    {
        auto const begin = static_cast<std::uint64_t>(first) / strip_elements;
        auto const end = (static_cast<std::uint64_t>(first + count) + strip_elements - 1) / strip_elements;
        auto const strips = static_cast<std::int64_t>(end - begin);
        auto* words = pool.scratch_of<std::uint32_t>(worker, strips * 64, words_slot);
        loops().random_strips(parts_, begin, strips, words);
        return {.words = words + static_cast<std::uint64_t>(first) % strip_elements, .threshold = threshold_, .scale = scale_};
    }

private:
    row_part rows_;
    std::uint32_t threshold_;
    float scale_;
    stream_parts parts_{};
};

/// Adds runs of one contribution to exact sums; one per tile, merged into the accumulator's state at its end.
template <dtype Accumulate>
class exact_run;
template <dtype Accumulate>
exact_run(gradient_sum_of<Accumulate> const&) -> exact_run<Accumulate>;

template <>
class exact_run<dtype::i64> {
public:
    explicit exact_run(gradient_sum_of<dtype::i64> const& target)
        : target_{target},
          local_{.scale_log2 = target.state->scale_log2},
          limit_{std::bit_cast<std::uint32_t>(overflow_threshold(local_.scale_log2, target.contributions))},
          scale_{power_of_two(local_.scale_log2)}
    {
    }

    void add(std::int64_t first, float const* gradient, std::int64_t count)
    {
        auto const& table = loops();
        std::uint32_t const largest = table.largest_magnitude(count, gradient);
        if (largest < limit_) {
            largest_ = std::max(largest_, largest);
            table.add_fixed(count, gradient, scale_, target_.sums + first);
            return;
        }
        for (std::int64_t i = 0; i < count; ++i) {
            add_contribution(target_.sums[first + i], local_, gradient[i], target_.contributions);
        }
    }

    void merge(std::mutex& mutex)
    {
        local_.max_abs = std::max(local_.max_abs, std::bit_cast<float>(largest_));
        std::lock_guard const lock{mutex};
        auto& state = *target_.state;  // all but its scale, which other tiles read without the lock
        state.max_abs = std::max(state.max_abs, local_.max_abs);
        state.overflow = state.overflow || local_.overflow;
        state.not_finite = state.not_finite || local_.not_finite;
    }

private:
    gradient_sum_of<dtype::i64> target_;
    accumulator_state local_;
    std::uint32_t limit_;
    double scale_;
    std::uint32_t largest_ = 0;
};

/// In 32 bits a run lies in one row, whose state takes the largest size at once: tiles of other threads may have parts of the same row.
template <>
class exact_run<dtype::i32> {
public:
    explicit exact_run(gradient_sum_of<dtype::i32> const& target) : target_{target} {}

    void add(std::int64_t first, float const* gradient, std::int64_t count)
    {
        auto const& table = loops();
        auto& state = target_.states[first / target_.width];
        row_sum_state local{.scale_log2 = state.scale_log2};
        std::uint32_t const largest = table.largest_magnitude(count, gradient);
        if (largest < std::bit_cast<std::uint32_t>(row_overflow_threshold(local.scale_log2, target_.contributions))) {
            local.max_abs = std::bit_cast<float>(largest);
            table.add_fixed_32(count, gradient, power_of_two(local.scale_log2), target_.sums + first);
        } else {
            for (std::int64_t i = 0; i < count; ++i) {
                row_sum_state one{.scale_log2 = local.scale_log2};
                add_contribution(target_.sums[first + i], one, gradient[i], target_.contributions);
                local.max_abs = std::max(local.max_abs, one.max_abs);
            }
        }
        std::atomic_ref shared{state.max_abs};
        for (float known = shared.load(); known < local.max_abs && !shared.compare_exchange_weak(known, local.max_abs);) {
        }
    }

    void merge(std::mutex&) const {}

private:
    gradient_sum_of<dtype::i32> target_;
};

}  // namespace rheo::inline v0::detail
