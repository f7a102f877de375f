// SPDX-License-Identifier: Apache-2.0
// What a rank tells of itself is a value: equal when and only when all of it is. The compiler decides.
#include "rheo/topology/holdings.hpp"

#include "rheo/topology/microbatch_work.hpp"

using namespace rheo;

namespace {

constexpr rank_holdings example()
{
    use_holding first{use_id{0}, {}};
    first.done.insert(microbatch_id{2});
    return {.rank = rank_id{3}, .version = step_id{7}, .layers = {layer_id{0}, layer_id{1}}, .uses = {first, {use_id{1}, {}}}};
}

template <class Change>
constexpr bool told_apart(Change change)
{
    auto other = example();
    change(other);
    return !(other == example());
}

static_assert(example() == example());
static_assert(told_apart([](auto& h) { h.rank = rank_id{2}; }));
static_assert(told_apart([](auto& h) { h.version = step_id{8}; }));
static_assert(told_apart([](auto& h) { h.layers.pop_back(); }));
static_assert(told_apart([](auto& h) { h.uses[1].use = use_id{2}; }));
static_assert(told_apart([](auto& h) { h.uses[1].done.insert(microbatch_id{0}); }));

// Work that is not marked partial is whole; evaluation stops above every layer.
static_assert(microbatch_work{microbatch_id{1}} == microbatch_work{microbatch_id{1}, layer_id{0}});
static_assert(no_backward > layer_id{1'000'000});

}  // namespace
