// SPDX-License-Identifier: Apache-2.0
#include "executor/state/reduction.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "executor/device/backend.hpp"
#include "rheo/model/parameter_bytes.hpp"

namespace rheo::inline v0 {

namespace {

/// What the exchange of a unit may keep in buffers.
bytes exchange_bytes_of(reduction_unit const& unit, resident_state const& state, dtype accumulate, bool shared)
{
    bytes sum{};
    for (auto const t : unit.tensors) {
        sum += shared || state.info(t).uses.size() > 1 ? reduction_buffer_bytes(elements(state.info(t).shape), accumulate) : bytes{};
    }
    return sum;
}

/// Receipts that are there are taken out; true when none is left.
bool all_done(std::vector<transport::ticket>& tickets, transport& by)
{
    while (!tickets.empty() && by.done(tickets.back())) {
        tickets.pop_back();
    }
    return tickets.empty();
}

}  // namespace

reduction::reduction(reduction_id id, reduction_unit const& unit, std::vector<rank_id> holders, resident_state& state, std::vector<rank_id> keepers)
    : id_{id},
      unit_{&unit},
      holders_{std::move(holders)},
      keepers_{keepers.empty() ? holders_ : std::move(keepers)},
      backend_{&state.backend()},
      mine_{unit, state},
      in_place_{alone() && mine_.in_place()},
      values_{backend_->own(), in_place_ ? 0 : static_cast<std::size_t>(mine_.elements())},
      total_{backend_->own()},
      in_messages_{backend_->messages()},
      values_in_messages_{backend_->messages()},
      by_transport_{id_, mine_, *backend_}
{
    auto const size = exchange_bytes_of(unit, state, backend_->policy().accumulate, !alone());
    if (alone()) {
        total_.resize(static_cast<std::size_t>(size.count));
    } else {
        divide_buffers(size);
    }
}

/// Every holder has pieces of the same size, whatever it computes with.
void reduction::divide_buffers(bytes size)
{
    auto const holders = static_cast<std::int64_t>(holders_.size());
    auto const sum = static_cast<std::int64_t>(mine_.sum_size());
    auto const of_element = in_flight * (2 * (holders - 1) * sum + holders * static_cast<std::int64_t>(sizeof(float))) + sum;
    auto const longest = (mine_.elements() + holders - 1) / holders;
    piece_ = std::clamp<std::int64_t>(size.count / of_element, 1, std::max<std::int64_t>(longest, 1));
    piece_ -= piece_ > 4 ? piece_ % 4 : 0;  // buffers begin where kernels load several elements at once
    rounds_ = (longest + piece_ - 1) / piece_;
    total_.resize(static_cast<std::size_t>(piece_ * sum));
    in_messages_.resize(static_cast<std::size_t>(std::max(size.count, piece_ * of_element) - piece_ * sum));
}

element_range reduction::slice_of(std::size_t holder) const
{
    auto const count = static_cast<std::int64_t>(holders_.size());
    auto const i = static_cast<std::int64_t>(holder);
    return {mine_.elements() * i / count, mine_.elements() * (i + 1) / count};
}

element_range reduction::piece_of(std::size_t holder, std::int64_t of_round) const
{
    auto const slice = slice_of(holder);
    auto const begin = std::min(slice.begin + of_round * piece_, slice.end);
    return {begin, std::min(begin + piece_, slice.end)};
}

/// Where the sums of a piece lie that go to or come from another holder.
std::byte* reduction::sums_buffer(std::size_t holder, std::int64_t of_round, bool sent)
{
    auto const others = holders_.size() - 1;
    auto const place = (static_cast<std::size_t>(of_round % in_flight) * 2 + (sent ? 1 : 0)) * others + holder - (holder > self_ ? 1 : 0);
    return in_messages_.data() + place * static_cast<std::size_t>(piece_) * mine_.sum_size();
}

/// Where messages have the values of a holder's piece: in the gradient itself, or behind the sums of all rounds.
float* reduction::values_for_messages(std::size_t holder, std::int64_t of_round, element_range part)
{
    if (backend_->has_one_memory()) {
        return values_.data() + part.begin;
    }
    auto const piece = static_cast<std::size_t>(piece_);
    auto* const first = in_messages_.data() + static_cast<std::size_t>(in_flight) * 2 * (holders_.size() - 1) * piece * mine_.sum_size();
    return reinterpret_cast<float*>(first) + (static_cast<std::size_t>(of_round % in_flight) * holders_.size() + holder) * piece;
}

/// What no other rank holds becomes floats in place; the uses of a tie are joined piece by piece.
void reduction::convert_alone()
{
    for (auto const t : unit_->tensors) {
        auto const all = mine_.range_of(t);
        if (auto const* const sums = mine_.place_of(all)) {
            mine_.convert(sums, all, values_.data() + all.begin);
            continue;
        }
        auto const piece = static_cast<std::int64_t>(total_.size() / mine_.sum_size());
        for (auto begin = all.begin; begin < all.end; begin += piece) {
            element_range const part{begin, std::min(begin + piece, all.end)};
            mine_.copy(part, total_.data(), total_.data());
            mine_.convert(total_.data(), part, values_.data() + part.begin);
        }
    }
}

void reduction::prepare_sums()
{
    if (!alone()) {
        by_transport_.prepare(exchange_bytes_of(*unit_, mine_.state(), backend_->policy().accumulate, true));
    }
}

void reduction::post(transport& by)
{
    auto const self = by.self();
    self_ = static_cast<std::size_t>(std::lower_bound(holders_.begin(), holders_.end(), self) - holders_.begin());
    posted_ = true;
    if (alone()) {
        if (!in_place_) {
            convert_alone();
        }
        return;
    }
    if (by.sums()) {
        by_transport_.begin(by, values_.data());
        return;
    }
    if (!backend_->has_one_memory() && !keeps(self_)) {
        values_in_messages_.resize(values_.size());
    }
    while (begun_ < std::min(in_flight, rounds_)) {
        begin(begun_++, by);
    }
}

/// Messages between two ranks about one unit have one tag: they are sent and received round by round.
void reduction::begin(std::int64_t of_round, transport& by)
{
    auto& here = places_[static_cast<std::size_t>(of_round % in_flight)];
    auto const mine = piece_of(self_, of_round);
    auto const bytes_of = [&](element_range part) { return static_cast<std::size_t>(part.size()) * mine_.sum_size(); };
    std::vector<std::byte const*> outgoing(holders_.size());
    for (std::size_t h = 0; h < holders_.size(); ++h) {
        if (h == self_) {
            continue;
        }
        auto const theirs = piece_of(h, of_round);
        if (!mine.empty()) {
            here.sums.push_back(by.receive(holders_[h], mpi::channel::reduce_sums, id_.value, std::span{sums_buffer(h, of_round, false), bytes_of(mine)}));
        }
        if (theirs.empty()) {
            continue;
        }
        if (keeps(self_)) {
            std::span const place{values_for_messages(h, of_round, theirs), static_cast<std::size_t>(theirs.size())};
            here.values.push_back(by.receive(holders_[h], mpi::channel::reduce_values, id_.value, std::as_writable_bytes(place)));
        }
        outgoing[h] = backend_->has_one_memory() ? mine_.place_of(theirs) : nullptr;
        if (outgoing[h] == nullptr) {
            auto* const copy = sums_buffer(h, of_round, true);
            mine_.copy(theirs, copy, backend_->has_one_memory() ? copy : total_.data());
            outgoing[h] = copy;
        }
    }
    backend_->wait();
    for (std::size_t h = 0; h < holders_.size(); ++h) {
        if (outgoing[h] != nullptr) {
            here.sends.push_back(by.send(holders_[h], mpi::channel::reduce_sums, id_.value, std::span{outgoing[h], bytes_of(piece_of(h, of_round))}));
        }
    }
}

/// Joins the sums of my piece, and sends what they are as floats.
void reduction::sum(std::int64_t of_round, transport& by)
{
    auto const part = piece_of(self_, of_round);
    if (part.empty()) {
        return;
    }
    mine_.copy(part, total_.data(), total_.data());
    for (std::size_t h = 0; h < holders_.size(); ++h) {
        if (h != self_) {
            mine_.add(sums_buffer(h, of_round, false), total_.data(), part.size());
        }
    }
    auto* const here = values_.data() + part.begin;
    auto* const in_messages = values_for_messages(self_, of_round, part);
    mine_.convert(total_.data(), part, here);
    if (in_messages != here) {
        backend_->copy(in_messages, here, static_cast<std::size_t>(part.size()) * sizeof(float));
    }
    backend_->wait();
    auto& place = places_[static_cast<std::size_t>(of_round % in_flight)];
    for (std::size_t h = 0; h < holders_.size(); ++h) {
        if (h != self_ && keeps(h)) {
            std::span const sent{in_messages, static_cast<std::size_t>(part.size())};
            place.sends.push_back(by.send(holders_[h], mpi::channel::reduce_values, id_.value, std::as_bytes(sent)));
        }
    }
}

/// Takes the others' values out of the buffers, which are then free.
void reduction::finish(std::int64_t of_round)
{
    if (backend_->has_one_memory() || !keeps(self_)) {
        return;
    }
    for (std::size_t h = 0; h < holders_.size(); ++h) {
        if (auto const theirs = piece_of(h, of_round); h != self_ && !theirs.empty()) {
            backend_->copy(values_.data() + theirs.begin, values_for_messages(h, of_round, theirs), static_cast<std::size_t>(theirs.size()) * sizeof(float));
        }
    }
    backend_->wait();
}

bool reduction::advance(transport& by)
{
    if (by.sums() && !alone()) {
        return by_transport_.advance(by);
    }
    auto const place_of = [&](std::int64_t of_round) -> round& { return places_[static_cast<std::size_t>(of_round % in_flight)]; };
    for (bool moved = true; moved && finished_ < rounds_;) {
        moved = false;
        if (summed_ < begun_ && all_done(place_of(summed_).sums, by)) {
            sum(summed_++, by);
            moved = true;
        }
        if (auto& oldest = place_of(finished_); finished_ < summed_ && all_done(oldest.values, by) && all_done(oldest.sends, by)) {
            finish(finished_++);
            if (begun_ < rounds_) {
                begin(begun_++, by);
            }
            moved = true;
        }
    }
    return finished_ == rounds_;
}

float const* reduction::piece(tensor_id tensor, std::int64_t first, std::int64_t count, array<float>& room) const
{
    if (!in_place_) {
        return values_.data() + mine_.range_of(tensor).begin + first;
    }
    if (room.size() < static_cast<std::size_t>(count)) {
        backend_->wait();
        room.resize(static_cast<std::size_t>(count));
    }
    mine_.convert_in_place(tensor, first, count, room.data());
    return room.data();
}

float const* reduction::gradient(tensor_id tensor) { return in_place_ ? mine_.replace_in_place(tensor) : values_.data() + mine_.range_of(tensor).begin; }

std::span<float> reduction::place_of(tensor_id tensor)
{
    auto const part = mine_.range_of(tensor);
    return {values_.data() + part.begin, static_cast<std::size_t>(part.size())};
}

std::span<float> reduction::staging(tensor_id tensor)
{
    auto const place = place_of(tensor);
    return backend_->has_one_memory() ? place : std::span{values_in_messages_.data() + (place.data() - values_.data()), place.size()};
}

void reduction::staged()
{
    if (!backend_->has_one_memory()) {
        backend_->copy(values_.data(), values_in_messages_.data(), values_.size() * sizeof(float));
        backend_->wait();
    }
}

bytes reduction::buffer_bytes() const { return {static_cast<std::int64_t>(values_.size() * sizeof(float) + total_.size() + in_messages_.size())}; }

void reduction::reset()
{
    places_ = {};
    by_transport_.reset();
    begun_ = summed_ = finished_ = 0;
    posted_ = false;
}

}  // namespace rheo::inline v0
