// SPDX-License-Identifier: Apache-2.0
#include "runtime/reduction.hpp"

#include <algorithm>
#include <span>

namespace rheo::inline v0 {

reduction::reduction(reduction_id id, reduction_unit const& unit, std::vector<rank_id> holders, resident_state& state)
    : id_{id}, unit_{&unit}, holders_{std::move(holders)}, state_{&state}, on_{&state.on()}, mine_{on_->shared()}, total_{on_->shared()}, values_{on_->own()},
      outgoing_{on_->messages()}, values_in_messages_{on_->messages()}
{
    std::int64_t next = 0;
    for (auto const t : unit.tensors) {
        offsets_.push_back(next);
        next += elements(state.info(t).shape);
    }
    offsets_.push_back(next);
    values_.resize(static_cast<std::size_t>(next));
    for (std::size_t h = 0; h < holders_.size(); ++h) {
        incoming_.emplace_back(on_->messages());
    }
    if (holders_.size() > 1 && !on_->has_one_memory()) {
        outgoing_.resize(values_.size());
        values_in_messages_.resize(values_.size());
    }
}

reduction::slice reduction::slice_of(std::size_t holder) const
{
    auto const count = static_cast<std::int64_t>(holders_.size());
    auto const i = static_cast<std::int64_t>(holder);
    return {offsets_.back() * i / count, offsets_.back() * (i + 1) / count};
}

void reduction::sum_mine()
{
    // The sum over the uses that this rank has of each tensor: usually one, two when it has both ends of a tie.
    std::vector<use_id> only;
    for (auto const t : unit_->tensors) {
        for (auto const use : state_->info(t).uses) {
            if (state_->has_accumulator(use)) {
                only.push_back(use);
            }
        }
    }
    if (unit_->tensors.size() == 1 && only.size() == 1) {
        sums_ = state_->accumulator(only.front()).sums.data();
        return;
    }
    mine_.resize(static_cast<std::size_t>(offsets_.back()));
    for (std::size_t i = 0; i < unit_->tensors.size(); ++i) {
        bool first = true;
        for (auto const use : state_->info(unit_->tensors[i]).uses) {
            if (!state_->has_accumulator(use)) {
                continue;
            }
            auto const& sums = state_->accumulator(use).sums;
            auto* const target = mine_.data() + offsets_[i];
            if (first) {
                on_->copy(target, sums.data(), sums.size() * sizeof(std::int64_t));
                first = false;
            } else {
                on_->add({.count = static_cast<std::int64_t>(sums.size()), .source = sums.data(), .target = target});
            }
        }
    }
    sums_ = mine_.data();
}

void reduction::convert(std::int64_t const* sums, slice part)
{
    for (std::size_t i = 0; i < unit_->tensors.size(); ++i) {
        auto const begin = std::max(part.begin, offsets_[i]);
        auto const end = std::min(part.end, offsets_[i + 1]);
        if (begin < end) {
            on_->convert({.count = end - begin, .sums = sums + (begin - part.begin),
                          .scale_log2 = state_->scales[at(unit_->tensors[i])], .gradient = values_.data() + begin});
        }
    }
}

/// Between where kernels and where messages have them.
void reduction::copy_values(slice part, direction way)
{
    if (!on_->has_one_memory()) {
        auto* const here = values_.data() + part.begin;
        auto* const in_messages = values_in_messages_.data() + part.begin;
        bool const goes = way == direction::to_messages;
        on_->copy(goes ? in_messages : here, goes ? here : in_messages, part.size() * sizeof(float));
    }
}

void reduction::post(mpi::messenger& messages)
{
    me_ = static_cast<std::size_t>(std::lower_bound(holders_.begin(), holders_.end(), messages.members().me) - holders_.begin());
    if (holders_.size() == 1) {
        sum_mine();
        convert(sums_, {0, offsets_.back()});
        phase_ = phase::done;
        return;
    }
    sum_mine();
    auto const* outgoing = sums_;
    if (!on_->has_one_memory()) {
        on_->copy(outgoing_.data(), sums_, outgoing_.size() * sizeof(std::int64_t));
        outgoing = outgoing_.data();
    }
    on_->wait();
    phase_ = phase::summing;
    for (std::size_t h = 0; h < holders_.size(); ++h) {
        if (h == me_) {
            continue;
        }
        incoming_[h].resize(slice_of(me_).size());
        sum_receipts_.push_back(messages.receive(holders_[h], mpi::channel::reduce_sums, id_.value, std::span{incoming_[h].data(), incoming_[h].size()}));
        auto const theirs = slice_of(h);
        value_receipts_.push_back(messages.receive(holders_[h], mpi::channel::reduce_values, id_.value,
                                                   values_for_messages().subspan(static_cast<std::size_t>(theirs.begin), theirs.size())));
        sends_.push_back(messages.send(holders_[h], mpi::channel::reduce_sums, id_.value,
                                       std::span<std::int64_t const>{outgoing + theirs.begin, theirs.size()}));
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
        auto const part = slice_of(me_);
        total_.resize(part.size());
        on_->copy(total_.data(), sums_ + part.begin, part.size() * sizeof(std::int64_t));
        for (std::size_t h = 0; h < holders_.size(); ++h) {
            if (h != me_ && !total_.empty()) {
                on_->add({.count = static_cast<std::int64_t>(total_.size()), .source = incoming_[h].data(), .target = total_.data()});
            }
        }
        convert(total_.data(), part);
        copy_values(part, direction::to_messages);
        on_->wait();
        for (std::size_t h = 0; h < holders_.size(); ++h) {
            if (h != me_) {
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
            if (h != me_) {
                copy_values(slice_of(h), direction::from_messages);
            }
        }
        phase_ = phase::done;
    }
    return phase_ == phase::done;
}

float const* reduction::gradient(tensor_id tensor) const
{
    auto const place = std::lower_bound(unit_->tensors.begin(), unit_->tensors.end(), tensor) - unit_->tensors.begin();
    return values_.data() + offsets_[static_cast<std::size_t>(place)];
}

void reduction::reset()
{
    sum_receipts_.clear();
    value_receipts_.clear();
    sends_.clear();
    phase_ = phase::idle;
}

}  // namespace rheo::inline v0
