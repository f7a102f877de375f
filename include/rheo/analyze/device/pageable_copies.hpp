#pragma once
// SPDX-License-Identifier: Apache-2.0

// Copies between a device and memory of the host that is not page-locked. The driver stages them, so they are slow and overlap nothing (CUDA C++
// Programming Guide, asynchronous concurrent execution).

#include <cstdint>
#include <string>
#include <vector>

#include "rheo/analyze/device/rank_trace.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct pageable_copies {
    std::int64_t count = 0;
    whole_nanoseconds time{};

    friend constexpr bool operator==(pageable_copies const&, pageable_copies const&) = default;
};

/// Those of a trace, by the names that CUPTI gives copies: "Memcpy HtoD (Pageable -> Device)". Cost: linear.
template <class OnlyWhenCalled = void>
pageable_copies pageable_copies_of(rank_trace const& trace)
{
    std::vector<bool> is_pageable;
    for (auto const& name : trace.names) {
        is_pageable.push_back(name.starts_with("Memcpy") && name.find("Pageable") != std::string::npos);
    }
    pageable_copies copies;
    for (auto const& event : trace.events) {
        if (event.work == device_work::memory && event.name < is_pageable.size() && is_pageable[event.name]) {
            ++copies.count;
            copies.time += event.end - event.begin;
        }
    }
    return copies;
}

}  // namespace rheo::inline v0
