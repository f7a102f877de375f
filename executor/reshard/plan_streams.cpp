// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/plan_streams.hpp"

#include <algorithm>
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
std::array<std::ptrdiff_t, copied_dimensions> dense(nd_box const& box, std::size_t element_bytes)
{
    std::array<std::ptrdiff_t, copied_dimensions> stride{};
    auto distance = static_cast<std::ptrdiff_t>(element_bytes);
    for (int d = box.dimensions; d-- > 0;) {
        stride[static_cast<std::size_t>(d)] = distance;
        distance *= static_cast<std::ptrdiff_t>(length(box[d]));
    }
    return stride;
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

class stream_builder {
public:
    stream_builder(std::size_t message_bytes, bool outgoing) : most_{message_bytes}, outgoing_{outgoing} {}

    /// Appends a box to the stream of a peer. @return its bytes
    std::size_t add(int peer, local_arrays const& arrays, transfer const& t, tensor_role role, std::size_t element_bytes)
    {
        auto const known = stream_of_.try_emplace(peer, streams.size());
        if (known.second) {
            streams.push_back({peer});
        }
        auto& messages = streams[known.first->second].messages;
        auto const size = element_bytes;
        std::size_t total = 0;
        cut(t.box, static_cast<std::int64_t>(std::max<std::size_t>(1, most_ / size)), [&](nd_box const& part) {
            auto const part_bytes = static_cast<std::size_t>(elements(part)) * size;
            if (messages.empty() || messages.back().bytes + part_bytes > most_) {
                messages.emplace_back();
            }
            auto& message = messages.back();
            auto const packed = dense(part, size);
            for (auto const& piece : arrays.find(t.tensor, role, part)) {
                auto box = lengths_of(piece.box, size);
                box.to_stride = outgoing_ ? packed : piece.array->stride;
                box.from_stride = outgoing_ ? piece.array->stride : packed;
                message.boxes.push_back({box, piece.data(), message.bytes + offset_in(part, packed, piece.box), &t, role});
            }
            message.bytes += part_bytes;
            total += part_bytes;
        });
        return total;
    }

    std::vector<message_stream> streams;

private:
    std::size_t most_;
    bool outgoing_;
    std::map<int, std::size_t> stream_of_;
};

template <class Use>
void for_each_role(reshard_plan const& plan, tensor_id tensor, role_set roles, Use const& use)
{
    auto const& info = plan.tensors[at(tensor)];
    for (int r = 0; r < tensor_roles; ++r) {
        auto const role = static_cast<tensor_role>(r);
        if (auto const size = info.element[static_cast<std::size_t>(r)].size; roles.has(role) && size.count > 0) {
            use(role, static_cast<std::size_t>(size.count));
        }
    }
}

}  // namespace

round_streams streams_of(reshard_plan const& plan, array_view<transfer const> round, rank_arrays const& mine, std::size_t message_bytes)
{
    stream_builder outgoing{message_bytes, true};
    stream_builder incoming{message_bytes, false};
    round_streams result;
    for (auto const& t : round) {
        if (t.from != mine.self && t.to != mine.self) {
            continue;
        }
        for_each_role(plan, t.tensor, t.roles, [&](tensor_role role, std::size_t size) {
            if (t.from == mine.self) {
                result.sent += outgoing.add(mine.position_of[at(t.to)], mine.held, t, role, size);
            } else {
                result.received += incoming.add(mine.position_of[at(t.from)], mine.wanted, t, role, size);
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
    auto const keep = [&](array_part const& part, tensor_role role, std::size_t size) {
        auto const data = intersection(part.box, whole(plan.tensors[at(part.tensor)].shape));
        for (auto const& source : mine.held.find(part.tensor, role, data)) {
            for (auto const& target : mine.wanted.find(part.tensor, role, source.box)) {
                result.bytes += static_cast<std::size_t>(elements(target.box)) * size;
                array_piece const from{source.array, target.box};
                if (from.data() == target.data() && source.array->stride == target.array->stride) {
                    continue;
                }
                cut(target.box, static_cast<std::int64_t>(std::max<std::size_t>(1, longest_local_copy / size)), [&](nd_box const& box) {
                    auto lengths = lengths_of(box, size);
                    lengths.to_stride = target.array->stride;
                    lengths.from_stride = source.array->stride;
                    result.copies.push_back({lengths, array_piece{target.array, box}.data(), array_piece{source.array, box}.data()});
                });
            }
        }
    };
    for (auto const& place : plan.kept) {
        if (std::find(place.ranks.begin(), place.ranks.end(), mine.self) == place.ranks.end()) {
            continue;
        }
        for (auto const& part : place.parts) {
            for_each_role(plan, part.tensor, part.roles, [&](tensor_role role, std::size_t size) { keep(part, role, size); });
        }
    }
    return result;
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
    return std::min(wished, std::max(shortest_message, memory_for_peers / (2 * most)));
}

}  // namespace rheo::inline v0::detail
