#pragma once
// SPDX-License-Identifier: Apache-2.0

// Made-up profiles that are hard to round: few clocks at uneven distances, a high fixed power, stages of unlike lengths, and
// costs that are convex or not quite.

#include <cmath>
#include <random>

#include "rheo/energy/profile/profile.hpp"

namespace frontier_tests {

struct coarse_shape {
    int stages;
    int clocks;
    double fixed_power;  ///< W, of 300
    double noise = 0.0;  ///< of times and powers: 0 makes convex costs
};

inline rheo::profile coarse_profile(std::mt19937& draw, coarse_shape shape)
{
    using namespace rheo;
    auto const share = [&] { return static_cast<double>(draw() >> 5U) / 134217728.0; };
    std::vector<double> clocks{1740.0};
    while (static_cast<int>(clocks.size()) < shape.clocks) {
        clocks.push_back(clocks.back() * (0.7 + 0.26 * share()));
    }
    profile result;
    for (int stage = 0; stage < shape.stages; ++stage) {
        double const work = 0.040 * (1.0 + 0.15 * share());
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            double const here = work * (kind == instruction_kind::forward ? 1.0 : 1.95 + 0.1 * share());
            double const memory = 0.1 + 0.3 * share();  // of the time: does not follow the clock
            for (double const clock : clocks) {
                double const speed = clock / clocks.front();
                double const time = here * (memory + (1.0 - memory) / speed) * (1.0 + shape.noise * (share() - 0.5));
                double const power = shape.fixed_power + (300.0 - shape.fixed_power) * std::pow(speed, 2.4) * (1.0 + shape.noise * (share() - 0.5));
                result.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {clock}, {time}, {power * time}});
            }
        }
    }
    return result;
}

}  // namespace frontier_tests
