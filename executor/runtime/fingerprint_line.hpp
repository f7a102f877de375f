#pragma once
// SPDX-License-Identifier: Apache-2.0

// One line of the numerics fingerprint (fingerprint.hpp): what it is about and its value, for people to compare.

#include <string>

namespace rheo::inline v0 {

struct fingerprint_line {
    std::string what;
    std::string value;

    friend bool operator==(fingerprint_line const&, fingerprint_line const&) = default;
};

}  // namespace rheo::inline v0
