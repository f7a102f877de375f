// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/step_reduction.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace rheo::inline v0 {

namespace {

not_finite_place earlier(std::optional<not_finite_place> const& known, not_finite_place found)
{
    if (!known || found.microbatch < known->microbatch || (found.microbatch == known->microbatch && found.layer < known->layer)) {
        return found;
    }
    return *known;
}

}  // namespace

void add_accumulators(step_totals& totals, resident_state& resident)
{
    auto const& state = resident.info();
    auto const all_rows = resident.rows_of_all();
    for (use_id use{0}; at(use) < state.uses.size(); ++use) {
        if (!resident.has_accumulator(use)) {
            continue;
        }
        auto const& info = state.uses[at(use)];
        auto const& accumulator = resident.accumulator(use);
        auto const first = std::span{totals.magnitudes}.subspan(resident.first_scale(info.tensor));
        auto const rows = all_rows[at(use)];
        for (std::size_t r = 0; r < rows.size(); ++r) {
            auto const size = rows[r].max_abs;
            first[r] = std::max(first[r], std::isfinite(size) ? size : 0.0F);
        }
        if (accumulator.rows.empty()) {
            first[0] = std::max(first[0], accumulator.state.max_abs);
        }
        totals.overflow = totals.overflow || accumulator.state.overflow;
        if (accumulator.state.not_finite) {
            totals.not_finite = earlier(totals.not_finite, {accumulator.not_finite_at, info.layer});
        }
        if (!state.tensors[at(info.tensor)].is_parameter) {
            totals.loss = totals.loss + loss_sum{.fixed = accumulator.sums[0], .targets = accumulator.sums[1], .not_finite = accumulator.state.not_finite != 0};
        }
    }
}

void add_squares(step_totals& totals, resident_state& resident, std::deque<reduction> const& reductions, array<float>& room)
{
    auto& backend = resident.backend();
    std::vector<tensor_id> added;
    std::vector<tensor_id> together;
    std::vector<gradient_norm_arguments> gradients;
    for (auto const& r : reductions) {
        for (auto const t : r.unit().tensors) {
            if (!resident.keeps(t)) {
                continue;
            }
            auto const count = elements(resident.info(t).shape);
            if (resident.sums_in_rows(resident.info(t))) {  // the same pieces in the same order, wherever the gradient lies
                for (std::int64_t first = 0; first < count; first += gradient_piece) {
                    auto const size = std::min(gradient_piece, count - first);
                    gradient_norm_arguments const piece{.count = size, .gradient = r.piece(t, first, size, room)};
                    backend.add_sums_of_squares({&piece, 1});
                    added.push_back(t);
                }
            } else {
                together.push_back(t);
                gradients.push_back({.count = count, .gradient = r.piece(t, 0, count, room)});
            }
        }
    }
    backend.add_sums_of_squares(gradients);
    added.insert(added.end(), together.begin(), together.end());
    auto const sums = backend.sums_of_squares();
    for (std::size_t i = 0; i < sums.size(); ++i) {
        totals.squares[at(added[i])] += sums[i];
    }
    for (auto& sum : totals.squares) {
        sum = std::isfinite(sum) ? sum : 0.0;
    }
}

}  // namespace rheo::inline v0
