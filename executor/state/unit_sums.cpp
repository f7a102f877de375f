// SPDX-License-Identifier: Apache-2.0
#include "executor/state/unit_sums.hpp"

#include <algorithm>

#include "executor/device/backend.hpp"

namespace rheo::inline v0 {

unit_sums::unit_sums(reduction_unit const& unit, resident_state& state)
    : unit_{&unit},
      state_{&state},
      backend_{&state.backend()},
      in_rows_{backend_->policy().accumulate == dtype::i32},
      in_place_{in_rows_ && std::all_of(unit.tensors.begin(), unit.tensors.end(), [&](tensor_id t) { return state.info(t).uses.size() == 1; })}
{
    std::int64_t next = 0;
    for (auto const t : unit.tensors) {
        offsets_.push_back(next);
        next += rheo::elements(state.info(t).shape);
    }
    offsets_.push_back(next);
}

element_range unit_sums::range_of(tensor_id tensor) const
{
    auto const i = static_cast<std::size_t>(std::lower_bound(unit_->tensors.begin(), unit_->tensors.end(), tensor) - unit_->tensors.begin());
    return {offsets_[i], offsets_[i + 1]};
}

/// The uses of a tensor that this rank has: usually one, two when it has both ends of a tie.
std::vector<use_id> unit_sums::mine_of(tensor_id tensor) const
{
    auto uses = state_->info(tensor).uses;
    std::erase_if(uses, [&](use_id use) { return !state_->has_accumulator(use); });
    return uses;
}

std::byte const* unit_sums::sums_of(use_id use) const
{
    auto const& from = state_->accumulator(use);
    return in_rows_ ? reinterpret_cast<std::byte const*>(from.sums_in_32.data()) : reinterpret_cast<std::byte const*>(from.sums.data());
}

std::byte const* unit_sums::place_of(element_range part) const
{
    auto const i = static_cast<std::size_t>(std::upper_bound(offsets_.begin(), offsets_.end(), part.begin) - offsets_.begin()) - 1;
    if (i + 1 >= offsets_.size() || part.end > offsets_[i + 1]) {
        return nullptr;
    }
    auto const uses = mine_of(unit_->tensors[i]);
    return uses.size() == 1 ? sums_of(uses.front()) + static_cast<std::size_t>(part.begin - offsets_[i]) * sum_size() : nullptr;
}

void unit_sums::copy(element_range part, std::byte* target, std::byte* room) const
{
    auto const size = sum_size();
    for (std::size_t i = 0; i < unit_->tensors.size(); ++i) {
        element_range const here{std::max(part.begin, offsets_[i]), std::min(part.end, offsets_[i + 1])};
        if (here.empty()) {
            continue;
        }
        auto const uses = mine_of(unit_->tensors[i]);
        auto const skipped = static_cast<std::size_t>(here.begin - part.begin) * size;
        auto const from = [&](use_id use) { return sums_of(use) + static_cast<std::size_t>(here.begin - offsets_[i]) * size; };
        auto const count = static_cast<std::size_t>(here.size()) * size;
        auto* const sum = uses.size() == 1 ? target + skipped : room + skipped;
        backend_->copy(sum, from(uses.front()), count);
        for (std::size_t u = 1; u < uses.size(); ++u) {
            add(from(uses[u]), sum, here.size());
        }
        if (sum != target + skipped) {
            backend_->copy(target + skipped, sum, count);
        }
    }
}

void unit_sums::add(std::byte const* source, std::byte* target, std::int64_t count) const
{
    if (!in_rows_) {
        backend_->add(
            exact_add_arguments{.count = count, .source = reinterpret_cast<std::int64_t const*>(source), .target = reinterpret_cast<std::int64_t*>(target)});
        return;
    }
    auto const* from = reinterpret_cast<std::int32_t const*>(source);  // sums of the same scales: any rows will do
    auto* to = reinterpret_cast<std::int32_t*>(target);
    for (std::int64_t const width : {std::int64_t{4096}, std::int64_t{1}}) {
        if (auto const rows = count / width; rows > 0) {
            backend_->add(exact_rows_add_arguments{.rows = rows, .source = from, .source_states = nullptr, .target = {.sums = to, .width = width}});
            from += rows * width;
            to += rows * width;
            count -= rows * width;
        }
    }
}

void unit_sums::convert(std::byte const* sums, element_range part, float* gradient) const
{
    for (std::size_t i = 0; i < unit_->tensors.size(); ++i) {
        element_range const here{std::max(part.begin, offsets_[i]), std::min(part.end, offsets_[i + 1])};
        if (here.empty()) {
            continue;
        }
        auto const t = unit_->tensors[i];
        auto const* const from = sums + static_cast<std::size_t>(here.begin - part.begin) * sum_size();
        auto* const to = gradient + (here.begin - part.begin);
        if (in_rows_) {
            convert_rows(t, reinterpret_cast<std::int32_t const*>(from), here.begin - offsets_[i], here.size(), to);
        } else {
            backend_->convert(exact_convert_arguments{
                .count = here.size(), .sums = reinterpret_cast<std::int64_t const*>(from), .scale_log2 = state_->scales_of(t).front(), .gradient = to});
        }
    }
}

/// Elements of a tensor from `first` on: the rest of a row, whole rows, the beginning of one.
void unit_sums::convert_rows(tensor_id tensor, std::int32_t const* sums, std::int64_t first, std::int64_t count, float* gradient) const
{
    auto& states = state_->accumulator(mine_of(tensor).front()).rows;
    auto const width = state_->info(tensor).shape.columns;
    while (count > 0) {
        bool const whole = first % width == 0 && count >= width;
        auto const run = whole ? count / width * width : std::min(count, width - first % width);
        backend_->convert(exact_rows_convert_arguments{
            .rows = whole ? run / width : 1,
            .source = {.sums = const_cast<std::int32_t*>(sums), .states = states.data() + first / width, .width = whole ? width : run},
            .gradient = gradient});
        sums += run;
        gradient += run;
        first += run;
        count -= run;
    }
}

void unit_sums::convert_in_place(tensor_id tensor, std::int64_t first, std::int64_t count, float* gradient) const
{
    convert_rows(tensor, state_->accumulator(mine_of(tensor).front()).sums_in_32.data() + first, first, count, gradient);
}

float const* unit_sums::replace_in_place(tensor_id tensor)
{
    auto& sums = state_->accumulator(mine_of(tensor).front()).sums_in_32;
    auto* const floats = reinterpret_cast<float*>(sums.data());
    convert_rows(tensor, sums.data(), 0, static_cast<std::int64_t>(sums.size()), floats);
    return floats;
}

}  // namespace rheo::inline v0
