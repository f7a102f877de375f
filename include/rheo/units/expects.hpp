#pragma once
// SPDX-License-Identifier: Apache-2.0

// How a function of the library refuses an argument that breaks its contract: a sentence, thrown. In
// a constant expression the throw is never reached legally, so the compiler shows the same sentence.
// Answers that a correct caller can meet ("this cannot be planned") are returned, not thrown.

#include <stdexcept>
#include <string>

#include "rheo/version.hpp"

namespace rheo::inline v0 {

struct precondition_error : std::logic_error {
    using std::logic_error::logic_error;
};

/// Throws precondition_error with the sentence unless the condition holds.
constexpr void expects(bool condition, char const* message)
{
    if (!condition) {
        throw precondition_error{message};
    }
}

}  // namespace rheo::inline v0
