#pragma once
// SPDX-License-Identifier: Apache-2.0

// Several ways to do the same, measured in turn on all ranks of one run, so that what else the machine does falls on all of them alike. The
// best of each counts.

#include <functional>
#include <string>
#include <vector>

#include "executor/reshard/reshard.hpp"

/// What the command line asks for, and where this rank is.
struct bench_run {
    int self = 0;
    int ranks = 1;
    int repeats = 7;
    bool json = false;
    rheo::reshard_options options{};
};

struct way {
    std::string name;
    std::function<void()> work;
    double best = 1e300;  ///< seconds, of the slowest rank
};

/// Measures all ways in turn, and prints their rates beside that of the last one. Collective. @param bytes of all ranks together
void compare(bench_run const& run, std::string const& what, double bytes, std::vector<way> ways);
