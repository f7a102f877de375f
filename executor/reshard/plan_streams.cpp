// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/plan_streams.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

namespace rheo::inline v0::detail {

namespace {

constexpr std::size_t longest_local_copy = std::size_t{4} << 20U;  ///< between two looks at the messages
constexpr std::size_t memory_for_peers = std::size_t{256} << 20U;
constexpr std::size_t shortest_message = std::size_t{16} << 10U;

/// Cuts a box into consecutive boxes of at most so many elements: whole indices of the first dimension as long as one fits, else of the next.
template <class Use>
void cut(nd_box const& box, std::int64_t most, Use const& use)
{
    auto const count = elements(box);
    if (count <= most) {
        if (count > 0) {
            use(box);
        }
        return;
    }
    int d = 0;
    while (length(box[d]) == 1) {
        ++d;
    }
    auto const inner = count / length(box[d]);
    auto const step = std::max<std::int64_t>(1, most / inner);
    for (auto begin = box[d].begin; begin < box[d].end; begin += step) {
        auto part = box;
        part[d] = {begin, std::min(box[d].end, begin + step)};
        cut(part, most, use);
    }
}

/// Strides of a box without gaps, in bytes.
std::array<std::ptrdiff_t, copied_dimensions> dense(nd_box const& box, std::size_t element_bytes, element_order order = element_order::row_major)
{
    std::array<std::ptrdiff_t, copied_dimensions> stride{};
    auto distance = static_cast<std::ptrdiff_t>(element_bytes);
    for (int i = 0; i < box.dimensions; ++i) {
        auto const d = order == element_order::row_major ? box.dimensions - 1 - i : i;
        stride[static_cast<std::size_t>(d)] = distance;
        distance *= static_cast<std::ptrdiff_t>(length(box[d]));
    }
    return stride;
}

/// The box with its dimensions in the order of the message, the slowest first.
strided_box in_order(strided_box box, element_order order)
{
    if (order == element_order::column_major) {
        auto const last = static_cast<std::ptrdiff_t>(box.dimensions);
        std::reverse(box.extent.begin(), box.extent.begin() + last);
        std::reverse(box.to_stride.begin(), box.to_stride.begin() + last);
        std::reverse(box.from_stride.begin(), box.from_stride.begin() + last);
    }
    return box;
}

strided_box lengths_of(nd_box const& box, std::size_t element_bytes)
{
    strided_box result;
    result.dimensions = static_cast<std::size_t>(box.dimensions);
    result.element_bytes = element_bytes;
    for (int d = 0; d < box.dimensions; ++d) {
        result.extent[static_cast<std::size_t>(d)] = length(box[d]);
    }
    return result;
}

/// How far a piece begins behind the box that it is a part of.
std::size_t offset_in(nd_box const& box, std::array<std::ptrdiff_t, copied_dimensions> const& stride, nd_box const& piece)
{
    std::ptrdiff_t offset = 0;
    for (int d = 0; d < box.dimensions; ++d) {
        offset += stride[static_cast<std::size_t>(d)] * static_cast<std::ptrdiff_t>(piece[d].begin - box[d].begin);
    }
    return static_cast<std::size_t>(offset);
}

element_change change_at_receiver(moving_format const& format)
{
    return format.is_addend ? addition(format.travelling, format.wanted) : conversion(format.travelling, format.wanted);
}

class stream_builder {
public:
    stream_builder(message_lengths lengths, element_order order, bool outgoing) : lengths_{lengths}, order_{order}, outgoing_{outgoing} {}

    /// Appends a box to the stream of a peer. @return its bytes
    std::size_t add(int peer, local_arrays const& arrays, transfer const& t, tensor_role role, moving_format const& format)
    {
        auto const known = stream_of_.try_emplace(peer, streams.size());
        if (known.second) {
            streams.push_back({peer});
            joined_.push_back(none);
        }
        auto& messages = streams[known.first->second].messages;
        auto& joined = joined_[known.first->second];
        auto const size = static_cast<std::size_t>(format.travelling.size.count);
        auto const change = outgoing_ ? conversion(format.held, format.travelling) : change_at_receiver(format);
        std::size_t total = 0;
        cut(t.box, static_cast<std::int64_t>(std::max<std::size_t>(1, lengths_.most / size)), [&](nd_box const& part) {
            auto const part_bytes = static_cast<std::size_t>(elements(part)) * size;
            bool const alone = part_bytes >= lengths_.alone;
            auto which = joined;
            if (alone || joined == none || messages[joined].bytes + part_bytes > lengths_.most) {
                which = messages.size();
                messages.emplace_back();
                joined = alone ? joined : which;
            }
            auto& message = messages[which];
            auto const packed = dense(part, size, order_);
            for (auto const& piece : arrays.find(t.tensor, role, part)) {
                auto box = lengths_of(piece.box, size);
                box.to_stride = outgoing_ ? packed : piece.array->stride;
                box.from_stride = outgoing_ ? piece.array->stride : packed;
                box.change = change;
                message.boxes.push_back(
                    {in_copy_order(in_order(box, order_)), piece.data(), message.bytes + offset_in(part, packed, piece.box), &t, role, piece.box});
            }
            message.bytes += part_bytes;
            total += part_bytes;
        });
        return total;
    }

    std::vector<message_stream> streams;

private:
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    message_lengths lengths_;
    element_order order_;
    bool outgoing_;
    std::map<int, std::size_t> stream_of_;
    std::vector<std::size_t> joined_;  ///< by stream: the message that the next box joins
};

/// Those of a rank, so that memory is gone through from front to back: a plan has row-major order, and with the last dimension first it is column-major.
std::vector<transfer const*> transfers_of(rank_id rank, array_view<transfer const> round, element_order order)
{
    std::vector<transfer const*> own;
    for (auto const& t : round) {
        if (t.from == rank || t.to == rank) {
            own.push_back(&t);
        }
    }
    auto const last_dimension_first = [](transfer const* a, transfer const* b) {
        if (a->tensor != b->tensor) {
            return a->tensor < b->tensor;
        }
        for (auto d = a->box.dimensions; d-- > 0;) {
            if (a->box[d].begin != b->box[d].begin) {
                return a->box[d].begin < b->box[d].begin;
            }
        }
        return false;
    };
    if (order == element_order::column_major) {
        std::stable_sort(own.begin(), own.end(), last_dimension_first);
    }
    return own;
}

template <class Use>
void for_each_role(reshard_plan const& plan, tensor_id tensor, role_set roles, Use const& use)
{
    auto const has = roles & roles_of(plan.tensors[at(tensor)]);
    for (int r = 0; r < tensor_roles; ++r) {
        if (auto const role = static_cast<tensor_role>(r); has.has(role)) {
            use(role, format_of(plan, tensor, role));
        }
    }
}

/// Appends copies of what both memories have of a box. @return its bytes, also of what lies in the same place already
std::size_t append_local(std::vector<local_copy>& copies, std::vector<nd_box>* boxes, rank_arrays const& mine, array_part const& part, tensor_role role,
                         moving_format const& format)
{
    std::size_t bytes = 0;
    auto const size = static_cast<std::size_t>(format.held.size.count);
    auto const change = format.is_addend ? addition(format.held, format.wanted) : conversion(format.held, format.wanted);
    for (auto const& source : mine.held.find(part.tensor, role, part.box)) {
        for (auto const& target : mine.wanted.find(part.tensor, role, source.box)) {
            bytes += static_cast<std::size_t>(elements(target.box)) * size;
            array_piece const from{source.array, target.box};
            if (change == element_change::none && from.data() == target.data() && source.array->stride == target.array->stride) {
                continue;
            }
            cut(target.box, static_cast<std::int64_t>(std::max<std::size_t>(1, longest_local_copy / size)), [&](nd_box const& box) {
                auto lengths = lengths_of(box, size);
                lengths.to_stride = target.array->stride;
                lengths.from_stride = source.array->stride;
                lengths.change = change;
                copies.push_back({in_copy_order(lengths), array_piece{target.array, box}.data(), array_piece{source.array, box}.data()});
                if (boxes != nullptr) {
                    boxes->push_back(box);
                }
            });
        }
    }
    return bytes;
}

}  // namespace

round_streams streams_of(reshard_plan const& plan, array_view<transfer const> round, rank_arrays const& mine, message_lengths lengths, element_order order)
{
    stream_builder outgoing{lengths, order, true};
    stream_builder incoming{lengths, order, false};
    round_streams result;
    for (auto const* const t : transfers_of(mine.self, round, order)) {
        for_each_role(plan, t->tensor, t->roles, [&](tensor_role role, moving_format const& format) {
            if (t->from == mine.self) {
                result.sent += outgoing.add(mine.position_of[at(t->to)], mine.held, *t, role, format);
            } else {
                result.received += incoming.add(mine.position_of[at(t->from)], mine.wanted, *t, role, format);
            }
        });
    }
    result.outgoing = std::move(outgoing.streams);
    result.incoming = std::move(incoming.streams);
    return result;
}

kept_copies kept_of(reshard_plan const& plan, rank_arrays const& mine)
{
    kept_copies result;
    for (auto const& place : plan.kept) {
        if (std::find(place.ranks.begin(), place.ranks.end(), mine.self) == place.ranks.end()) {
            continue;
        }
        for (auto const& part : place.parts) {
            auto const data = intersection(part.box, whole(plan.tensors[at(part.tensor)].shape));
            for_each_role(plan, part.tensor, part.roles, [&](tensor_role role, moving_format const& format) {
                if (!format.is_addend) {
                    result.bytes += append_local(result.copies, nullptr, mine, {part.tensor, data}, role, format);
                }
            });
        }
    }
    std::sort(result.copies.begin(), result.copies.end(), [](local_copy const& a, local_copy const& b) { return std::less<>{}(a.to, b.to); });
    return result;
}

std::size_t append_addend(own_addends& all, reshard_plan const& plan, rank_arrays const& mine, array_part const& part, tensor_role role)
{
    std::vector<nd_box> boxes;
    auto const bytes = append_local(all.copies, &boxes, mine, part, role, format_of(plan, part.tensor, role));
    for (auto const& box : boxes) {
        all.parts.push_back({part.tensor, box, role});
    }
    return bytes;
}

void fill_with(std::uint64_t first, std::size_t size, nd_box const& all, tensor_id tensor, tensor_role role, local_arrays const& wanted,
               row_copier const& copy_rows)
{
    std::vector<std::byte> row(std::min<std::size_t>(static_cast<std::size_t>(elements(all)) * size, std::size_t{1} << 18U));
    for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] = static_cast<std::byte>(first >> i % size * 8 & 0xffU);
    }
    for (auto const& target : wanted.find(tensor, role, all)) {
        cut(target.box, static_cast<std::int64_t>(row.size() / size), [&](nd_box const& box) {
            auto lengths = lengths_of(box, size);
            lengths.to_stride = target.array->stride;
            lengths.from_stride = dense(box, size);
            copy_strided(lengths, array_piece{target.array, box}.data(), row.data(), copy_rows);
        });
    }
}

std::size_t message_length(reshard_plan const& plan, std::size_t wished)
{
    std::vector<std::pair<std::pair<int, rank_id>, rank_id>> all;
    for (auto const& t : plan.transfers) {
        all.push_back({{t.round, t.to}, t.from});
        all.push_back({{t.round, t.from}, t.to});
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    std::size_t most = 1;
    std::size_t peers = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        peers = i > 0 && all[i].first == all[i - 1].first ? peers + 1 : 1;
        most = std::max(most, peers);
    }
    return std::min(wished, std::max(shortest_message, memory_for_peers / (message_exchange::buffered * most)));
}

}  // namespace rheo::inline v0::detail
