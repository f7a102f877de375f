// SPDX-License-Identifier: Apache-2.0
// Indices of different things never mix. The compiler decides all of it.
#include "rheo/topology/tagged_index.hpp"

#include <concepts>

using namespace rheo;

namespace {

template <class A, class B>
concept mixes = std::convertible_to<A, B> || requires(A a, B b) { a == b; } || requires(A a, B b) { a < b; };

template <class... Ids>
constexpr bool strangers()
{
    constexpr auto to_all = []<class A>() { return ((std::same_as<A, Ids> || !mixes<A, Ids>) && ...); };
    return (to_all.template operator()<Ids>() && ...);
}

}  // namespace

static_assert(strangers<rank_id, node_id, pipeline_id, stage_id, layer_id, op_id, tensor_id, use_id, microbatch_id, step_id, generation_id, attempt_id>());
static_assert(!std::convertible_to<int, rank_id> && !std::convertible_to<rank_id, int>);
static_assert(rank_id{} == rank_id{0} && rank_id{1} < rank_id{2} && at(stage_id{3}) == 3);
static_assert([] {
    layer_id l{4};
    return ++l == layer_id{5} && l.value == 5;
}());
static_assert(sizeof(rank_id) == 4 && sizeof(step_id) == 8);
