#pragma once
// SPDX-License-Identifier: Apache-2.0

// The nodes of a rank's execution trace: its computations, messages, reductions, the vote and the update, with what each of them waits for. A computation
// waits for the one before it and for the message of its input; a message is posted when the rank comes to it, after the computation before; a
// reduction when the rank has posted it; the vote for all of these; the update for the vote. Ids are places in the file. Evictions are no nodes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/simulate/chakra/execution_node.hpp"
#include "rheo/simulate/chakra/execution_order.hpp"
#include "rheo/simulate/chakra/step_programs.hpp"
#include "rheo/simulate/chakra/work_sizes.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// What a row holds of each item, as schedule/check/activations.hpp counts it.
template <class OnlyWhenCalled = void>
class activation_level {
public:
    activation_level(std::vector<instruction> const& row, std::size_t stages, std::int32_t first_item) : stages_{stages}, first_{first_item}
    {
        for (auto const& i : row) {
            if (i.kind == instruction_kind::backward || i.kind == instruction_kind::weight_gradient) {
                auto const k = place_of(i);
                kept_.resize(std::max(kept_.size(), k + 1));
                kept_[k] = true;
            }
        }
    }

    /// After the instruction.
    bytes after(instruction i, held_bytes const& held)
    {
        auto const k = place_of(i);
        if (k < kept_.size() && kept_[k]) {
            switch (i.kind) {
            case instruction_kind::forward: level_ += held.activation; break;
            case instruction_kind::evict: level_ -= held.activation - held.input; break;
            case instruction_kind::recompute: level_ += held.activation - held.input; break;
            case instruction_kind::input_gradient: level_ += held.gradients; break;
            case instruction_kind::backward: level_ -= held.activation; break;
            case instruction_kind::weight_gradient: level_ -= held.activation + held.gradients; break;
            default: break;
            }
        }
        return level_;
    }

private:
    std::size_t place_of(instruction i) const { return static_cast<std::size_t>(i.item - first_) * stages_ + static_cast<std::size_t>(i.stage); }

    std::size_t stages_;
    std::int32_t first_;
    std::vector<bool> kept_;
    bytes level_{};
};

/// Builds the nodes of one row.
template <class OnlyWhenCalled = void>
class execution_row_builder {
public:
    execution_row_builder(step_programs const& step, step_sizes const& sizes, execution_order const& order, executing_row row)
        : program_{&step.programs[row.pipeline]},
          row_{&program_->rows[row.position]},
          ranks_{&step.ranks[row.pipeline]},
          sizes_{&sizes},
          stages_{&sizes.pipelines[row.pipeline]},
          order_{&order},
          times_{order.times_at(row)},
          reductions_{&order.row_reductions[row.pipeline][row.position]},
          first_item_{order.first_item[row.pipeline]},
          level_{*row_, program_->placement.size(), first_item_}
    {
    }

    std::vector<execution_node> build()
    {
        std::size_t next = 0;  // of the reductions
        for (std::size_t k = 0; k < row_->size(); ++k) {
            for (; next < reductions_->size() && times_[k] > order_->reductions[(*reductions_)[next]].posted; ++next) {
                add_reduction(order_->reductions[(*reductions_)[next]]);
            }
            add((*row_)[k], k);
        }
        for (; next < reductions_->size(); ++next) {
            add_reduction(order_->reductions[(*reductions_)[next]]);
        }
        return std::move(nodes_);
    }

private:
    struct received {
        instruction meaning;  // the receive
        std::uint64_t id;
    };
    struct posted {
        reduction_id unit;
        std::size_t instruction;
        std::optional<std::uint64_t> after;  // the computation before the post
    };

    execution_node& put(execution_node node)
    {
        nodes_.push_back(std::move(node));
        return nodes_.back();
    }

    void add(instruction i, std::size_t k)
    {
        if (is_work(i.kind)) {
            add_computation(i, k);
        } else if (is_send(i.kind) || is_receive(i.kind)) {
            add_message(i, k);
        } else if (i.kind == instruction_kind::evict) {
            level_.after(i, held(i));
        } else if (i.kind == instruction_kind::post_reduction) {
            posts_.push_back({reduction_of(i), k, last_computation_});
        } else if (i.kind == instruction_kind::overlap) {
            pair_ends_ = k + 2;
        }
    }

    held_bytes const& held(instruction i) const { return stages_->stages[static_cast<std::size_t>(i.stage)].held; }

    void add_computation(instruction i, std::size_t k)
    {
        auto const& stage = stages_->stages[static_cast<std::size_t>(i.stage)];
        auto const id = nodes_.size();
        auto& node = put({.activity = activity_of(i.kind),
                          .type = chakra_node_type::comp,
                          .stage = stage_of(i),
                          .item = i.item,
                          .work = work_of(stage, i.kind),
                          .activations = level_.after(i, stage.held),
                          .instruction = k});
        if (last_computation_) {
            node.waits_for.push_back(*last_computation_);
        }
        take_input(i, node);
        if (pair_ends_ == k + 1) {  // the first of two that are computed at once waits for the inputs of both
            take_input((*row_)[k + 1], node);
        }
        std::sort(node.waits_for.begin(), node.waits_for.end());
        last_computation_ = id;
    }

    /// The message with the input of a computation, once.
    void take_input(instruction i, execution_node& node)
    {
        bool const up = i.kind == instruction_kind::forward;
        if (!up && i.kind != instruction_kind::backward && i.kind != instruction_kind::input_gradient) {
            return;
        }
        instruction const wanted{up ? instruction_kind::receive_activation : instruction_kind::receive_gradient, i.stage, i.item};
        auto const found = std::find_if(received_.begin(), received_.end(), [&](received const& r) { return r.meaning == wanted; });
        if (found != received_.end()) {
            node.waits_for.push_back(found->id);
            *found = received_.back();
            received_.pop_back();
        }
    }

    void add_message(instruction i, std::size_t k)
    {
        bool const up = i.kind == instruction_kind::send_activation || i.kind == instruction_kind::receive_activation;
        auto const sender = is_send(i.kind) ? i.stage : i.stage + (up ? -1 : 1);
        auto const other = is_send(i.kind) ? i.stage + (up ? 1 : -1) : sender;
        auto const& from = stages_->stages[static_cast<std::size_t>(sender)];
        auto const id = nodes_.size();
        auto& node = put({.activity = activity_of(i.kind),
                          .type = is_send(i.kind) ? chakra_node_type::comm_send : chakra_node_type::comm_recv,
                          .stage = stage_of(i),
                          .item = i.item,
                          .size = up ? from.activation : from.gradient,
                          .peer = (*ranks_)[static_cast<std::size_t>(program_->placement[static_cast<std::size_t>(other)])],
                          .tag = tag_of(sender, i.item, up),
                          .instruction = k});
        if (last_computation_) {
            node.waits_for.push_back(*last_computation_);
        }
        if (is_receive(i.kind)) {
            received_.push_back({i, id});
        }
    }

    /// Unique in the step between two ranks, as long as the pipeline has less than 2^30 pairs of a stage and an item.
    std::int32_t tag_of(int sender, std::int32_t item, bool up) const
    {
        auto const pair = std::int64_t{item - first_item_} * static_cast<std::int64_t>(program_->placement.size()) + sender;
        return static_cast<std::int32_t>((pair * 2 + (up ? 0 : 1)) & INT32_MAX);
    }

    void add_reduction(ordered_reduction const& reduction)
    {
        auto const post = std::find_if(posts_.begin(), posts_.end(), [&](posted const& p) { return p.unit == reduction.unit; });
        expects(post != posts_.end(), "a reduction begins after its post");
        auto const id = nodes_.size();
        auto& node = put({.activity = activity::post_reduction,
                          .type = chakra_node_type::comm_coll,
                          .item = reduction.unit.value,
                          .size = sizes_->units[at(reduction.unit)],
                          .group = reduction.group,
                          .instruction = post->instruction});
        for (auto k = post->instruction; k < row_->size(); ++k) {
            node.awaited_by = (*row_)[k].kind == instruction_kind::await_reduction && reduction_of((*row_)[k]) == reduction.unit ? k : node.awaited_by;
        }
        std::vector<std::uint64_t> waits;
        if (post->after) {
            waits.push_back(*post->after);
        }
        auto const also = [&](std::optional<std::uint64_t> earlier) {
            if (earlier && std::find(waits.begin(), waits.end(), *earlier) == waits.end()) {
                waits.push_back(*earlier);
                node.only_in_order.push_back(*earlier);
            }
        };
        also(last_computation_);  // so that messages posted by then are begun before
        also(last_reduction_);
        std::sort(waits.begin(), waits.end());
        std::sort(node.only_in_order.begin(), node.only_in_order.end());
        node.waits_for = std::move(waits);
        last_reduction_ = id;
    }

    program const* program_;
    std::vector<instruction> const* row_;
    std::vector<rank_id> const* ranks_;
    step_sizes const* sizes_;
    pipeline_sizes const* stages_;
    execution_order const* order_;
    array_view<seconds const> times_;
    std::vector<std::uint32_t> const* reductions_;
    std::int32_t first_item_;
    activation_level<> level_;
    std::vector<execution_node> nodes_;
    std::vector<received> received_;  // messages that no computation has taken
    std::vector<posted> posts_;
    std::optional<std::uint64_t> last_computation_;
    std::optional<std::uint64_t> last_reduction_;
    std::size_t pair_ends_ = execution_node::no_instruction;
};

}  // namespace detail

/// The nodes of a rank that has a place. Cost: instructions times messages under way.
/// @param voters ranks that take part in the vote
template <class OnlyWhenCalled = void>
std::vector<execution_node> execution_nodes(step_programs const& step, step_sizes const& sizes, execution_order const& order, executing_row row,
                                            std::size_t voters)
{
    auto nodes = detail::execution_row_builder<>{step, sizes, order, row}.build();
    execution_node update{.activity = activity::update, .type = chakra_node_type::comp, .work = sizes.pipelines[row.pipeline].updates[row.position]};
    std::vector<std::uint64_t> through;  // what the rank has to have done
    std::uint64_t last = nodes.size();
    for (std::uint64_t id = 0; id < nodes.size(); ++id) {
        if (nodes[id].type == chakra_node_type::comm_coll) {
            through.push_back(id);
        } else if (nodes[id].type == chakra_node_type::comp) {
            last = id;
        }
    }
    if (last < nodes.size()) {
        through.insert(std::lower_bound(through.begin(), through.end(), last), last);
    }
    if (voters > 1) {
        nodes.push_back({.activity = activity::decide, .type = chakra_node_type::comm_coll, .size = vote_bytes, .group = order.vote, .waits_for = through});
        through = {nodes.size() - 1};
    }
    update.waits_for = std::move(through);
    nodes.push_back(std::move(update));
    return nodes;
}

/// The nodes of a rank that waits for a place: it votes.
template <class OnlyWhenCalled = void>
std::vector<execution_node> waiting_nodes(execution_order const& order)
{
    return {{.activity = activity::decide, .type = chakra_node_type::comm_coll, .size = vote_bytes, .group = order.vote}};
}

}  // namespace rheo::inline v0
