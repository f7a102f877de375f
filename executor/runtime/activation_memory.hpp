#pragma once
// SPDX-License-Identifier: Apache-2.0

// The activations of one rank: taken when a forward begins, given back when nothing needs them any more, their memory kept for the
// next one of the same stage. It counts what is in use, so that the peak which a schedule promises can be compared with the
// peak that there was.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "rheo/units/units.hpp"
#include "runtime/stage.hpp"

namespace rheo::inline v0 {

/// The bytes of one activation of the stage.
inline bytes size_of_activation(stage const& of) { return {static_cast<std::int64_t>(of.layout().floats * sizeof(float))}; }

/// The bytes that it has besides between the halves of a split backward.
inline bytes size_of_kept_gradients(stage const& of) { return {static_cast<std::int64_t>(of.layout().gradient_floats * sizeof(float))}; }

class activation_memory {
public:
    std::unique_ptr<activation> take(stage const& of)
    {
        add(size_of_activation(of));
        auto& idle = idle_[&of];
        if (idle.empty()) {
            return std::make_unique<activation>(of.layout());
        }
        auto taken = std::move(idle.back());
        idle.pop_back();
        return taken;
    }

    /// Null is nothing to give back.
    void give_back(stage const& of, std::unique_ptr<activation> what)
    {
        if (what != nullptr) {
            in_use_ -= size_of_activation(of);
            idle_[&of].push_back(std::move(what));
        }
    }

    /// Between an eviction and the recomputation only the input of an item is in use.
    void evict(stage const& of) { in_use_ -= evicted_bytes(of); }
    void compute_again(stage const& of) { add(evicted_bytes(of)); }

    /// The stage keeps gradients of an item from here on, until they are given back; their memory is the stage's.
    void take_gradients(stage const& of) { add(size_of_kept_gradients(of)); }
    void give_gradients_back(stage const& of) { in_use_ -= size_of_kept_gradients(of); }

    /// Everything taken has been given back, but for the gradients of items that were given up between the two halves.
    void nothing_in_use() { in_use_ = {}; }

    bytes in_use() const { return in_use_; }
    bytes peak() const { return peak_; }  ///< since the last reset_peak()
    void reset_peak() { peak_ = in_use_; }

private:
    static bytes evicted_bytes(stage const& of) { return {static_cast<std::int64_t>(of.layout().memory_floats * sizeof(float))}; }

    void add(bytes size)
    {
        in_use_ += size;
        peak_ = std::max(peak_, in_use_);
    }

    std::map<stage const*, std::vector<std::unique_ptr<activation>>> idle_;
    bytes in_use_;
    bytes peak_;
};

}  // namespace rheo::inline v0
