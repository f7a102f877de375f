// SPDX-License-Identifier: Apache-2.0
// A schedule is a type that makes a program; the program is proved by the compiler, drawn, and run.
#include <cstdio>

#include "rheo/schedule/check/activations.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/draw/draw.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/transform/lowering.hpp"

using rheo::gpipe;
using rheo::one_f_one_b;

// With each send and receive inserted as a pair no rank ever waits for ever, even without buffers;
// with receives right before their use and blocking sends 1F1B hangs.
static_assert(rheo::deadlock_free<rheo::rendezvous>(rheo::lower(one_f_one_b::program({.ranks = 4, .microbatches = 6}))));
static_assert(!rheo::deadlock_free<rheo::rendezvous>(rheo::lower_lazily(one_f_one_b::program({.ranks = 4, .microbatches = 6}))));

// Both finish at the same time; 1F1B holds as many microbatches as there are stages left, GPipe all.
static_assert(rheo::peak_activations(one_f_one_b::program({.ranks = 4, .microbatches = 6})) == 4);
static_assert(rheo::peak_activations(gpipe::program({.ranks = 4, .microbatches = 6})) == 6);

int main()
{
    std::printf("1F1B\n%s", rheo::draw(one_f_one_b::program({.ranks = 4, .microbatches = 6})).c_str());
    std::printf("GPipe\n%s", rheo::draw(gpipe::program({.ranks = 4, .microbatches = 6})).c_str());
}
