#pragma once
// SPDX-License-Identifier: Apache-2.0

// A stage at work: consecutive layers of the model, run on one microbatch at a time by the kernels of a backend (stage_on.hpp). It
// interprets the layers' operation lists and knows nothing of pipelines, messages or recovery. Matrices at its ends are of the
// backend's storage type, in its own memory; what a call has begun is done when the backend is idle.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "executor/stage/activation.hpp"
#include "executor/stage/group_exchange.hpp"
#include "executor/stage/sequence_run.hpp"
#include "executor/state/resident_state.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/tiles.hpp"
#include "rheo/model/layer.hpp"

namespace rheo::inline v0 {

/// Which microbatch of which step is computed, or which slice of it; it keys the random numbers.
struct stage_item {
    std::uint64_t seed;
    step_id step;
    microbatch_id microbatch;
    bool training = true;  ///< false: no dropout, the loss leaves no gradient
    int slice = 0;
    tile_pool* pool = nullptr;                                            ///< on the host: whose threads take the tiles; null: the backend's
    bool remainder = false;                                               ///< of what a loss has left of a step: on a device nothing is recorded for it
    group_exchange* exchange = nullptr;                                   ///< between the members of the stage's group; null where one rank has all shards
    std::function<void(std::span<use_id const>)> const* added = nullptr;  ///< called with the uses that a backward has added to, before each exchange
    std::span<sequence_run const> runs{};                                 ///< not empty: its rows are these, forward only, as many as the stage has or fewer
};

/// A forward and a backward of different items may run at once, each with a pool of its own: they share no scratch memory,
/// and only the backward adds to accumulators. Two backwards of one stage may not.
class stage {
public:
    /// @param layers the stage's own; `first` is the first one's number in the model  @param recompute_levels what each of them drops after its forward and recomputes
    /// before its backward; none: nothing  @param group the ranks that have the shards of its layers, and which of them this one is
    /// @pre `state` holds all tensors of the layers and has the backend `on`; all arguments but `recompute_levels` outlive the stage
    stage(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches, resident_state& state, compute_backend& backend,
          std::span<recompute_level const> recompute_levels = {}, shard_group const& group = {});
    virtual ~stage() = default;

    activation_layout const& layout() const { return layout_; }
    std::int64_t rows() const { return layout_.rows; }
    /// The rows of its input and output that this rank has: all of them, or a group's member's.
    shard_range own_rows() const { return rows_of(group_.run(layers_.front().shards), rows(), layers_.front().shards); }

    // Of a group each member reads and writes its own rows of these, as well as of the gradients at the ends.
    void* input(activation& a) const;               ///< [rows, width of the layer before]; null when the stage reads tokens
    void const* output(activation const& a) const;  ///< [rows, width]; null when the stage ends in the loss
    std::size_t input_bytes() const;
    std::size_t output_bytes() const;

    /// Rows of runs may be at positions up to this one from now on; a stage begins with the tokens of its shape. Waits.
    void reach(std::int64_t positions);

    /// Lends the activation its memory before its forward, which does so itself otherwise.
    void reserve(activation& a);

    /// All layers forward. A stage with the loss adds to `losses`, one for each of its shards or one for all of them: they are there when the backend has
    /// waited. The stage lends the activation its memory, until the end of the backward or release(). Of a cut microbatch slices go up forward and down
    /// backward, each an item with an activation of its own. @pre the slices before are in `a.before`, none of them evicted
    void forward(activation& a, stage_item const& item, std::span<loss_sum> losses);
    void forward(activation& a, stage_item const& item, loss_sum& loss) { forward(a, item, std::span{&loss, 1}); }

    /// The layers from the last down to `lowest`, both gradients; then the stage takes its memory back. `output_gradient` is [rows, width], written over, null at the
    /// loss; `input_gradient` likewise gets the gradient of the input of `lowest`, null when it is not needed.
    /// A use contributes when `adds(use)`.
    void backward(activation& a, stage_item const& item, layer_id lowest, void* output_gradient, void* input_gradient, std::function<bool(use_id)> const& adds);

    /// The backward in two halves, with the bits of the whole one: first the gradients of all inputs down to `lowest`, arguments
    /// as there; what the weights need is kept in the activation.
    void input_gradient(activation& a, stage_item const& item, layer_id lowest, void* output_gradient, void* input_gradient);

    /// Then the contributions of the uses at and above `lowest`, and what was kept is given back. @pre input_gradient with the same
    /// arguments, nothing else on the activation since
    void weight_gradient(activation& a, stage_item const& item, layer_id lowest, std::function<bool(use_id)> const& adds);

    /// Gives back all of an activation but its input, once its output has been sent on. @pre forward
    void evict(activation& a);
    /// Makes it again from the input, with the same bits; the loss is not counted a second time. @pre evict
    void recompute(activation& a, stage_item const& item);
    /// Ends an item that gets no backward: takes back what was lent, if anything.
    void release(activation& a);

    /// Counts what the stage lends from now on, and the inputs of its items in flight; stages of one rank share a meter.
    void count_in(activation_meter& meter) { meter_ = &meter; }
    activation_meter const& meter() const { return *meter_; }

    /// Where its layers recompute what they drop, from now on; stages of one rank share the regions. @pre before the first forward
    void recompute_into(shared_regions& regions)
    {
        regions.fit(layout_.recompute_bytes);
        recompute_buffers_ = &regions;
    }

    /// The uses of the stage's operations with parameters, ascending; the loss is not among them.
    std::vector<use_id> const& uses() const { return uses_; }
    /// The layer of a use is at or above `lowest`.
    bool above(use_id use, layer_id lowest) const { return state_->info().uses[at(use)].layer >= lowest; }
    bool has_loss() const { return !loss_uses_.empty(); }
    std::vector<use_id> const& loss_uses() const { return loss_uses_; }  ///< one for each of its shards
    layer_id first_layer() const { return first_; }
    layer_id last_layer() const { return layer_id{first_.value + static_cast<int>(layers_.size())}; }

    /// The logits of a row that the last forward without training left, [vocabulary]. Waits. @pre has_loss(), the last layer is not recomputed
    std::vector<float> logits(activation const& a, std::int64_t row) const;

protected:
    /// All layers forward. @pre the activation has its memory
    virtual void forward_pass(activation& a, stage_item const& item, std::span<loss_sum> losses) = 0;
    /// From the last layer down to `lowest`; without `adds` the gradients for the weights are kept.
    virtual void backward_pass(activation& a, stage_item const& item, layer_id lowest, void* output_gradient, void* input_gradient,
                               std::function<bool(use_id)> const* adds) = 0;
    /// The contributions to weights, down to `lowest`, from gradients that were kept.
    virtual void weight_gradient_pass(activation& a, stage_item const& item, layer_id lowest, std::function<bool(use_id)> const& adds) = 0;

    std::size_t depth_of(layer_id lowest) const;

    /// What a member of the group gets, or gives, of the stage's memory.
    struct part_of_memory {
        int member;
        std::span<std::byte> data;
    };
    /// Exchanges what lies in the stage's memory, when the backend has computed it. What is empty is no message.
    void exchange(stage_item const& item, exchange_kind kind, std::span<part_of_memory const> out, std::span<part_of_memory const> in);
    /// A member may be lost in what follows: what the backward has added so far is booked.
    group_exchange& begin_exchange(stage_item const& item);
    /// Calls work with a matrix where the processor reads and writes it.
    template <class T, class Work>
    void on_host(T* matrix, std::size_t count, Work const& work)
    {
        backend_->wait();
        if (backend_->has_one_memory()) {
            return work(matrix);
        }
        auto* const copy = reinterpret_cast<T*>(staging_for(count * sizeof(T)));
        backend_->copy(copy, matrix, count * sizeof(T));
        backend_->wait();
        work(copy);
        backend_->copy(matrix, copy, count * sizeof(T));
        backend_->wait();
    }

    std::span<layer_description const> layers_;
    layer_id first_;
    microbatch_shape shape_;
    std::int64_t positions_;  ///< that tables of rotary positions have
    int microbatches_;
    resident_state* state_;
    compute_backend* backend_;
    shard_group group_;
    activation_layout layout_;
    struct used_parameters {
        std::array<tensor_id, 2> tensors{tensor_id{-1}, tensor_id{-1}};
        std::array<use_id, 2> uses{use_id{-1}, use_id{-1}};
    };
    std::vector<std::vector<std::vector<used_parameters>>> parameters_;  ///< layer, shard, operation
    std::vector<use_id> uses_;
    std::vector<use_id> loss_uses_;
    array<std::byte> gradients_;      ///< of the slots of one layer at a time
    array<std::byte> boundaries_[2];  ///< between two layers of the stage
    using rope_key = std::tuple<int, int, rope_scaling>;
    static constexpr rope_key turns_key(op const& o) { return {head_width(o), o.rope_base, o.scaling}; }
    std::map<rope_key, array<float>> turns_;                ///< table of a rope
    std::vector<std::vector<std::size_t>> recomputed_ops_;  ///< layer -> its operations that wrote what it drops
    std::vector<use_id> adding_;                            ///< what the backward at hand has added to since its last exchange
    loss_sum counted_already_;                              ///< by the forward that is recomputed
    shared_regions& buffers_for_recompute() { return *recompute_buffers_; }
    shared_regions exchange_buffers_;  ///< for partial products and statistics of shards

private:
    void make_turns(op const& rope);
    void expect_runs(stage_item const& item) const;
    std::byte* staging_for(std::size_t size);

    array<std::byte> staged_;  ///< of an exchange, where there is more than one memory
    region_pool regions_;
    region_pool gradient_regions_;  ///< for split backwards
    std::unique_ptr<activation_meter> own_meter_ = std::make_unique<activation_meter>();
    activation_meter* meter_ = own_meter_.get();
    std::unique_ptr<shared_regions> own_recompute_buffers_ = std::make_unique<shared_regions>();
    shared_regions* recompute_buffers_ = own_recompute_buffers_.get();
};

}  // namespace rheo::inline v0
