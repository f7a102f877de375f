#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the tests ask of the emulated device and a GPU cannot be asked. They are compiled once and linked with either late.cpp, so it is the same test.

#include <cstdint>
#include <optional>

/// While one of these lives, the emulated device does things as late as CUDA allows. A GPU does as it likes.
struct late {
    late();
    ~late();
    late(late const&) = delete;
    late& operator=(late const&) = delete;
};

/// The kernels, and the graphs, launched so far; none: they are not counted.
std::optional<std::uint64_t> launches_so_far();
std::optional<std::uint64_t> graphs_so_far();
