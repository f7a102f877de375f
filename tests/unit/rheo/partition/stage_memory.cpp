// SPDX-License-Identifier: Apache-2.0
// What a stage needs, by hand.
#include "rheo/partition/stage_memory.hpp"

using namespace rheo;

namespace {

constexpr layer_memory layers[] = {{{10}, {1}}, {{20}, {2}}, {{30}, {3}}};
constexpr layer_span last_two{layer_id{1}, layer_id{3}};

}  // namespace

static_assert(stage_memory_limit(layers, in_flight_one_f_one_b(8), bytes{0}).needed(last_two, 2) == bytes{50 + 2 * 5});
static_assert(stage_memory_limit(layers, in_flight_one_f_one_b(1), bytes{0}).needed(last_two, 2) == bytes{50 + 1 * 5});
static_assert(stage_memory_limit(layers, in_flight_gpipe(8), bytes{0}).needed(last_two, 2) == bytes{50 + 8 * 5});
static_assert(stage_memory_limit(layers, in_flight_gpipe(8), bytes{90})(last_two, 2));
static_assert(!stage_memory_limit(layers, in_flight_gpipe(8), bytes{89})(last_two, 2));
