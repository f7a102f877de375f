// SPDX-License-Identifier: Apache-2.0
#include "executor/records/progress.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "executor/plan/amount_text.hpp"
#include "executor/records/record_text.hpp"

namespace rheo::inline v0 {

std::string progress_line(step_record const& r, seconds left, std::size_t width)
{
    struct part {
        std::string text;
        int rank;  ///< parts of the largest are left out first
    };
    auto const per_second = r.duration.count > 0 ? static_cast<double>(r.tokens) / r.duration.count : 0;
    std::vector<part> parts{{fmt::format("step {}{}", r.step.value + 1, r.of_steps > 0 ? fmt::format("/{}", r.of_steps) : ""), 0},
                            {fmt::format("loss {}", loss_text(r.loss)), 0},
                            {fmt::format("norm {:.3g}", r.gradient_norm), 3},
                            {fmt::format("lr {:.3g}", r.learning_rate), 4},
                            {fmt::format("{:.0f} tokens/s", per_second), 1},
                            {fmt::format("{} rank{}", r.ranks, r.ranks == 1 ? "" : "s"), 2}};
    if (mfu(r) > 0) {
        parts.insert(parts.end() - 1, {fmt::format("mfu {:.3g} %", 100 * mfu(r)), 3});
    }
    if (r.energy.count > 0) {
        parts.push_back({fmt::format("{:.4g} J, {:.3g} J/token", r.energy.count, r.energy.count / static_cast<double>(r.tokens)), 5});
    }
    if (r.skipped) {
        parts.push_back({"skipped: not finite", 0});
    }
    if (left >= seconds{1.0}) {
        parts.push_back({fmt::format("{} left", rough_time_text(left.count)), 1});
    }
    auto const joined = [&] {
        std::string line;
        for (auto const& p : parts) {
            line += (line.empty() ? "" : "  ") + p.text;
        }
        return line;
    };
    for (auto line = joined();; line = joined()) {
        auto const least = std::max_element(parts.begin(), parts.end(), [](part const& a, part const& b) { return a.rank < b.rank; });
        if (line.size() <= width || least->rank == 0) {
            return line;
        }
        parts.erase(least);
    }
}

}  // namespace rheo::inline v0
