// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/convert/value_reader.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "executor/checkpoint/convert/box_runs.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

auto key_of(stored_piece const& piece) { return std::tuple{piece.file, piece.tensor, piece.role}; }

bool comes_before(transfer const& a, std::pair<rank_id, tensor_id> b) { return std::pair{a.to, a.tensor} < b; }

}  // namespace

bytes longest_row(array_layout const& layout)
{
    bytes most{0};
    for (auto const& place : layout.places) {
        for (auto const& part : place.parts) {
            auto const row = length(part.box[part.box.dimensions - 1]);
            for (auto const& element : layout.tensors[at(part.tensor)].element) {
                most = std::max(most, row * element.size);
            }
        }
    }
    return most;
}

value_reader::value_reader(stored_state const& state, reshard_plan const& plan, bytes memory)
    : state_{state}, plan_{plan}, memory_{memory.count}, digests_(state.pieces.size())
{
    order_.resize(state.pieces.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return key_of(state.pieces[a]) < key_of(state.pieces[b]); });
}

std::span<std::byte> value_reader::room_for(std::int64_t count)
{
    buffer_.resize(std::max(buffer_.size(), (static_cast<std::size_t>(count) + sizeof(float) - 1) / sizeof(float)));
    return std::as_writable_bytes(std::span{buffer_}).first(static_cast<std::size_t>(count));
}

state_digest value_reader::fill(rank_id rank, tensor_id tensor, tensor_role role, nd_box const& piece, std::span<std::byte> into)
{
    // All transfers are of one round, so they ascend by receiver and tensor.
    auto const& transfers = plan_.transfers;
    state_digest sum;
    std::int64_t filled = 0;
    for (auto t = std::lower_bound(transfers.begin(), transfers.end(), std::pair{rank, tensor}, comes_before);
         t != transfers.end() && t->to == rank && t->tensor == tensor; ++t) {
        if (!t->roles.has(role) || !intersects(t->box, piece)) {
            continue;
        }
        auto const wanted = intersection(t->box, piece);
        auto const key = std::tuple{at(t->from), tensor, role};
        auto next = std::lower_bound(order_.begin(), order_.end(), key, [&](std::size_t p, auto const& k) { return key_of(state_.pieces[p]) < k; });
        for (; next != order_.end() && key_of(state_.pieces[*next]) == key; ++next) {
            if (auto const& stored = state_.pieces[*next]; intersects(stored.box, wanted)) {
                auto const common = intersection(stored.box, wanted);
                sum += copy(*next, common, piece, into);
                filled += elements(common);
            }
        }
    }
    expects(filled == elements(piece), "a reshard plan brings every element that is wanted");
    return sum;
}

state_digest value_reader::copy(std::size_t which, nd_box const& box, nd_box const& place, std::span<std::byte> into)
{
    auto const& piece = state_.pieces[which];
    if (!open_ || open_file_ != piece.file) {
        open_ = std::make_unique<input_file>(state_.files[piece.file]);
        open_file_ = piece.file;
    }
    auto const element = element_of(piece.tensor, piece.role);
    auto const part = [&](std::int64_t first, std::int64_t count) {
        return into.subspan(static_cast<std::size_t>(first * element), static_cast<std::size_t>(count * element));
    };
    for_each_run(box, piece.box, place, [&](box_run const& run) { open_->read(piece.begin + run.in_first * element, part(run.in_second, run.count)); });
    auto const& tensor = state_.tensors[at(piece.tensor)].about;
    state_digest sum;
    for_each_run(box, whole(tensor.shape), place,
                 [&](box_run const& run) { sum += digest_of_elements(tensor.name.view(), piece.role, run.in_first, part(run.in_second, run.count), element); });
    digests_[which] += sum;
    return sum;
}

void value_reader::check_digests() const
{
    for (std::size_t p = 0; p < state_.pieces.size(); ++p) {
        auto const& piece = state_.pieces[p];
        if (piece.digest && *piece.digest != digests_[p]) {
            throw exit_error{exit_code::bad_data,
                             fmt::format("'{}' has other values of '{}' {} than its manifest says: its bytes were changed, or its disk is not sound",
                                         state_.files[piece.file].string(), name_of(state_, piece.tensor, piece.role), to_string(piece.box))};
        }
    }
}

}  // namespace rheo::inline v0
