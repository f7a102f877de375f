#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where PyTorch puts its cells about parameters that are spread over ranks (torch/distributed/pipelining/schedules.py,
// _add_unshard_reshard and _add_reduce_grad): a stage's parameters are gathered when the stage is one of the next few that the rank
// works on, and spread again when it no longer is; its gradients are reduced behind its last backward. They are
// for what is published as text; here a rank has its stages whole, and reductions are instructions (reductions.hpp).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/schedule/core/grid.hpp"
#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace detail {

enum parameter_word : std::uint8_t { unshard, reshard, reduce_grad };  ///< places in parameter_words

/// The next `count` different stages of a row from a place on, in their order.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::int16_t> next_stages(std::vector<instruction> const& row, std::size_t from, std::size_t count)
{
    std::vector<std::int16_t> stages;
    for (auto k = from; k < row.size() && stages.size() < count; ++k) {
        if (std::find(stages.begin(), stages.end(), row[k].stage) == stages.end()) {
            stages.push_back(row[k].stage);
        }
    }
    return stages;
}

}  // namespace detail

/// The program with cells that gather the parameters of the next `at_once` stages of a rank and spread those of all others.
/// @pre the program only computes, at_once >= 1
template <class OnlyWhenCalled = void>
constexpr program_grid with_parameters_gathered(program const& p, std::size_t at_once = 3)
{
    expects(at_once >= 1, "a rank gathers the parameters of at least one stage");
    auto result = as_grid(p);
    for (std::size_t r = 0; r < p.rows.size(); ++r) {
        std::vector<std::int16_t> gathered;
        for (std::size_t k = 0; k <= p.rows[r].size(); ++k) {
            auto const next = detail::next_stages(p.rows[r], k, at_once);
            std::vector<std::int16_t> kept;
            for (auto const stage : gathered) {
                if (std::find(next.begin(), next.end(), stage) != next.end()) {
                    kept.push_back(stage);
                } else {
                    result.parameters.push_back({r, k, stage, detail::reshard});
                }
            }
            for (auto const stage : next) {
                if (std::find(kept.begin(), kept.end(), stage) == kept.end()) {
                    kept.push_back(stage);
                    result.parameters.push_back({r, k, stage, detail::unshard});
                }
            }
            gathered = kept;
        }
    }
    return result;
}

/// The program with a cell that reduces a stage's gradients behind the stage's last backward (or weight gradient, where split).
/// @pre the program only computes
template <class OnlyWhenCalled = void>
constexpr program_grid with_gradients_reduced(program const& p)
{
    auto result = as_grid(p);
    for (std::size_t r = 0; r < p.rows.size(); ++r) {
        auto const& row = p.rows[r];
        for (std::size_t k = 0; k < row.size(); ++k) {
            bool last = row[k].kind == instruction_kind::backward || row[k].kind == instruction_kind::weight_gradient;
            for (auto later = k + 1; later < row.size() && last; ++later) {
                bool const ends = row[later].kind == instruction_kind::backward || row[later].kind == instruction_kind::weight_gradient;
                last = !ends || row[later].stage != row[k].stage;
            }
            if (last) {
                result.parameters.push_back({r, k + 1, row[k].stage, detail::reduce_grad});
            }
        }
    }
    return result;
}

}  // namespace rheo::inline v0
