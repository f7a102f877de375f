// SPDX-License-Identifier: Apache-2.0
#include "executor/state/group_sum.hpp"

#include <algorithm>

#include "executor/device/backend.hpp"

namespace rheo::inline v0 {

group_sum::group_sum(reduction_id id, unit_sums const& mine, compute_backend& backend) : id_{id}, mine_{&mine}, backend_{&backend}, buffers_{backend.own()} {}

void group_sum::prepare(bytes buffers)
{
    if (!in_rows()) {
        piece_ = std::max<std::int64_t>(buffers.count / static_cast<std::int64_t>(in_flight * sizeof(std::int64_t)) / 4 * 4, 4);
        buffers_.resize(static_cast<std::size_t>(piece_) * in_flight * sizeof(std::int64_t));
    }
}

/// What is summed in one go from this element on.
element_range group_sum::part_from(std::int64_t first) const
{
    return in_rows() ? mine_->tensor_at(first) : element_range{first, std::min(first + piece_, mine_->elements())};
}

transport::ticket group_sum::begin_sum(transport& by, std::byte const* mine, std::byte* total, element_range part)
{
    auto const size = static_cast<std::size_t>(part.size());
    bool const is_last = part.end == mine_->elements();
    if (in_rows()) {
        return by.sum(id_, std::span{reinterpret_cast<std::int32_t const*>(mine), size}, reinterpret_cast<std::int32_t*>(total), is_last);
    }
    return by.sum(id_, std::span{reinterpret_cast<std::int64_t const*>(mine), size}, reinterpret_cast<std::int64_t*>(total), is_last);
}

void group_sum::begin_next(transport& by)
{
    auto const part = part_from(next_);
    auto* const sums = in_rows() ? reinterpret_cast<std::byte*>(values_ + part.begin)
                                 : buffers_.data() + begun_ % in_flight * static_cast<std::size_t>(piece_) * sizeof(std::int64_t);
    auto const* mine = mine_->place_of(part);
    if (mine == nullptr) {
        mine_->copy(part, sums, sums);
        mine = sums;
    }
    backend_->wait();  // also for who has read the buffer
    under_way_.push_back({part, sums, begin_sum(by, mine, sums, part)});
    next_ = part.end;
    ++begun_;
}

void group_sum::begin(transport& by, float* values)
{
    values_ = values;
    while (next_ < mine_->elements() && under_way_.size() < in_flight) {
        begin_next(by);
    }
}

bool group_sum::advance(transport& by)
{
    while (!under_way_.empty() && by.done(under_way_.front().done)) {
        auto const& [part, sums, done] = under_way_.front();
        mine_->convert(sums, part, values_ + part.begin);
        under_way_.pop_front();
        if (next_ < mine_->elements()) {
            begin_next(by);
        } else if (under_way_.empty()) {
            backend_->wait();
        }
    }
    return under_way_.empty() && next_ == mine_->elements();
}

void group_sum::reset()
{
    next_ = 0;
    begun_ = 0;
    under_way_.clear();
}

}  // namespace rheo::inline v0
