#pragma once
// SPDX-License-Identifier: Apache-2.0

// The terminal in which people see standard output, also that of a launcher which passes it on.

#include <cstddef>

namespace rheo::inline v0 {

/// Whether standard output goes to a terminal. Under mpirun a rank's own output says nothing about where the launcher's goes.
bool shows_in_terminal();

struct terminal_size {
    std::size_t columns = 80;
    std::size_t rows = 24;
};

/// Of that terminal, now; 80 x 24 where it does not say.
terminal_size size_of_terminal();

}  // namespace rheo::inline v0
