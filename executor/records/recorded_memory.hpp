#pragma once
// SPDX-License-Identifier: Apache-2.0

// The parts of a rank's memory that a run measures and its plan names, by their keys in ranks/<r>.json: planned_<part>_bytes and
// measured_<part>_bytes. Activations count together with the gradients that split backwards keep, because their common peak is what
// a rank needs. The workspace of kernels and libraries is planned but not measured, and not among them.

#include <array>

#include "rheo/plan/memory_parts.hpp"

namespace rheo::inline v0 {

constexpr std::array<named_bytes, 7> recorded_memory(memory_parts const& parts)
{
    return {{{"master_parameters", parts.state.master},
             {"moments", parts.state.moments},
             {"stored_parameters", parts.state.stored},
             {"accumulators", parts.state.accumulators},
             {"reduced_gradients", parts.state.reduced},
             {"activations", parts.activations + parts.kept_gradients},
             {"recompute_buffer", parts.recompute_buffer}}};
}

}  // namespace rheo::inline v0
