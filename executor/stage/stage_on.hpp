#pragma once
// SPDX-License-Identifier: Apache-2.0

// A stage on the kernels of a backend. It interprets the operation lists layer by layer: slots, saved values and parameters become pointers,
// and the operations run one by one. A backward is an operation's input gradient and its weight gradient, one after the other or
// at different times; both ways the same kernels get the same arguments. `Kernels` has a function per kernel with the contract's
// arguments, `copy`, and `for_item`, which says what computes an item. One that `has_states` keeps those of accumulators in another memory while
// kernels add to them, between `adds_to` and `added`; one that `joins_gradients` has those of input and weights of a norm, and of weight and bias, in one call; one with `sums_in_rows` judges the rows of every accumulator
// when an item has been added; one that `reads_items` finds an item's values in memory (stage_on_slot.hpp); one that `computes_runs` has rows with bits of their own (sequence_run.hpp). Its storage type and that of its sums, and not its policy, are names here: g++ 12 breaks off at the latter.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "executor/stage/stage.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/dropout/dropout.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/linear/linear.hpp"

namespace rheo::inline v0 {

template <class Kernels>
class stage_on : public stage {
public:
    stage_on(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches, resident_state& state,
             compute_backend& backend, Kernels kernels, std::span<recompute_level const> recompute_levels = {}, shard_group const& group = {})
        : stage{layers, first, shape, microbatches, state, backend, recompute_levels, group}, kernels_{std::move(kernels)}
    {
        for (std::size_t l = 0; l < layers.size(); ++l) {
            for (auto const& o : layers[l].ops) {  // on any grid, each draws for all shards
                if (o.dropout_per_mille > 0) {
                    dropping_.emplace_back(l, o.id);
                }
            }
        }
    }

private:
    using storage = typename Kernels::storage;
    using gradient_target = typename Kernels::gradient_target;
    struct pass;

    void forward_pass(activation& a, stage_item const& item, std::span<loss_sum> losses) override;
    void backward_pass(activation& a, stage_item const& item, layer_id lowest, void* output_gradient, void* input_gradient,
                       std::function<bool(use_id)> const* adds) override;
    void weight_gradient_pass(activation& a, stage_item const& item, layer_id lowest, std::function<bool(use_id)> const& adds) override;

    /// What a backward puts into the queue.
    void walk_down(activation& a, stage_item const& item, layer_id lowest, void* output_gradient, void* input_gradient,
                   std::function<bool(use_id)> const* adds);

    void place_gradients(pass& p, bool keeps);
    static void share_gradients(pass& p);

    void begin_adding()
    {
        if constexpr (Kernels::has_states) {
            for (auto const use : uses_) {
                state_->accumulator(use);  // there before its state is copied
            }
            kernels_.adds_to(state_->states());
        }
    }
    void end_adding()
    {
        if constexpr (Kernels::sums_in_rows) {
            for (auto const use : uses_) {
                auto& sums = state_->accumulator(use);
                auto const tensor = state_->info().uses[at(use)].tensor;
                kernels_.judge({.rows = static_cast<std::int64_t>(sums.rows.size()),
                                .states = sums.rows.data(),
                                .contributions = state_->contributions(tensor, microbatches_ * shape_.slices),
                                .verdict = &sums.state});
            }
        }
        if constexpr (Kernels::has_states) {
            kernels_.added();
        }
    }

    /// Work that adds to accumulators. When it breaks off, because a member was lost in an exchange, their states hold for what has been added.
    template <class Work>
    void while_adding(Work const& work)
    {
        begin_adding();
        adding_.clear();
        try {
            work();
        } catch (...) {
            end_adding();
            backend_->wait();
            adding_.clear();
            throw;
        }
        end_adding();
        adding_.clear();
    }

    enum class pass_kind : std::uint8_t { forward, backward, weight_gradient };
    /// Of a backward; as it stands, of none.
    struct gradient_ends {
        layer_id lowest{-1};
        void const* above = nullptr;
        void const* below = nullptr;
        std::function<bool(use_id)> const* adds = nullptr;
    };
    void begin_item(activation const& a, stage_item const& item, bool with_order)  // of kernels that read items
        requires Kernels::reads_items;
    std::vector<std::uintptr_t> slot_of(pass_kind which, activation& a, stage_item const& item, gradient_ends const& ends)  // the same
        requires Kernels::reads_items;
    template <class Work>
    void perform(pass_kind which, activation& a, stage_item const& item, gradient_ends const& ends, Work const& work);

    Kernels kernels_;
    std::vector<std::pair<std::size_t, op_id>> dropping_;  ///< layer, operation: those with random numbers, in one order
};

/// One layer on one item: the operations of all shards that live here, each on what its shard has.
template <class Kernels>
struct stage_on<Kernels>::pass {
    /// Where what lives no longer than the layer is computed lies.
    struct regions {
        std::byte* recomputed = nullptr;  ///< what the layer drops
        std::byte* exchanged = nullptr;   ///< partial products and statistics of shards
    };

    stage_on& self;
    activation& a;
    stage_item const& item;
    std::size_t layer;
    regions in{};
    std::vector<std::vector<storage*>> gradient{};  ///< shard, slot -> its gradient's memory; of gathered rows in the type that is computed in
    std::vector<std::vector<char>> has{};           ///< shard, slot -> something has been written there
    Kernels by{self.kernels_.for_item(item)};

    using compute = float;

    layer_shards const& all() const { return self.layout_.shards[layer]; }
    activation_layout::places const& places() const { return self.layout_.layers[layer]; }
    std::size_t shards() const { return all().shards.size(); }  ///< that this rank has
    int grid() const { return all().grid(); }
    int members() const { return std::max(1, static_cast<int>(self.group_.members.size())); }
    shard_range run_of(int member) const { return shard_group{self.group_.members, member}.run(grid()); }
    shard_range member_rows(int member) const { return rows_of(run_of(member), rows(), grid()); }
    shard_op const& op_of(std::size_t j, std::size_t o) const { return all().shards[j].ops[o]; }
    slot_form form(int s) const { return all().form(s); }

    template <class T>
    static T* at_offset(array<std::byte>& region, std::ptrdiff_t offset)
    {
        return reinterpret_cast<T*>(region.data() + offset);
    }

    storage* slot(std::size_t j, int s) const
    {
        auto const place = all().place_of(s);
        auto const offset = places().slots[j][static_cast<std::size_t>(place)];
        if (places().dropped[static_cast<std::size_t>(s)] != 0) {
            return reinterpret_cast<storage*>(in.recomputed + offset);
        }
        return layer == 0 && place == 0 ? at_offset<storage>(a.input, 0) : at_offset<storage>(a.memory, offset);
    }
    compute* saved(std::size_t j, std::size_t o) const
    {
        auto const offset = places().saved[j][o];
        return self.layout_.recompute_levels[layer] == recompute_level::full ? reinterpret_cast<compute*>(in.recomputed + offset)
                                                                             : at_offset<compute>(a.memory, offset);
    }
    /// Where a split backward keeps the gradient of a slot; null when it does not.
    storage* kept(std::size_t j, int s) const
    {
        auto const offset = s == no_slot ? -1 : places().gradients[j][static_cast<std::size_t>(all().place_of(s))];
        return offset < 0 ? nullptr : at_offset<storage>(a.gradients, offset);
    }
    storage const* parameter(std::size_t j, std::size_t o, std::size_t i) const
    {
        auto const t = self.parameters_[layer][j][o].tensors[i];
        if (t.value < 0) {
            return nullptr;
        }
        auto const& tensor = self.state_->tensor(t);
        if constexpr (std::is_same_v<storage, float>) {
            return tensor.parameter.floats().data();
        } else {
            return tensor.in_bf16();
        }
    }
    /// @param first_row the row of the item that is the first of the call
    dropout drop(op const& o, std::int64_t first_row) const
    {
        dropout result{.probability = item.training ? o.dropout_per_mille / 1000.0 : 0.0,
                       .key = {item.seed, item.step, item.microbatch, layer_id{self.first_.value + static_cast<int>(layer)}, o.id},
                       .rows = {.length = tokens(), .first = first_token(), .whole = self.shape_.tokens, .begin = first_row}};
        if constexpr (Kernels::reads_items) {
            if (result.probability > 0) {
                result.stream = by.streams() + (std::find(self.dropping_.begin(), self.dropping_.end(), std::pair{layer, o.id}) - self.dropping_.begin());
            }
        }
        return result;
    }
    std::int64_t tokens() const { return slice_tokens(self.shape_); }
    std::int64_t first_token() const { return item.slice * tokens(); }

    /// The qkv of the slices before, and where the gradients of their keys and values are collected.
    earlier_slices<storage const> keys_before(std::size_t j, std::size_t index) const;
    earlier_slices<storage> key_gradients_before(std::size_t j, std::size_t index) const;
    std::ptrdiff_t key_gradients(std::size_t j, std::size_t index) const
    {
        auto const computed = op_of(j, index).own.heads * rows();
        return places().saved[j][index] + (std::is_same_v<storage, float> ? computed * 4 : matrix_bytes(computed, dtype::f32).count);
    }
    std::int64_t rows() const { return item.runs.empty() ? self.layout_.rows : rows_of(item.runs); }
    /// The rows that a shard has of what is computed row by row.
    shard_range strip(std::size_t j) const { return cut_evenly(rows(), all().shards[j].grid, all().shards[j].shard); }

    /// The shard's product, before the sum over all of them.
    compute* partial(std::size_t j, std::int64_t width) const
    {
        return reinterpret_cast<compute*>(in.exchanged + static_cast<std::ptrdiff_t>(j) * matrix_bytes(width * rows(), dtype::f32).count);
    }

    /// An operation of all shards, or an exchange between them.
    void forward(std::size_t index, std::span<loss_sum> losses);
    /// Writes again what the layer dropped, with the same bits.
    void recompute_dropped();

    /// The gradient of what the operation's parameters made, where it is not there already.
    void own_gradient(std::size_t index);
    /// The gradients of what it reads. @pre own_gradient
    void input_gradient(std::size_t index);
    /// The contributions to its parameters. @pre own_gradient
    void weight_gradient(std::size_t index, std::function<bool(use_id)> const& adds);

    storage* gradient_of(std::size_t j, int s) { return gradient[j][static_cast<std::size_t>(s)]; }
    compute* partial_gradient_of(std::size_t j, int s) { return reinterpret_cast<compute*>(gradient[j][static_cast<std::size_t>(s)]); }
    bool has_gradient(std::size_t j, int s) const { return has[j][static_cast<std::size_t>(s)] != 0; }
    void gave(std::size_t j, int s) { has[j][static_cast<std::size_t>(s)] = 1; }
    void all_gave(int s)
    {
        for (std::size_t j = 0; j < shards(); ++j) {
            gave(j, s);
        }
    }

    /// Both at once where the kernels have it so, with the same bits; false: they have not. @pre own_gradient
    bool both_gradients(std::size_t index, std::function<bool(use_id)> const& adds);

    /// Where the contribution of this microbatch to a use goes; no sums when it is not wanted.
    gradient_target target(std::size_t j, std::size_t o, std::size_t i, std::function<bool(use_id)> const& adds) const;

private:
    void operate(std::size_t j, std::size_t index, std::span<loss_sum> losses);
    bool operate_on_runs(op const& o, std::size_t index);
    void linear_forward(std::size_t j, std::size_t index, weight_order order);
    void exchange(std::size_t index);
    void loss_of_shards(std::size_t index, std::span<loss_sum> losses, bool leaves_gradient);

    void input_gradient_of(std::size_t j, std::size_t index);
    void exchange_gradient(std::size_t index);
    void weight_gradient_of(std::size_t j, std::size_t index, std::function<bool(use_id)> const& adds);
    void embedding_weights(std::size_t j, std::size_t index, std::function<bool(use_id)> const& adds);
    void attention_gradient(std::size_t j, std::size_t index);
    void linear_input(std::size_t j, std::size_t index, weight_order order);
    void linear_weights(std::size_t j, std::size_t index, weight_order order, std::function<bool(use_id)> const& adds);
    void rope(op const& o, storage const* from, storage* to, bool back);
    void qk_norm_forward(std::size_t j, std::size_t index);
    void qk_norm_input(std::size_t j, std::size_t index);
    void qk_norm_weights(std::size_t j, std::size_t index, std::function<bool(use_id)> const& adds);
    template <class Part>
    void share_parts(Part const& part_of);
    template <class T>
    void gather(T* matrix, std::int64_t width);
    template <class Part>
    void sum_to_strips(exchange_kind kind, Part const& part_of, compute* room, storage const* bias, std::int64_t width, storage* to);
    template <class Part>
    compute* add_up_node(shard_range node, Part const& part_of, std::int64_t width);
    void collect(std::size_t index, storage* matrix);

    /// What a norm reads and writes on a shard's strip; pointers are at its first row.
    struct norm_place {
        std::int64_t rows, width;
        storage const *gamma, *beta;
        compute *mean, *rstd;
    };
    norm_place norm_at(std::size_t j, std::size_t index) const;
    storage* strip_of(std::size_t j, int s) const { return s == no_slot ? nullptr : slot(j, s) + strip(j).begin * all().width(j, s); }
    storage* strip_gradient(std::size_t j, int s) { return s == no_slot ? nullptr : gradient_of(j, s) + strip(j).begin * all().width(j, s); }
    storage* bypass(std::size_t j, int s) { return has_gradient(j, s) ? strip_gradient(j, s) : nullptr; }

    void norm_forward(std::size_t j, std::size_t index);
    void norm_input_gradient(std::size_t j, std::size_t index);
    void rms_weights(std::size_t j, std::size_t index, std::function<bool(use_id)> const& adds);
    void norm_weights(std::size_t j, std::size_t index, std::function<bool(use_id)> const& adds);
    void both_gradients_of(std::size_t j, std::size_t index, std::function<bool(use_id)> const& adds)  // of kernels that join them
        requires Kernels::joins_gradients;
};

}  // namespace rheo::inline v0
