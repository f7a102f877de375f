#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether programs come to their end: the order of the compute instructions alone, and the whole
// product of all pipelines with their transfers and reductions under a named transport.

#include "rheo/schedule/check/interpret.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/transport.hpp"
#include "rheo/schedule/core/verdict.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// Whether the product of all pipelines, reductions included, ends under the transport; if not, the
/// stuck state. A transfer that no rank answers, a receive in the wrong order and a computation before
/// its input are all seen as ranks that wait.
template <class Transport>
constexpr verdict deadlock_free(array_view<program const> programs)
{
    no_observer observer;
    return interpret<Transport>(programs, observer);
}

/// The same for one pipeline.
template <class Transport>
constexpr verdict deadlock_free(program const& p)
{
    return deadlock_free<Transport>(array_view{&p, 1});
}

/// The same under a transport with values: `deadlock_free(p, fifo{.depth = 2})`.
template <class Transport>
constexpr verdict deadlock_free(program const& p, Transport transport)
{
    no_observer observer;
    return interpret<Transport>(array_view{&p, 1}, observer, {}, transport);
}

/// Whether the compute order of a program without transfers is acyclic.
template <class OnlyWhenCalled = void>
constexpr verdict dependencies_in_order(program const& p)
{
    return deadlock_free<shared_memory>(p);
}

}  // namespace rheo::inline v0
