// SPDX-License-Identifier: Apache-2.0
// Clocks that were planned for two microbatches, given to the program of three.
// expect: rheo: this clock plan was made for another program
#include "rheo/energy/clocks/clock_plan.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"

using rheo::one_f_one_b;

constexpr auto planned = rheo::named<[] { return one_f_one_b::program({.ranks = 2, .microbatches = 2}); }>;
#ifdef RHEO_MISTAKE
constexpr auto run = rheo::named<[] { return one_f_one_b::program({.ranks = 2, .microbatches = 3}); }>;
#else
constexpr auto run = planned;
#endif

constexpr rheo::clock_plan<planned.digest, planned.operations> plan{};
constexpr auto program = rheo::clocked(run, plan);
