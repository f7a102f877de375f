#pragma once
// SPDX-License-Identifier: Apache-2.0

// The public schedules and cases in the folder that RHEO_SHARED names.

#include <string>

#include "support/public_vectors.hpp"

namespace test {

/// The text of a public file; empty, with a word, when there is no such folder.
inline std::string read_public(std::string const& name) { return read_vectors("schedules/" + name); }

}  // namespace test
