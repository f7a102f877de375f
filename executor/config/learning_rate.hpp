#pragma once
// SPDX-License-Identifier: Apache-2.0

// The learning rate of a step: linear warm-up, then half a cosine or what else optimizer.schedule says. Each rank computes it for itself, so it is made of
// sums and products only: ranks with other mathematics libraries get the same bits. WSD is Hu et al., MiniCPM (2024), section 4.2, with a linear decay.

#include <algorithm>
#include <cstdint>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "executor/config/config.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// cos(pi t) as the Taylor series of sin(pi (1/2 - t)), to the 25th power, whose rest is below 1e-16. @pre 0 <= t <= 1
constexpr double cosine_of_half_turn(double t)
{
    double const y = std::numbers::pi * (0.5 - t);
    double term = y;
    double sum = y;
    for (int n = 2; n <= 24; n += 2) {
        term *= -y * y / static_cast<double>(n * (n + 1));
        sum += term;
    }
    return sum;
}

/// The table of a config from "STEP: RATE" entries, or what is wrong with them.
result<std::vector<rate_from>> rate_table(std::span<std::string const> entries);

/// On the line between two entries; before the first and behind the last one, theirs. @pre ascending, not empty
constexpr double rate_in(std::span<rate_from const> table, std::int64_t step)
{
    auto const after = std::find_if(table.begin(), table.end(), [&](rate_from const& entry) { return entry.step > step; });
    if (after == table.begin()) {
        return table.front().rate;
    }
    auto const& before = *(after - 1);
    return after == table.end()
               ? before.rate
               : before.rate + (after->rate - before.rate) * (static_cast<double>(step - before.step) / static_cast<double>(after->step - before.step));
}

/// What is wrong with the keys of the schedule, as a sentence that begins with one of them; empty when nothing is.
std::string error_of_schedule(optimizer_config const& o);

/// What a fingerprint says of the rates. It names all that decides them, so a job of more steps has the same wherever its rates do not follow from them.
std::string rates_text(optimizer_config const& o, std::int64_t steps);

/// @param steps of the whole job  @param step counted from 0  @pre error_of_schedule is empty
constexpr double learning_rate(optimizer_config const& o, std::int64_t steps, step_id step)
{
    if (o.schedule == rate_schedule::table) {
        return rate_in(o.table, step.value);
    }
    if (step.value < o.warmup_steps) {
        return o.learning_rate * static_cast<double>(step.value + 1) / static_cast<double>(o.warmup_steps);
    }
    auto const after = step.value - o.warmup_steps;
    auto const part = [&](std::int64_t done, std::int64_t all) { return static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, all)); };
    auto const t = part(after, steps - o.warmup_steps);
    auto const decayed = [&](double left) { return o.final_learning_rate + (o.learning_rate - o.final_learning_rate) * left; };
    switch (o.schedule) {
    case rate_schedule::linear: return decayed(1.0 - t);
    case rate_schedule::constant: return o.learning_rate;
    case rate_schedule::wsd: return decayed(1.0 - std::clamp(part(after - o.stable_steps, o.decay_steps), 0.0, 1.0));
    default: return o.final_learning_rate + 0.5 * (o.learning_rate - o.final_learning_rate) * (1 + cosine_of_half_turn(t));
    }
}

}  // namespace rheo::inline v0
