#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the tests of schedules share: programs from text, random acyclic programs, and the oracle that
// tries every order of progress.

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "rheo/schedule/check/interpret.hpp"
#include "rheo/schedule/draw/grid_text.hpp"
#include "rheo/units/expects.hpp"

namespace test {

using namespace rheo;

inline program from_text(std::string const& text, std::vector<int> placement)
{
    auto const parsed = parse_grid(text, std::move(placement));
    expects(parsed.error().empty(), parsed.error().c_str());
    return without_idle(*parsed);
}

inline std::vector<int> identity(int ranks)
{
    std::vector<int> placement;
    for (int r = 0; r < ranks; ++r) {
        placement.push_back(r);
    }
    return placement;
}

/// A compute program in a random acyclic order: computations are drawn from those that are ready.
inline program random_program(std::mt19937& draw, int ranks, int stages, int microbatches)
{
    auto const below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>{0, n - 1}(draw); };
    program result{{}, std::vector<std::vector<instruction>>(static_cast<std::size_t>(ranks))};
    for (int s = 0; s < stages; ++s) {
        result.placement.push_back(static_cast<int>(below(static_cast<std::size_t>(ranks))));
    }
    std::vector<instruction> ready;
    std::vector<int> deepest;
    std::vector<bool> split;
    for (int m = 0; m < microbatches; ++m) {
        ready.push_back({instruction_kind::forward, 0, m});
        deepest.push_back(static_cast<int>(below(static_cast<std::size_t>(stages) + 1)));
        split.push_back(below(2) == 1);
    }
    while (!ready.empty()) {
        auto const k = below(ready.size());
        auto const i = ready[k];
        ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(k));
        result.rows[static_cast<std::size_t>(result.placement[static_cast<std::size_t>(i.stage)])].push_back(i);
        auto const m = static_cast<std::size_t>(i.item);
        auto const backward = split[m] ? instruction_kind::input_gradient : instruction_kind::backward;
        if (i.kind == instruction_kind::forward && i.stage + 1 < stages) {
            ready.push_back({instruction_kind::forward, static_cast<std::int16_t>(i.stage + 1), i.item});
        } else if (i.kind == instruction_kind::forward && deepest[m] < stages) {
            ready.push_back({backward, i.stage, i.item});
        } else if (i.kind == backward && i.stage > deepest[m]) {
            ready.push_back({backward, static_cast<std::int16_t>(i.stage - 1), i.item});
        }
        if (i.kind == instruction_kind::input_gradient) {
            ready.push_back({instruction_kind::weight_gradient, i.stage, i.item});
        }
    }
    return result;
}

/// Every order of progress of the product under untagged rendezvous, by plain search over all states;
/// written without the library's interpretation. True when no order can get stuck.
class every_order {
public:
    explicit every_order(std::vector<program> programs)
    {
        for (std::size_t p = 0; p < programs.size(); ++p) {
            for (std::size_t r = 0; r < programs[p].rows.size(); ++r) {
                rows_.push_back({p, static_cast<int>(r), programs[p].rows[r]});
                for (auto const& i : programs[p].rows[r]) {
                    if (is_reduction(i.kind)) {
                        holders_[i.item].insert(rows_.size() - 1);
                    }
                }
            }
        }
        programs_ = std::move(programs);
    }

    bool ends()
    {
        std::vector<std::size_t> const begin(rows_.size());
        seen_.clear();
        return explore(begin);
    }

private:
    struct row {
        std::size_t pipeline;
        int position;
        std::vector<instruction> instructions;
    };

    bool done(std::vector<std::size_t> const& at, std::size_t pipeline, instruction wanted) const
    {
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            auto const end = rows_[r].instructions.begin() + static_cast<std::ptrdiff_t>(at[r]);
            if (rows_[r].pipeline == pipeline && std::find(rows_[r].instructions.begin(), end, wanted) != end) {
                return true;
            }
        }
        return false;
    }

    bool gradient_done(std::vector<std::size_t> const& at, std::size_t p, int stage, int item) const
    {
        auto const s = static_cast<std::int16_t>(stage);
        return done(at, p, {instruction_kind::backward, s, item}) || done(at, p, {instruction_kind::input_gradient, s, item});
    }

    bool computable(std::vector<std::size_t> const& at, row const& r, instruction i) const
    {
        auto const p = r.pipeline;
        auto const& place = programs_[p].placement;
        auto const here = [&](int s) { return place[static_cast<std::size_t>(s)] == r.position; };
        auto const stages = static_cast<int>(place.size());
        if (i.kind == instruction_kind::forward) {
            auto const source = static_cast<std::int16_t>(i.stage - 1);
            return i.stage == 0 || done(at, p, {instruction_kind::receive_activation, i.stage, i.item}) ||
                   (here(source) && done(at, p, {instruction_kind::forward, source, i.item}));
        }
        if (i.kind == instruction_kind::weight_gradient) {
            return gradient_done(at, p, i.stage, i.item);
        }
        return done(at, p, {instruction_kind::forward, i.stage, i.item}) &&
               (i.stage + 1 == stages || done(at, p, {instruction_kind::receive_gradient, i.stage, i.item}) ||
                (here(i.stage + 1) && gradient_done(at, p, i.stage + 1, i.item)));
    }

    bool sendable(std::vector<std::size_t> const& at, std::size_t p, instruction i) const
    {
        return i.kind == instruction_kind::send_activation ? done(at, p, {instruction_kind::forward, i.stage, i.item}) : gradient_done(at, p, i.stage, i.item);
    }

    bool explore(std::vector<std::size_t> const& at)
    {
        if (!seen_.insert(at).second) {
            return true;
        }
        bool moved = false;
        bool finished = true;
        for (std::size_t r = 0; r < rows_.size(); ++r) {
            if (at[r] == rows_[r].instructions.size()) {
                continue;
            }
            finished = false;
            for (auto const& next : successors(at, r)) {
                moved = true;
                if (!explore(next)) {
                    return false;
                }
            }
        }
        return finished || moved;
    }

    std::vector<std::vector<std::size_t>> successors(std::vector<std::size_t> const& at, std::size_t r) const
    {
        auto const i = rows_[r].instructions[at[r]];
        auto next = at;
        ++next[r];
        if (i.kind == instruction_kind::post_reduction || (is_compute(i.kind) && computable(at, rows_[r], i))) {
            return {next};
        }
        if (i.kind == instruction_kind::await_reduction) {
            auto const& holders = holders_.at(i.item);
            bool const all = std::all_of(holders.begin(), holders.end(), [&](std::size_t h) {
                auto const& is = rows_[h].instructions;
                auto const end = is.begin() + static_cast<std::ptrdiff_t>(at[h]);
                return std::any_of(is.begin(), end, [&](instruction x) { return x.kind == instruction_kind::post_reduction && x.item == i.item; });
            });
            std::vector<std::vector<std::size_t>> moves;
            if (all) {
                moves.push_back(next);
            }
            return moves;
        }
        if (!is_send(i.kind) || !sendable(at, rows_[r].pipeline, i)) {
            return {};
        }
        bool const up = i.kind == instruction_kind::send_activation;
        instruction const answer{up ? instruction_kind::receive_activation : instruction_kind::receive_gradient,
                                 static_cast<std::int16_t>(i.stage + (up ? 1 : -1)), i.item};
        for (std::size_t o = 0; o < rows_.size(); ++o) {
            if (o != r && rows_[o].pipeline == rows_[r].pipeline && at[o] < rows_[o].instructions.size() && rows_[o].instructions[at[o]] == answer) {
                ++next[o];
                return {next};
            }
        }
        return {};
    }

    std::vector<program> programs_;
    std::vector<row> rows_;
    std::map<int, std::set<std::size_t>> holders_;
    std::set<std::vector<std::size_t>> seen_;
};

}  // namespace test
