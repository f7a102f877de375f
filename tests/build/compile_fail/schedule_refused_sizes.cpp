// SPDX-License-Identifier: Apache-2.0
// Programs of sizes that their schedules cannot have: each with the message of the run-time check, from the compiler.
// expect: "a schedule needs at least one rank"
// expect: "a step has no negative number of microbatches"
// expect: "this schedule has no choice of chunks per rank"
// expect: "this schedule has no groups of microbatches"
// expect: "this schedule does not cut sequences into slices"
// expect: "chunks, group and slices count from one"
// expect: "this schedule runs in two directions and needs an even number of ranks"
// expect: "this schedule runs in two directions and needs an even number of microbatches"
// expect: "a wave goes down the ranks and up again: it needs an even number of chunks per rank"
// expect: "this schedule needs at least twice as many microbatches as ranks"
// expect: "with this group of microbatches the ranks would wait for each other in a circle"
#include "rheo/schedule/families/chimera.hpp"
#include "rheo/schedule/families/dualpipe.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/hanayo.hpp"
#include "rheo/schedule/families/interleaved.hpp"

#ifdef RHEO_MISTAKE
constexpr int wrong = 1;
#else
constexpr int wrong = 0;
#endif

template <rheo::Schedule S>
constexpr bool is_made(rheo::schedule_shape shape)
{
    return !S::program(shape).rows.empty();
}

static_assert(is_made<rheo::gpipe>({.ranks = 1 - wrong, .microbatches = 2}));
static_assert(is_made<rheo::gpipe>({.ranks = 2, .microbatches = 0 - wrong}));
static_assert(is_made<rheo::gpipe>({.ranks = 2, .microbatches = 2, .chunks = wrong}));
static_assert(is_made<rheo::gpipe>({.ranks = 2, .microbatches = 2, .group = wrong}));
static_assert(is_made<rheo::gpipe>({.ranks = 2, .microbatches = 2, .slices = wrong}));
static_assert(is_made<rheo::gpipe>({.ranks = 2, .microbatches = 2, .chunks = 0 - wrong}));
static_assert(is_made<rheo::dualpipe>({.ranks = 2 + wrong, .microbatches = 6}));
static_assert(is_made<rheo::chimera>({.ranks = 2, .microbatches = 2 + wrong}));
static_assert(is_made<rheo::hanayo>({.ranks = 2, .microbatches = 2, .chunks = 2 + wrong}));
static_assert(is_made<rheo::dualpipe>({.ranks = 2, .microbatches = 4 - 2 * wrong}));
static_assert(is_made<rheo::interleaved>({.ranks = 4, .microbatches = 8, .chunks = 2, .group = 4 - 3 * wrong}));
