#pragma once
// SPDX-License-Identifier: Apache-2.0

// A clock plan in MHz, by rank and place in its row, as `rheo frontier --emit-header` writes it.

#include "rheo/energy/clocks/clock_plan.hpp"

namespace rheo_plan {

inline constexpr rheo::clock_plan<0x6d4f212cf78e44f6U, 8> plan{
    {0.018000000000000002},
    {11.475000000000001},
    {{
        {1400}, {900}, {1200}, {1400},
        {1400}, {1400}, {1400}, {1400},
    }},
};

}  // namespace rheo_plan
