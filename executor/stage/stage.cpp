// SPDX-License-Identifier: Apache-2.0
#include "executor/stage/stage.hpp"

#include <algorithm>
#include <utility>

#include "kernels/attention/attention.hpp"
#include "kernels/rope/rope.hpp"
#include "rheo/model/backward_workspace.hpp"
#include "rheo/model/state.hpp"

namespace rheo::inline v0 {

namespace {

bytes counted(std::size_t count) { return {static_cast<std::int64_t>(count)}; }

}  // namespace

stage::stage(std::span<layer_description const> layers, layer_id first, microbatch_shape shape, int microbatches, resident_state& state,
             compute_backend& backend, std::span<recompute_level const> recompute_levels, shard_group const& group)
    : layers_{layers},
      first_{first},
      shape_{shape},
      positions_{shape.tokens},
      microbatches_{microbatches},
      state_{&state},
      backend_{&backend},
      group_{group},
      layout_{layers, shape, backend.policy(), backend.own(), recompute_levels, group},
      gradients_{backend.own()},
      boundaries_{array<std::byte>{backend.own()}, array<std::byte>{backend.own()}},
      staged_{backend.messages()}
{
    expects(shape.slices >= 1 && shape.slices <= most_slices && shape.tokens % shape.slices == 0, "slices divide the tokens of a sequence");
    expects(covers_grid(group, layers.front().shards), "the members of a group have runs of shards that cover the grid, in order");
    auto const& info = state.info();
    auto const find = [&](layer_id layer, int parameter, int shard) {
        for (std::size_t u = 0; u < info.uses.size(); ++u) {
            use_id const use{static_cast<std::int32_t>(u)};
            bool const taken = std::find(uses_.begin(), uses_.end(), use) != uses_.end();  // by another operation on the same parameter
            if (info.uses[u].layer == layer && info.uses[u].parameter == parameter && info.uses[u].shard == shard && !taken) {
                return use;
            }
        }
        throw precondition_error{"a stage was given a layer that is not in the collection"};
    };
    for (std::size_t l = 0; l < layers.size(); ++l) {
        layer_id const id{first.value + static_cast<int>(l)};
        auto const& all = layout_.shards[l];
        auto& runs = recomputed_ops_.emplace_back();
        for (std::size_t o = 0; o < all.ops(); ++o) {
            if (is_recomputed(all, o, shape, layout_.recompute_levels[l], backend.policy())) {
                runs.push_back(o);
            }
        }
        parameters_.emplace_back(all.shards.size());
        for (std::size_t o = 0; o < all.ops(); ++o) {
            for (std::size_t j = 0; j < all.shards.size(); ++j) {
                auto& here = parameters_.back()[j].emplace_back();
                for (std::size_t i = 0; i < 2; ++i) {
                    if (auto const number = all.shards[j].ops[o].own.parameters[i]; number != no_parameter) {
                        here.uses[i] = find(id, number, all.shards[j].shard);
                        here.tensors[i] = info.uses[at(here.uses[i])].tensor;
                        uses_.push_back(here.uses[i]);
                    }
                }
            }
            auto const& [kind, own, column, part, count, positions] = all.first().ops[o];
            if (kind != shard_op_kind::operation) {
                continue;
            }
            if (own.kind == op_kind::rope) {
                make_turns(own);
            }
            if (own.kind == op_kind::cross_entropy || own.kind == op_kind::loss_gradient) {
                for (auto const& shard : all.shards) {
                    loss_uses_.push_back(find(id, no_parameter, shard.shard));
                }
            }
        }
    }
    std::sort(uses_.begin(), uses_.end());
    own_recompute_buffers_->fit(layout_.recompute_bytes);
    exchange_buffers_.fit(static_cast<std::size_t>(exchange_bytes(layers, shape, backend.policy(), group).count));
    auto const room = backward_workspace_of(layers, shape, backend.policy(), group);
    gradients_.resize(static_cast<std::size_t>(room.gradients.count));
    for (auto& boundary : boundaries_) {
        boundary.resize(static_cast<std::size_t>(room.boundary.count));
    }
}

/// The table by which a rope turns.
void stage::make_turns(op const& rope)
{
    auto const [entry, is_new] = turns_.try_emplace(turns_key(rope), backend_->own());
    if (is_new) {
        std::vector<float> table(static_cast<std::size_t>(positions_ * head_width(rope)));
        fill_rope_table(positions_, head_width(rope), rope.rope_base, table.data(), rope.scaling);
        entry->second.resize(table.size());
        backend_->copy(entry->second.data(), table.data(), table.size() * sizeof(float));
        backend_->wait();
    }
}

void stage::reach(std::int64_t positions)
{
    if (positions <= positions_) {
        return;
    }
    positions_ = positions;
    turns_.clear();
    for (auto const& layer : layers_) {
        for (auto const& o : layer.ops) {
            if (o.kind == op_kind::rope) {
                make_turns(o);
            }
        }
    }
}

void stage::expect_runs(stage_item const& item) const
{
    expects(!item.training && group_.is_alone() && layers_.front().shards == 1, "runs go forward only, in one rank with whole layers");
    expects(rows_of(item.runs) <= layout_.rows, "runs have no more rows than their stage");
    for (auto const& run : item.runs) {
        expects(run.rows >= 1 && run.first >= 0 && (run.cache == nullptr || run.first + run.rows <= positions_),
                "runs are at positions that their stage reaches");
    }
}

void* stage::input(activation& a) const { return layers_.front().in_width == 0 ? nullptr : a.input.data(); }

void const* stage::output(activation const& a) const
{
    auto const& last = layout_.shards.back();
    auto const output = last.first().output;
    return output == no_slot ? nullptr : a.memory.data() + layout_.layers.back().slots[0][static_cast<std::size_t>(last.place_of(output))];
}

std::size_t stage::input_bytes() const { return static_cast<std::size_t>(layers_.front().in_width * layout_.rows * size_of(backend_->policy().storage)); }
std::size_t stage::output_bytes() const { return static_cast<std::size_t>(layers_.back().out_width * layout_.rows * size_of(backend_->policy().storage)); }

std::vector<float> stage::logits(activation const& a, std::int64_t row) const
{
    auto const& last = layout_.layers.back();
    auto const& shards = layout_.shards.back().shards;
    auto const read = static_cast<std::size_t>(shards.front().ops.back().own.x[0]);
    expects(last.dropped[read] == 0, "the logits of a layer that is recomputed are gone after its forward");
    std::vector<float> all;
    for (std::size_t j = 0; j < shards.size(); ++j) {
        auto const width = shards[j].slot_widths[read];
        auto const* const from = a.memory.data() + last.slots[j][read] + row * width * size_of(backend_->policy().storage);
        auto const some = floats_from(*backend_, from, static_cast<std::size_t>(width));
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

void stage::reserve(activation& a)
{
    if (a.memory.empty()) {
        a.memory = regions_.lend(*layout_.where, layout_.memory_bytes);
        meter_->add(counted(layout_.memory_bytes));
    }
    if (!std::exchange(a.holds_input, true)) {
        meter_->add(counted(layout_.input_bytes));
    }
}

void stage::forward(activation& a, stage_item const& item, std::span<loss_sum> losses)
{
    expects(item.slice >= 0 && item.slice < shape_.slices && a.before.size() == static_cast<std::size_t>(item.slice),
            "a slice comes after all slices before it");
    if (!item.runs.empty()) {
        expect_runs(item);
    }
    reserve(a);
    forward_pass(a, item, losses);
}

void stage::evict(activation& a)
{
    expects(!a.memory.empty(), "only an activation that is there can be evicted");
    regions_.take_back(a.memory);
    meter_->add(bytes{} - counted(layout_.memory_bytes));
}

void stage::recompute(activation& a, stage_item const& item)
{
    expects(a.memory.empty() && a.holds_input, "only an evicted activation is recomputed");
    forward(a, item, counted_already_);
}

void stage::release(activation& a)
{
    if (!a.memory.empty()) {
        evict(a);
    }
    if (std::exchange(a.holds_input, false)) {
        meter_->add(bytes{} - counted(layout_.input_bytes));
    }
    if (!a.gradients.empty()) {
        gradient_regions_.take_back(a.gradients);
        meter_->add(bytes{} - counted(layout_.gradient_bytes));
    }
}

void stage::backward(activation& a, stage_item const& item, layer_id lowest, void* output_gradient, void* input_gradient,
                     std::function<bool(use_id)> const& adds)
{
    backward_pass(a, item, lowest, output_gradient, input_gradient, &adds);
    release(a);
}

void stage::input_gradient(activation& a, stage_item const& item, layer_id lowest, void* output_gradient, void* input_gradient)
{
    if (a.gradients.empty()) {
        a.gradients = gradient_regions_.lend(*layout_.where, layout_.gradient_bytes);
        meter_->add(counted(layout_.gradient_bytes));
    }
    backward_pass(a, item, lowest, output_gradient, input_gradient, nullptr);
}

void stage::weight_gradient(activation& a, stage_item const& item, layer_id lowest, std::function<bool(use_id)> const& adds)
{
    expects(!a.gradients.empty(), "a weight gradient comes after the input gradient of its microbatch");
    weight_gradient_pass(a, item, lowest, adds);
    release(a);
}

/// Memory for messages, of at least this size; its content is gone at the next call.
std::byte* stage::staging_for(std::size_t size)
{
    if (staged_.size() < size) {
        staged_.resize(size);
    }
    return staged_.data();
}

group_exchange& stage::begin_exchange(stage_item const& item)
{
    expects(item.exchange != nullptr, "the members of a group need a way to exchange");
    if (!adding_.empty()) {  // a member may be lost in the exchange: what is in the sums is in the books
        std::sort(adding_.begin(), adding_.end());
        adding_.erase(std::unique(adding_.begin(), adding_.end()), adding_.end());
        if (item.added != nullptr) {
            (*item.added)(adding_);
        }
        adding_.clear();
    }
    return *item.exchange;
}

void stage::exchange(stage_item const& item, exchange_kind kind, std::span<part_of_memory const> out, std::span<part_of_memory const> in)
{
    if (out.empty() && in.empty()) {
        return;
    }
    expects(item.exchange != nullptr, "the members of a group need a way to exchange");
    bool const stages = !backend_->has_one_memory() && !item.exchange->is_direct();
    auto const bytes_of = [](std::span<part_of_memory const> parts) {
        std::size_t sum = 0;
        for (auto const& part : parts) {
            sum += part.data.size();
        }
        return sum;
    };
    auto* next = stages ? staging_for(bytes_of(out) + bytes_of(in)) : nullptr;
    auto const place_of = [&](part_of_memory const& part) {
        return stages ? std::span{std::exchange(next, next + part.data.size()), part.data.size()} : part.data;
    };
    std::vector<group_exchange::outgoing> sent;
    for (auto const& part : out) {
        auto const place = place_of(part);
        if (stages) {
            backend_->copy(place.data(), part.data.data(), part.data.size());
        }
        sent.push_back({part.member, place});
    }
    std::vector<group_exchange::incoming> received;
    for (auto const& part : in) {
        received.push_back({part.member, place_of(part)});
    }
    backend_->wait();
    auto& between = begin_exchange(item);
    if (!stages && !backend_->has_one_memory()) {
        return between.exchange_directly(kind, sent, received);
    }
    between.exchange(kind, sent, received);
    for (std::size_t i = 0; stages && i < in.size(); ++i) {
        backend_->copy(in[i].data.data(), received[i].data.data(), in[i].data.size());
    }
    if (stages) {
        backend_->wait();
    }
}

std::size_t stage::depth_of(layer_id lowest) const { return static_cast<std::size_t>(std::max(0, lowest.value - first_.value)); }

}  // namespace rheo::inline v0
