#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything a stage keeps of one item (a microbatch, or a slice of one) between its forward and its
// backward: all slots of its layers and what operations save. A layer's slot 0 is the slot that the layer
// before it gave. Three regions, because they are held for different times: the stage's input from its
// arrival on, also while the rest is evicted; the other slots and what is saved from the forward to the
// backward; and the gradients that a split backward keeps, between its halves. The last two are lent by
// the stage, which uses their memory again. What a layer drops (model/recompute_level.hpp) lies in none of them but in a region that all
// layers of a rank use in turn, forward and, recomputed, backward.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "executor/device/memory.hpp"
#include "kernels/embedding/embedding.hpp"
#include "rheo/model/footprint.hpp"
#include "rheo/model/layer.hpp"
#include "rheo/model/layer_shards.hpp"
#include "rheo/model/recompute_level.hpp"
#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0 {

/// Where slots, saved values and kept gradients lie in the regions of one activation. The input, slot 0 of the first layer, has its own.
/// Slots and gradients are of the storage type; what is saved is computed values, then stored ones. Each shard has a matrix of its own columns; strips of
/// rows, and what is saved of rows, lie in one matrix of all of them.
struct activation_layout {
    /// @param recompute_levels what each of the layers drops; none: nothing
    activation_layout(std::span<layer_description const> layers, microbatch_shape shape, dtype_policy const& policy = fp32, memory& place = host_memory(),
                      std::span<recompute_level const> recompute_levels = {}, shard_group const& group = {});

    /// Of a layer.
    struct places {
        std::vector<std::vector<std::ptrdiff_t>> slots{};      ///< shard, slot -> offset in bytes; -1: it has no memory of its own (see layer_shards)
        std::vector<std::vector<std::ptrdiff_t>> saved{};      ///< shard, operation -> offset in bytes
        std::vector<char> dropped{};                           ///< slot -> it lies in the region for what is recomputed
        std::vector<std::vector<std::ptrdiff_t>> gradients{};  ///< shard, slot -> offset of its kept gradient; -1: not kept
    };

    std::vector<layer_shards> shards;               ///< layer of the stage -> those that this rank computes
    std::vector<places> layers;                     ///< layer of the stage
    std::vector<recompute_level> recompute_levels;  ///< layer of the stage -> what it drops
    std::size_t input_bytes = 0;
    std::size_t memory_bytes = 0;
    std::size_t gradient_bytes = 0;
    std::size_t recompute_bytes = 0;  ///< of the layer that drops most
    std::int64_t rows = 0;
    memory* where;
};

struct activation {
    explicit activation(activation_layout const& layout)
        : input{*layout.where, layout.input_bytes},
          memory{*layout.where},
          gradients{*layout.where},
          tokens(static_cast<std::size_t>(layout.rows)),
          targets(tokens.size())
    {
    }

    array<std::byte> input;
    array<std::byte> memory;            ///< lent from the forward to the end of the backward, not while evicted
    array<std::byte> gradients;         ///< lent between the halves of a split backward
    bool holds_input = false;           ///< from the forward to the end of the backward
    std::vector<activation*> before{};  ///< of the slices before this one, ascending; anyone who cuts sequences sets them
    std::vector<std::int32_t> tokens;   ///< [rows], read by an embedding
    std::vector<std::int32_t> targets;  ///< [rows], read by the loss
    token_order order{};                ///< of the tokens, made by the forward where the backward's kernels want it
};

/// Bytes of activations that a rank holds, over all its stages, and the most it held since the last reset_peak(). Forwards and backwards that run at
/// once share it.
class activation_meter {
public:
    bytes held() const
    {
        std::lock_guard const lock{mutex_};
        return held_;
    }
    bytes peak() const
    {
        std::lock_guard const lock{mutex_};
        return peak_;
    }
    void add(bytes count)
    {
        std::lock_guard const lock{mutex_};
        held_ += count;
        peak_ = std::max(peak_, held_);
    }
    void reset_peak()
    {
        std::lock_guard const lock{mutex_};
        peak_ = held_;
    }

private:
    mutable std::mutex mutex_;
    bytes held_;
    bytes peak_;
};

/// Regions of one size that are lent and come back; one that is lent is never empty.
class region_pool {
public:
    array<std::byte> lend(memory& where, std::size_t size)
    {
        std::lock_guard const lock{mutex_};
        if (free_list_.empty()) {
            ++made_;
            return {where, std::max(size, std::size_t{1})};
        }
        auto region = std::move(free_list_.back());
        free_list_.pop_back();
        return region;
    }
    void take_back(array<std::byte>& region)
    {
        std::lock_guard const lock{mutex_};
        free_list_.push_back(std::move(region));
    }
    /// How many there are, lent ones included.
    std::int64_t made() const
    {
        std::lock_guard const lock{mutex_};
        return made_;
    }

private:
    mutable std::mutex mutex_;
    std::vector<array<std::byte>> free_list_;
    std::int64_t made_ = 0;
};

/// Regions of the size that the largest layer needs, for what lives no longer than a layer is computed (what it recomputes, what its shards exchange): one
/// for the stages of a rank, a second one where a forward runs beside a backward.
class shared_regions {
public:
    void fit(std::size_t size) { size_ = std::max(size_, size); }  ///< @pre none has been lent
    bytes allocated() const { return {regions_.made() * static_cast<std::int64_t>(size_)}; }

    /// So many are there from now on.
    void reserve(memory& where, int count)
    {
        std::vector<array<std::byte>> all;
        for (int i = 0; i < count && size_ > 0; ++i) {
            all.push_back(regions_.lend(where, size_));
        }
        for (auto& one : all) {
            regions_.take_back(one);
        }
    }

    /// One of them while it lives; none of nothing.
    class loan {
    public:
        loan(shared_regions& from, memory& where) : from_{&from}, region_{where}
        {
            if (from.size_ > 0) {
                region_ = from.regions_.lend(where, from.size_);
            }
        }
        ~loan()
        {
            if (!region_.empty()) {
                from_->regions_.take_back(region_);
            }
        }
        loan(loan const&) = delete;
        loan& operator=(loan const&) = delete;
        std::byte* data() { return region_.data(); }

    private:
        shared_regions* from_;
        array<std::byte> region_;
    };

private:
    std::size_t size_ = 0;
    region_pool regions_;
};

}  // namespace rheo::inline v0
