// SPDX-License-Identifier: Apache-2.0
#include "executor/data/sequence_windows.hpp"

#include <algorithm>
#include <utility>

#include "executor/data/sequence_order.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::size_t block = 64;  // documents between two that are numbered, so that a document takes little more than its end

}  // namespace

sequence_windows::sequence_windows(std::int64_t begin, std::int64_t end, std::int64_t length)
    : begin_{begin},
      length_{length},
      count_{std::max<std::int64_t>(end - begin - 1, 0) / length},
      slack_{std::max<std::int64_t>(end - begin - 1, 0) % length},
      places_{std::max<std::int64_t>(end - begin - length, 0)}
{
}

sequence_windows::sequence_windows(std::int64_t begin, std::int64_t length, std::vector<std::int64_t> ends)
    : begin_{begin}, length_{length}, ends_{std::move(ends)}
{
    for (std::size_t d = 0; d < ends_.size(); ++d) {
        if (d % block == 0) {
            blocks_.push_back({count_, places_});
        }
        count_ += windows_in(d);
        places_ += targets_in(d);
    }
}

template <class Before, class Count>
std::size_t sequence_windows::find(std::int64_t& number, Before before, Count count) const
{
    auto const after = std::upper_bound(blocks_.begin(), blocks_.end(), number, [&](std::int64_t n, block_start const& b) { return n < before(b); });
    auto document = static_cast<std::size_t>(after - blocks_.begin() - 1) * block;
    number -= before(*(after - 1));
    while (number >= count(document)) {
        number -= count(document++);
    }
    return document;
}

token_window sequence_windows::nth(std::int64_t n, std::int64_t moved) const
{
    expects(n >= 0 && n < count_ && moved >= 0 && moved <= slack_, "a sequence is one of its source");
    if (blocks_.empty()) {
        return {begin_ + moved + n * length_, length_};
    }
    auto const before = [](block_start const& b) { return b.windows; };
    auto const count = [&](std::size_t d) { return windows_in(d); };
    auto const document = find(n, before, count);
    return {begin_of(document) + n * length_, std::min(length_, targets_in(document) - n * length_)};
}

token_window sequence_windows::drawn(std::uint64_t fraction) const
{
    auto place = scaled(fraction, places_);
    if (blocks_.empty()) {
        return {begin_ + place, length_};
    }
    auto const before = [](block_start const& b) { return b.targets; };
    auto const count = [&](std::size_t d) { return targets_in(d); };
    auto const document = find(place, before, count);
    auto const from = std::max<std::int64_t>(std::min(place, targets_in(document) - length_), 0);
    return {begin_of(document) + from, std::min(length_, targets_in(document) - from)};
}

}  // namespace rheo::inline v0
