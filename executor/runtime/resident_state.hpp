#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a rank has in memory of the job's collection: committed tensors (parameter and moments), the
// accumulators of the step in progress, one per use, and the scales of all tensors. Committed state
// changes only in the update; accumulators only when an operation contributes or a recovery merges.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/tensor/exact_sum.hpp"

namespace rheo::inline v0 {

class tile_pool;

struct tensor_storage {
    std::vector<float> parameter;
    std::vector<float> first_moment;
    std::vector<float> second_moment;
};

/// Exact sums of one use. For the loss: the sum in units of 2^-24 nat, and the number of targets.
struct gradient_accumulator {
    std::vector<std::int64_t> sums;
    accumulator_state state;
    microbatch_id not_finite_at{-1};  ///< the first that made the state not finite
};

class resident_state {
public:
    explicit resident_state(collection const& info) : info_{&info}, tensors_(info.tensors.size()), accumulators_(info.uses.size()), scales(info.tensors.size()) {}

    collection const& info() const { return *info_; }
    tensor_info const& info(tensor_id t) const { return info_->tensors[at(t)]; }

    bool holds(tensor_id t) const { return tensors_[at(t)] != nullptr; }
    tensor_storage& tensor(tensor_id t) { return *tensors_[at(t)]; }
    tensor_storage const& tensor(tensor_id t) const { return *tensors_[at(t)]; }

    /// Makes room for a tensor; its values are whatever the caller puts there.
    tensor_storage& add(tensor_id t);
    void drop(tensor_id t) { tensors_[at(t)] = nullptr; }
    void put(tensor_id t, std::unique_ptr<tensor_storage> storage) { tensors_[at(t)] = std::move(storage); }

    /// The accumulator of a use, made of zeros when it is not there.
    gradient_accumulator& accumulator(use_id use);
    bool has_accumulator(use_id use) const { return accumulators_[at(use)] != nullptr; }
    void drop_accumulator(use_id use) { accumulators_[at(use)] = nullptr; }

    /// Zeroes every accumulator and gives it its tensor's present scale.
    void clear_accumulators(tile_pool& pool);
    void clear_accumulator(use_id use, tile_pool& pool);

    /// Contributions to a tensor's exact sum per step.
    int contributions(tensor_id t, int microbatches) const
    {
        return microbatches * static_cast<int>(info(t).uses.size());
    }

    /// The digest of a held tensor: parameter and moments.
    state_digest digest(tensor_id t) const;

private:
    collection const* info_;
    std::vector<std::unique_ptr<tensor_storage>> tensors_;
    std::vector<std::unique_ptr<gradient_accumulator>> accumulators_;

public:
    std::vector<int> scales;  ///< tensor -> log2 of the scale of its exact sums; the same on every rank
};

/// The first values of a tensor: a function of seed, tensor and element alone.
void initialise(resident_state& state, tensor_id t, std::uint64_t seed, tile_pool& pool);

/// The first values of all parameters that the layers in [first, last) use.
void initialise_layers(resident_state& state, layer_id first, layer_id last, std::uint64_t seed, tile_pool& pool);

}  // namespace rheo::inline v0
