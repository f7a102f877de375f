#pragma once
// SPDX-License-Identifier: Apache-2.0

// The numerics fingerprint: everything that decides the bits of the result, in lines that people can
// compare. Runs with the same fingerprint end with the same bits, whatever the plan, the number of
// threads and the losses (law 1); ranks whose fingerprints differ refuse to start together.

#include <string>
#include <vector>

#include "runtime/job.hpp"

namespace rheo::inline v0 {

struct fingerprint_line {
    std::string what;
    std::string value;

    friend bool operator==(fingerprint_line const&, fingerprint_line const&) = default;
};

std::vector<fingerprint_line> fingerprint_of(job const& about);

}  // namespace rheo::inline v0
