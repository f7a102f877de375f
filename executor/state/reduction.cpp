// SPDX-License-Identifier: Apache-2.0
#include "executor/state/reduction.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace rheo::inline v0 {

namespace {

/// Elements of a tied tensor whose uses are joined at a time: what a processor's cache holds, what keeps a device at work.
std::int64_t tied_piece(compute_backend const& backend) { return backend.has_one_memory() ? 1 << 18 : 1 << 20; }

}  // namespace

reduction::reduction(reduction_id id, reduction_unit const& unit, std::vector<rank_id> holders, resident_state& state, std::vector<rank_id> keepers)
    : id_{id},
      unit_{&unit},
      holders_{std::move(holders)},
      keepers_{keepers.empty() ? holders_ : std::move(keepers)},
      state_{&state},
      backend_{&state.backend()},
      in_rows_{backend_->policy().accumulate == dtype::i32},
      size_{in_rows_ ? sizeof(std::int32_t) : sizeof(std::int64_t)},
      mine_{backend_->own()},
      total_{backend_->own()},
      values_{backend_->own()},
      outgoing_{backend_->messages()},
      values_in_messages_{backend_->messages()}
{
    std::int64_t next = 0;
    for (auto const t : unit.tensors) {
        offsets_.push_back(next);
        next += elements(state.info(t).shape);
    }
    offsets_.push_back(next);
    in_place_ =
        in_rows_ && holders_.size() == 1 && std::all_of(unit.tensors.begin(), unit.tensors.end(), [&](tensor_id t) { return state.info(t).uses.size() == 1; });
    values_.resize(in_place_ ? 0 : static_cast<std::size_t>(next));
    for (std::size_t h = 0; h < holders_.size(); ++h) {
        incoming_.emplace_back(backend_->messages());
    }
    if (holders_.size() > 1 && !backend_->has_one_memory()) {
        outgoing_.resize(values_.size() * size_);
        values_in_messages_.resize(values_.size());
    }
}

reduction::slice reduction::slice_of(std::size_t holder) const
{
    auto const count = static_cast<std::int64_t>(holders_.size());
    auto const i = static_cast<std::int64_t>(holder);
    return {offsets_.back() * i / count, offsets_.back() * (i + 1) / count};
}

/// The uses of a tensor that this rank has: usually one, two when it has both ends of a tie.
std::vector<use_id> reduction::mine_of(tensor_id tensor) const
{
    auto uses = state_->info(tensor).uses;
    std::erase_if(uses, [&](use_id use) { return !state_->has_accumulator(use); });
    return uses;
}

std::int64_t reduction::offset_of(tensor_id tensor) const
{
    auto const place = std::lower_bound(unit_->tensors.begin(), unit_->tensors.end(), tensor) - unit_->tensors.begin();
    return offsets_[static_cast<std::size_t>(place)];
}

std::byte const* reduction::sums_of(use_id use) const
{
    auto const& from = state_->accumulator(use);
    return in_rows_ ? reinterpret_cast<std::byte const*>(from.sums_in_32.data()) : reinterpret_cast<std::byte const*>(from.sums.data());
}

/// `count` elements of a tensor from `first` on, summed over its uses here. @pre there is one
void reduction::sum_uses(std::vector<use_id> const& uses, std::int64_t first, std::int64_t count, std::byte* target)
{
    auto const from = [&](use_id use) { return sums_of(use) + static_cast<std::size_t>(first) * size_; };
    backend_->copy(target, from(uses.front()), static_cast<std::size_t>(count) * size_);
    for (std::size_t u = 1; u < uses.size(); ++u) {
        add(from(uses[u]), target, count);
    }
}

void reduction::sum_mine()
{
    if (unit_->tensors.size() == 1) {
        if (auto const only = mine_of(unit_->tensors.front()); only.size() == 1) {
            sums_ = sums_of(only.front());
            return;
        }
    }
    mine_.resize(static_cast<std::size_t>(offsets_.back()) * size_);
    for (std::size_t i = 0; i < unit_->tensors.size(); ++i) {
        sum_uses(mine_of(unit_->tensors[i]), 0, offsets_[i + 1] - offsets_[i], mine_.data() + static_cast<std::size_t>(offsets_[i]) * size_);
    }
    sums_ = mine_.data();
}

/// What no other rank holds becomes floats in place; the uses of a tie are joined piece by piece, which stay in the cache.
void reduction::convert_alone()
{
    auto const piece = tied_piece(*backend_);
    for (std::size_t i = 0; i < unit_->tensors.size(); ++i) {
        auto const uses = mine_of(unit_->tensors[i]);
        auto const end = offsets_[i + 1];
        if (uses.size() == 1) {
            convert(sums_of(uses.front()), {offsets_[i], end});
            continue;
        }
        if (auto const room = static_cast<std::size_t>(std::min(piece, end - offsets_[i])) * size_; mine_.size() < room) {
            backend_->wait();
            mine_.resize(room);
        }
        for (auto begin = offsets_[i]; begin < end; begin += piece) {
            slice const part{begin, std::min(begin + piece, end)};
            sum_uses(uses, begin - offsets_[i], part.end - part.begin, mine_.data());
            convert(mine_.data(), part);
        }
    }
}

void reduction::add(std::byte const* source, std::byte* target, std::int64_t count)
{
    if (in_rows_) {  // sums of the same scales: any rows will do
        auto const* from = reinterpret_cast<std::int32_t const*>(source);
        auto* to = reinterpret_cast<std::int32_t*>(target);
        for (std::int64_t const width : {std::int64_t{4096}, std::int64_t{1}}) {
            if (auto const rows = count / width; rows > 0) {
                backend_->add(exact_rows_add_arguments{.rows = rows, .source = from, .source_states = nullptr, .target = {.sums = to, .width = width}});
                from += rows * width;
                to += rows * width;
                count -= rows * width;
            }
        }
    } else {
        backend_->add(
            exact_add_arguments{.count = count, .source = reinterpret_cast<std::int64_t const*>(source), .target = reinterpret_cast<std::int64_t*>(target)});
    }
}

void reduction::convert(std::byte const* sums, slice part)
{
    for (std::size_t i = 0; i < unit_->tensors.size(); ++i) {
        auto const t = unit_->tensors[i];
        auto const begin = std::max(part.begin, offsets_[i]);
        auto const end = std::min(part.end, offsets_[i + 1]);
        auto const* const from = sums + static_cast<std::size_t>(begin - part.begin) * size_;
        if (begin < end && in_rows_) {
            convert_rows(t, reinterpret_cast<std::int32_t const*>(from), begin - offsets_[i], end - begin, values_.data() + begin);
        } else if (begin < end) {
            backend_->convert(exact_convert_arguments{.count = end - begin,
                                                      .sums = reinterpret_cast<std::int64_t const*>(from),
                                                      .scale_log2 = state_->scales_of(t).front(),
                                                      .gradient = values_.data() + begin});
        }
    }
}

/// Elements of a tensor from `first` on: the rest of a row, whole rows, the beginning of one.
void reduction::convert_rows(tensor_id tensor, std::int32_t const* sums, std::int64_t first, std::int64_t count, float* to) const
{
    auto& states = state_->accumulator(mine_of(tensor).front()).rows;
    auto const width = state_->info(tensor).shape.columns;
    while (count > 0) {
        bool const whole = first % width == 0 && count >= width;
        auto const run = whole ? count / width * width : std::min(count, width - first % width);
        backend_->convert(exact_rows_convert_arguments{
            .rows = whole ? run / width : 1,
            .source = {.sums = const_cast<std::int32_t*>(sums), .states = states.data() + first / width, .width = whole ? width : run},
            .gradient = to});
        sums += run;
        to += run;
        first += run;
        count -= run;
    }
}

/// Between where kernels and where messages have them.
void reduction::copy_values(slice part, direction way)
{
    if (!backend_->has_one_memory()) {
        auto* const here = values_.data() + part.begin;
        auto* const in_messages = values_in_messages_.data() + part.begin;
        bool const goes = way == direction::to_messages;
        backend_->copy(goes ? in_messages : here, goes ? here : in_messages, part.size() * sizeof(float));
    }
}

void reduction::post(mpi::messenger& messages)
{
    self_ = static_cast<std::size_t>(std::lower_bound(holders_.begin(), holders_.end(), messages.members().self) - holders_.begin());
    if (in_place_) {
        phase_ = phase::done;
        return;
    }
    if (holders_.size() == 1) {
        convert_alone();
        phase_ = phase::done;
        return;
    }
    sum_mine();
    auto const* outgoing = sums_;
    if (!backend_->has_one_memory()) {
        backend_->copy(outgoing_.data(), sums_, outgoing_.size());
        outgoing = outgoing_.data();
    }
    backend_->wait();
    phase_ = phase::summing;
    for (std::size_t h = 0; h < holders_.size(); ++h) {
        if (h == self_) {
            continue;
        }
        incoming_[h].resize(slice_of(self_).size() * size_);
        sum_receipts_.push_back(messages.receive(holders_[h], mpi::channel::reduce_sums, id_.value, std::span{incoming_[h].data(), incoming_[h].size()}));
        auto const theirs = slice_of(h);
        if (keeps(self_)) {
            value_receipts_.push_back(messages.receive(holders_[h], mpi::channel::reduce_values, id_.value,
                                                       values_for_messages().subspan(static_cast<std::size_t>(theirs.begin), theirs.size())));
        }
        sends_.push_back(messages.send(holders_[h], mpi::channel::reduce_sums, id_.value,
                                       std::span<std::byte const>{outgoing + static_cast<std::size_t>(theirs.begin) * size_, theirs.size() * size_}));
    }
}

bool reduction::advance(mpi::messenger& messages)
{
    auto const clear_done = [&](std::vector<mpi::messenger::ticket>& tickets) {
        while (!tickets.empty() && messages.done(tickets.back())) {
            tickets.pop_back();
        }
        return tickets.empty();
    };
    if (phase_ == phase::summing) {
        if (!clear_done(sum_receipts_)) {
            return false;
        }
        auto const part = slice_of(self_);
        total_.resize(part.size() * size_);
        backend_->copy(total_.data(), sums_ + static_cast<std::size_t>(part.begin) * size_, total_.size());
        for (std::size_t h = 0; h < holders_.size(); ++h) {
            if (h != self_ && !total_.empty()) {
                add(incoming_[h].data(), total_.data(), part.end - part.begin);
            }
        }
        convert(total_.data(), part);
        copy_values(part, direction::to_messages);
        backend_->wait();
        for (std::size_t h = 0; h < holders_.size(); ++h) {
            if (h != self_ && keeps(h)) {
                sends_.push_back(messages.send(holders_[h], mpi::channel::reduce_values, id_.value,
                                               std::span<float const>{values_for_messages()}.subspan(static_cast<std::size_t>(part.begin), part.size())));
            }
        }
        phase_ = phase::spreading;
    }
    if (phase_ == phase::spreading) {
        if (!clear_done(value_receipts_) || !clear_done(sends_)) {
            return false;
        }
        for (std::size_t h = 0; h < holders_.size(); ++h) {
            if (h != self_ && keeps(self_)) {
                copy_values(slice_of(h), direction::from_messages);
            }
        }
        phase_ = phase::done;
    }
    return phase_ == phase::done;
}

float const* reduction::piece(tensor_id tensor, std::int64_t first, std::int64_t count, array<float>& room) const
{
    if (!in_place_) {
        return values_.data() + offset_of(tensor) + first;
    }
    if (room.size() < static_cast<std::size_t>(count)) {
        backend_->wait();
        room.resize(static_cast<std::size_t>(count));
    }
    convert_rows(tensor, state_->accumulator(mine_of(tensor).front()).sums_in_32.data() + first, first, count, room.data());
    return room.data();
}

float const* reduction::gradient(tensor_id tensor)
{
    if (!in_place_) {
        return values_.data() + offset_of(tensor);
    }
    auto& sums = state_->accumulator(mine_of(tensor).front()).sums_in_32;
    auto* const floats = reinterpret_cast<float*>(sums.data());
    convert_rows(tensor, sums.data(), 0, static_cast<std::int64_t>(sums.size()), floats);
    return floats;
}

std::span<float> reduction::staging(tensor_id tensor)
{
    return values_for_messages().subspan(static_cast<std::size_t>(offset_of(tensor)), static_cast<std::size_t>(elements(state_->info(tensor).shape)));
}

void reduction::staged()
{
    copy_values({0, offsets_.back()}, direction::from_messages);
    backend_->wait();
}

void reduction::reset()
{
    sum_receipts_.clear();
    value_receipts_.clear();
    sends_.clear();
    phase_ = phase::idle;
}

}  // namespace rheo::inline v0
