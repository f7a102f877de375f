#pragma once
// SPDX-License-Identifier: Apache-2.0

// The exchanges between the shards of a layer, for stage_on_pass.hpp: forward, and the other way round backward. Shards of one rank exchange where they
// lie: all strips are there. The members of a group send each other the rows of their strips, and the nodes of a sum that lie whole in their runs, of the
// rows that the receiver has.

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "executor/stage/stage_on.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/shard_sum/shard_sum.hpp"
#include "rheo/model/sharding.hpp"

namespace rheo::inline v0 {

static_assert(sizeof(row_statistics) == row_statistics_bytes, "what shards exchange of a soft-max has the size that memory is planned with");

template <class Kernels>
void stage_on<Kernels>::pass::exchange(std::size_t index)
{
    auto const& [kind, o, column, part, count, positions] = op_of(0, index);
    switch (kind) {
    case shard_op_kind::operation: break;
    case shard_op_kind::gather_rows: return gather(slot(0, o.z[0]), o.out_width);
    case shard_op_kind::collect_rows: return collect(index, slot(0, o.z[0]));
    case shard_op_kind::sum_shards:
        return sum_to_strips(
            exchange_kind::sum, [&, width = o.out_width](std::size_t j) { return partial(j, width); }, partial(shards(), o.out_width), parameter(0, index, 1),
            o.out_width, slot(0, o.z[0]));
    }
}

/// The gradient of gathered rows is the sum of the shards' partial ones; that of a sum over shards, and of collected rows, is the same for all.
template <class Kernels>
void stage_on<Kernels>::pass::exchange_gradient(std::size_t index)
{
    auto const& [kind, o, column, part, count, positions] = op_of(0, index);
    if (kind == shard_op_kind::gather_rows) {
        sum_to_strips(
            exchange_kind::sum_gradient, [this, z = o.z[0]](std::size_t j) { return partial_gradient_of(j, z); }, partial(0, 0), nullptr, o.out_width,
            gradient_of(0, o.x[0]));
    } else {
        gather(gradient_of(0, o.z[0]), o.out_width);
    }
    all_gave(o.x[0]);  // the others lie in one memory with what they were written from
}

/// Each member's part goes to all others. @param part_of member -> its part, where all members have the same
template <class Kernels>
template <class Part>
void stage_on<Kernels>::pass::share_parts(Part const& part_of)
{
    std::vector<part_of_memory> sent, received;
    for (int m = 0; m < members(); ++m) {
        if (m != self.group_.self) {
            sent.push_back({m, std::as_writable_bytes(part_of(self.group_.self))});
            received.push_back({m, std::as_writable_bytes(part_of(m))});
        }
    }
    self.exchange(item, exchange_kind::gather, sent, received);
}

/// Each member's rows go to all others, in a matrix of all rows.
template <class Kernels>
template <class T>
void stage_on<Kernels>::pass::gather(T* matrix, std::int64_t width)
{
    share_parts([&](int member) {
        auto const own = member_rows(member);
        return std::span{matrix + own.begin * width, static_cast<std::size_t>(own.count() * width)};
    });
}

/// The sum of what the shards computed apart, on the rows that this rank has, as it is stored.
/// @param part_of shard of this rank -> what it computed, [rows, width]  @param room for what comes from other members
template <class Kernels>
template <class Part>
void stage_on<Kernels>::pass::sum_to_strips(exchange_kind kind, Part const& part_of, compute* room, storage const* bias, std::int64_t width, storage* to)
{
    typename Kernels::sum_of_shards sum{.rows = rows(), .width = width, .count = 0, .nodes = {}, .bias = bias, .output = to};
    if (self.group_.is_alone()) {
        for (std::size_t j = 0; j < shards(); ++j) {
            sum.nodes[j].values = part_of(j);
        }
        sum.count = static_cast<std::int64_t>(shards());
        return by.shard_sum(sum);
    }
    auto const own = member_rows(self.group_.self);
    std::vector<part_of_memory> sent, received;
    auto const bytes_of = [&](compute* first, shard_range of) {
        return std::as_writable_bytes(std::span{first, static_cast<std::size_t>(of.count() * width)});
    };
    auto const add_node = [&](shard_range node, compute const* values) { sum.nodes[static_cast<std::size_t>(sum.count++)] = {node.count(), values}; };
    for (int m = 0; m < members(); ++m) {
        for (auto const& node : nodes_within(grid(), run_of(m))) {
            if (m == self.group_.self) {
                auto* const values = add_up_node(node, part_of, width);
                add_node(node, values + own.begin * width);
                for (int to_member = 0; to_member < members(); ++to_member) {
                    if (auto const theirs = member_rows(to_member); to_member != m) {
                        sent.push_back({to_member, bytes_of(values + theirs.begin * width, theirs)});
                    }
                }
            } else {
                received.push_back({m, bytes_of(room, own)});
                add_node(node, room);
                room += matrix_bytes(own.count() * width, self.backend_->policy().compute).count / static_cast<std::ptrdiff_t>(sizeof(compute));
            }
        }
    }
    self.exchange(item, kind, sent, received);
    sum.rows = own.count();
    sum.output = to + own.begin * width;
    if (sum.rows > 0) {
        by.shard_sum(sum);
    }
}

/// A node that lies whole in this rank's run; it takes the place of its first shard's part.
template <class Kernels>
template <class Part>
typename stage_on<Kernels>::pass::compute* stage_on<Kernels>::pass::add_up_node(shard_range node, Part const& part_of, std::int64_t width)
{
    auto const first = static_cast<std::size_t>(node.begin - run_of(self.group_.self).begin);
    if (node.count() > 1) {
        typename Kernels::sum_of_shards sum{.rows = rows(), .width = width, .count = node.count(), .nodes = {}, .node = part_of(first)};
        for (std::size_t j = 0; j < static_cast<std::size_t>(node.count()); ++j) {
            sum.nodes[j].values = part_of(first + j);
        }
        by.shard_sum(sum);
    }
    return part_of(first);
}

/// Each row goes from the member that looked it up, because the token is in its part of the table, to the one whose strip it is in. All members know all
/// tokens, so each knows what comes.
template <class Kernels>
void stage_on<Kernels>::pass::collect(std::size_t index, storage* matrix)
{
    if (self.group_.is_alone()) {
        return;
    }
    auto const& o = op_of(0, 0);
    expects(o.own.kind == op_kind::embedding && index == 1, "rows are collected behind an embedding, which begins its layer");
    auto const width = static_cast<std::size_t>(o.own.out_width);
    auto const tokens_of = [&](int member) {
        auto const run = run_of(member);
        return shard_range{cut_in_units(o.all, shard_unit, grid(), static_cast<int>(run.begin)).begin,
                           cut_in_units(o.all, shard_unit, grid(), static_cast<int>(run.end) - 1).end};
    };
    auto const rows_from = [&](int member, shard_range of) {
        std::vector<std::size_t> found;
        auto const tokens = tokens_of(member);
        for (auto r = of.begin; r < of.end; ++r) {
            if (auto const token = a.tokens[static_cast<std::size_t>(r)]; token >= tokens.begin && token < tokens.end) {
                found.push_back(static_cast<std::size_t>(r));
            }
        }
        return found;
    };
    self.on_host(matrix, static_cast<std::size_t>(rows()) * width, [&](storage* on_host) {
        auto const self_member = self.group_.self;
        std::vector<std::vector<storage>> packed_out(static_cast<std::size_t>(members())), packed_in(static_cast<std::size_t>(members()));
        std::vector<group_exchange::outgoing> sent;
        std::vector<group_exchange::incoming> received;
        for (int m = 0; m < members(); ++m) {
            if (m == self_member) {
                continue;
            }
            auto& to = packed_out[static_cast<std::size_t>(m)];
            for (auto const r : rows_from(self_member, member_rows(m))) {
                to.insert(to.end(), on_host + r * width, on_host + (r + 1) * width);
            }
            sent.push_back({m, std::as_bytes(std::span{to})});
            auto& from = packed_in[static_cast<std::size_t>(m)];
            from.resize(rows_from(m, member_rows(self_member)).size() * width);
            received.push_back({m, std::as_writable_bytes(std::span{from})});
        }
        self.begin_exchange(item).exchange(exchange_kind::gather, sent, received);
        for (int m = 0; m < members(); ++m) {
            std::size_t next = 0;
            for (auto const r : m == self_member ? std::vector<std::size_t>{} : rows_from(m, member_rows(self_member))) {
                std::memcpy(on_host + r * width, packed_in[static_cast<std::size_t>(m)].data() + width * next++, width * sizeof(storage));
            }
        }
    });
}

/// Each shard's part of the soft-max first, then what follows from all of them.
template <class Kernels>
void stage_on<Kernels>::pass::loss_of_shards(std::size_t index, std::span<loss_sum> losses, bool leaves_gradient)
{
    auto* const statistics = reinterpret_cast<row_statistics*>(in.exchanged);
    auto const statistics_of = [&](shard_range run) { return std::span{statistics + run.begin * rows(), static_cast<std::size_t>(run.count() * rows())}; };
    for (std::size_t j = 0; j < shards(); ++j) {
        auto const& o = op_of(j, index).own;
        by.cross_entropy_statistics({.rows = rows(),
                                     .vocabulary = o.in_width,
                                     .logits = slot(j, o.x[0]),
                                     .statistics = statistics_of({all().shards[j].shard, all().shards[j].shard + 1}).data()});
    }
    share_parts([&](int member) { return statistics_of(run_of(member)); });
    bool const of_each = losses.size() > 1;
    for (std::size_t j = 0; j < shards(); ++j) {
        auto const& o = op_of(j, index);
        auto* const logits = slot(j, o.own.x[0]);
        bool const fused = o.own.kind == op_kind::loss_gradient;
        by.cross_entropy_finish({.rows = rows(),
                                 .vocabulary = o.own.in_width,
                                 .first_token = o.part.begin,
                                 .all_tokens = o.all,
                                 .shards = grid(),
                                 .statistics = statistics,
                                 .logits = logits,
                                 .targets = a.targets.data(),
                                 .logits_gradient = !leaves_gradient ? nullptr
                                                    : fused          ? logits
                                                                     : gradient[j][static_cast<std::size_t>(o.own.x[0])],
                                 .loss = &losses[of_each ? j : 0]},
                                j == 0, of_each ? j : 0);
    }
}

}  // namespace rheo::inline v0
