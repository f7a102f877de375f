#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a rank has in memory of the job's collection: committed tensors (parameter and moments), the
// accumulators of the step in progress, one per use, and the scales of all tensors. Committed state
// changes only in the update; accumulators only when an operation contributes or a recovery merges.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "executor/device/backend.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/tensor/exact_sum.hpp"

namespace rheo::inline v0 {

/// The values of a tensor as they travel and lie in files.
struct tensor_values {
    std::vector<float> parameter;
    std::vector<float> first_moment;
    std::vector<float> second_moment;
};

/// A tensor where kernels reach it.
struct tensor_storage {
    state_array parameter;
    state_array first_moment;
    state_array second_moment;
    state_array stored;  ///< the parameter as stages read it in bfloat16, where it is not kept so

    /// What stages in bfloat16 read.
    bfloat16 const* in_bf16() const { return (parameter.type() == dtype::bf16 ? parameter : stored).bfloats().data(); }
};

/// One with nothing in it.
tensor_storage empty_storage(memory& where, dtype type);

/// A copy. Waits.
tensor_values values_of(compute_backend& backend, tensor_storage const& storage);

/// Exact sums of one use: in 64 bits, or in 32 with a state per row. For the loss, always in 64 and where the processor adds to them: the sum in
/// units of 2^-24 nat, and the number of targets.
struct gradient_accumulator {
    array<std::int64_t> sums;
    array<std::int32_t> sums_in_32;
    array<row_sum_state> rows;
    accumulator_state& state;         ///< in resident_state::states(); of rows: the verdict on all of them, whose scale means nothing
    microbatch_id not_finite_at{-1};  ///< the first that made the state not finite
};

class resident_state {
public:
    /// @param backend outlives the state
    resident_state(collection const& info, compute_backend& backend)
        : info_{&info},
          backend_{&backend},
          tensors_(info.tensors.size()),
          accumulators_(info.uses.size()),
          states_{backend.messages(), info.uses.size()},
          fetched_rows_{backend.messages()}
    {
        for (auto const& tensor : info.tensors) {
            first_scale_.push_back(scales.size());
            scales.resize(scales.size() + (sums_in_rows(tensor) ? static_cast<std::size_t>(tensor.shape.rows) : 1));
        }
        first_scale_.push_back(scales.size());
    }

    compute_backend& backend() const { return *backend_; }

    collection const& info() const { return *info_; }
    tensor_info const& info(tensor_id t) const { return info_->tensors[at(t)]; }

    /// The parameter as stages read it.
    bool holds(tensor_id t) const
    {
        auto const& held = tensors_[at(t)];
        return held != nullptr && !(stores_apart() ? held->stored : held->parameter).empty();
    }
    /// What the optimizer has of it, too: with optimizer shards some ranks hold only what stages read.
    bool keeps(tensor_id t) const { return tensors_[at(t)] != nullptr && !tensors_[at(t)]->second_moment.empty(); }
    tensor_storage& tensor(tensor_id t) { return *tensors_[at(t)]; }
    tensor_storage const& tensor(tensor_id t) const { return *tensors_[at(t)]; }

    /// Makes room for a tensor, of zeros. Who writes its parameter says stored() when it is there.
    tensor_storage& add(tensor_id t);
    void drop(tensor_id t) { tensors_[at(t)] = nullptr; }
    /// What optimizer shards divide (plan/optimizer_shards.hpp).
    void drop_optimizer_part(tensor_id t);
    /// What stages read of a parameter.
    state_array& read_by_stages(tensor_id t) { return stores_apart() ? tensor(t).stored : tensor(t).parameter; }
    void put(tensor_id t, tensor_values const& values);
    /// In the backend's own memory; what stages read of all roles is made here. Other roles stay as they are.
    void put(tensor_id t, tensor_storage&& arrived, committed_roles roles = committed_roles::all);
    void stored(tensor_id t);

    /// The accumulator of a use, made of zeros when it is not there.
    gradient_accumulator& accumulator(use_id use);
    bool has_accumulator(use_id use) const { return accumulators_[at(use)] != nullptr; }
    void drop_accumulator(use_id use) { accumulators_[at(use)] = nullptr; }
    /// Of all uses; between two operations of the backend they are true here.
    std::span<accumulator_state> states() { return {states_.data(), states_.size()}; }
    /// The states of the rows of all sums that are here, by use, until the next call; none for the others. Waits once.
    std::vector<std::span<row_sum_state const>> rows_of_all();

    /// Zeroes every accumulator and gives it its tensor's present scale. Waits.
    void clear_accumulators();

    /// Contributions to a tensor's exact sum per step.
    int contributions(tensor_id t, int microbatches) const { return microbatches * static_cast<int>(info(t).uses.size()); }

    /// Where the scales of a tensor's sums are among all: one, or one for each row.
    std::size_t first_scale(tensor_id t) const { return first_scale_[at(t)]; }
    std::span<int const> scales_of(tensor_id t) const { return std::span{scales}.subspan(first_scale(t), first_scale_[at(t) + 1] - first_scale(t)); }
    bool sums_in_rows(tensor_info const& tensor) const { return tensor.is_parameter && backend_->policy().accumulate == dtype::i32; }

    /// The bytes of the sums of one use of a tensor, with the states of rows.
    bytes accumulator_size(tensor_id t) const;

    /// The scales with which a job begins. @param microbatches contributions of a use per step
    void begin_scales(int microbatches);
    /// Those of the next step. @param largest |g| of all contributions, by scale
    void choose_scales(std::span<float const> largest, int microbatches);

    /// Adds the sums of a use that came in a message, and joins their states.
    void merge(use_id use, gradient_accumulator const& arrived);

    /// The digest of a held tensor: parameter and moments. Waits.
    state_digest digest(tensor_id t) const;

private:
    bool stores_apart() const { return backend_->policy().stores_apart(); }
    using row_states = std::vector<std::vector<row_sum_state>>;
    void begin(gradient_accumulator& sums, tensor_id t, row_states& sources);

    collection const* info_;
    compute_backend* backend_;
    std::vector<std::unique_ptr<tensor_storage>> tensors_;
    std::vector<std::unique_ptr<gradient_accumulator>> accumulators_;
    array<accumulator_state> states_;
    array<row_sum_state> fetched_rows_;  ///< where the processor does not address the rows themselves
    std::vector<std::size_t> first_scale_;

public:
    std::vector<int> scales{};  ///< log2 of the scales of exact sums, tensor by tensor (first_scale); the same on every rank
};

/// What the scales of a parameter's exact sums add to the digest of the state. The digest of the state after a step, wherever it is printed or
/// kept, is the sum of this and of resident_state::digest over all parameters; before the first step there are no scales, because that step chooses its own.
state_digest digest_of_scales(std::string_view tensor, std::span<int const> scales);

/// The first values of a tensor: a function of seed, parameter and element alone.
void initialise(resident_state& state, tensor_id t, std::uint64_t seed);

/// The first values of all parameters that the layers in [first, last) use.
void initialise_layers(resident_state& state, layer_id first, layer_id last, std::uint64_t seed);

}  // namespace rheo::inline v0
