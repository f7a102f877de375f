#pragma once
// SPDX-License-Identifier: Apache-2.0

// The line that shows how a job goes: as much as fits the terminal, with the time that is left by the pace of the last steps.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "executor/records/records.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// How long steps take now: a mean in which each step counts a tenth.
class step_pace {
public:
    void add(seconds step) { mean_ = mean_ == seconds{} ? step : mean_ * 0.9 + step * 0.1; }

    /// For so many steps more; 0: not known.
    seconds left(std::int64_t steps) const { return mean_ * static_cast<double>(steps); }

private:
    seconds mean_{};
};

inline constexpr std::size_t any_width = std::numeric_limits<std::size_t>::max();

/// `step 12/400  loss 2.3456  norm 1.23  lr 0.0003  1234 tokens/s  mfu 41.5 %  5 ranks  3 min left`, parts left out where it is longer than `width`.
/// @param left until the last step; below a second, and 0, where it is not known: left out
std::string progress_line(step_record const& record, seconds left = {}, std::size_t width = any_width);

}  // namespace rheo::inline v0
