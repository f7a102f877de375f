#pragma once
// SPDX-License-Identifier: Apache-2.0

// The oracle of schedulers and searches: every order there is, for very small sizes; and costs drawn at random.

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/core/text.hpp"
#include "rheo/schedule/search/list_schedule.hpp"

namespace test {

using namespace rheo;

/// The shortest makespan over all rows' orders that keep within the cap, by trying each instruction that is ready next, anywhere.
class every_schedule {
public:
    explicit every_schedule(list_request request) : request_{std::move(request)}
    {
        state_.rows.resize(static_cast<std::size_t>(request_.ranks));
        state_.placement = request_.placement;
        state_.slices = request_.slices;
        state_.copies = request_.copies;
        kinds_ = {instruction_kind::forward, request_.split ? instruction_kind::input_gradient : instruction_kind::backward};
        if (request_.split) {
            kinds_.push_back(instruction_kind::weight_gradient);
        }
    }

    double shortest()
    {
        explore(0);
        return best_;
    }

private:
    void explore(std::size_t count)
    {
        auto const stages = static_cast<int>(request_.placement.size());
        auto const items = request_.microbatches * request_.slices;
        if (!seen_.insert(to_text(state_)).second) {
            return;
        }
        if (count == static_cast<std::size_t>(stages / request_.copies * items) * kinds_.size()) {
            best_ = std::min(best_, makespan(state_, request_.costs).count);
            return;
        }
        for (int s = 0; s < stages; ++s) {
            for (int m = 0; m < items; ++m) {
                for (auto const kind : kinds_) {
                    auto const i = make_instruction(kind, stage_id{s}, microbatch_id{m});
                    auto& row = state_.rows[static_cast<std::size_t>(request_.placement[static_cast<std::size_t>(s)])];
                    if (m / request_.slices % request_.copies != s / stages_per_copy(state_) || has(i) || !is_ready(i)) {
                        continue;
                    }
                    row.push_back(i);
                    if (held(row) <= request_.cap || request_.cap == bytes{}) {
                        explore(count + 1);
                    }
                    row.pop_back();
                }
            }
        }
    }

    bool is_ready(instruction i) const
    {
        auto const slices = request_.slices;
        auto const other = [&](instruction_kind kind, int stage, int item) { return has({kind, static_cast<std::int16_t>(stage), item}); };
        if (i.kind == instruction_kind::forward) {
            return (i.stage % stages_per_copy(state_) == 0 || other(i.kind, i.stage - 1, i.item)) &&
                   (i.item % slices == 0 || other(i.kind, i.stage, i.item - 1));
        }
        if (i.kind == instruction_kind::weight_gradient) {
            return other(instruction_kind::input_gradient, i.stage, i.item);
        }
        bool const last = (i.stage + 1) % stages_per_copy(state_) == 0;
        return other(instruction_kind::forward, i.stage, i.item) && (last || other(i.kind, i.stage + 1, i.item)) &&
               ((i.item + 1) % slices == 0 || other(i.kind, i.stage, i.item + 1));
    }

    bytes held(std::vector<instruction> const& row) const
    {
        bytes sum;
        for (auto const& i : row) {
            auto const size = request_.activations.empty() ? bytes{1} : request_.activations[static_cast<std::size_t>(i.stage)];
            bool const last = i.kind == instruction_kind::backward || i.kind == instruction_kind::weight_gradient;
            sum = i.kind == instruction_kind::forward ? sum + size : last ? sum - size : sum;
        }
        return sum;
    }

    bool has(instruction i) const
    {
        auto const& row = state_.rows[static_cast<std::size_t>(state_.placement[static_cast<std::size_t>(i.stage)])];
        return std::find(row.begin(), row.end(), i) != row.end();
    }

    list_request request_;
    program state_;
    std::vector<instruction_kind> kinds_;
    std::set<std::string> seen_;
    double best_ = 1e9;
};

inline stage_costs random_costs(std::mt19937& draw, int stages)
{
    auto const some = [&] { return seconds{static_cast<double>(std::uniform_int_distribution{1, 5}(draw))}; };
    stage_costs costs;
    for (int s = 0; s < stages; ++s) {
        auto const i = some();
        auto const w = some();
        costs.push_back({some(), i + w, i, w, seconds{static_cast<double>(draw() % 2)}, seconds{0.0}});
    }
    return costs;
}

}  // namespace test
