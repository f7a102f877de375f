#pragma once
// SPDX-License-Identifier: Apache-2.0

// Text that the trained model writes at the end of a job, as proof that it has learned something.

#include <string>

#include "executor/mpi/messenger.hpp"
#include "executor/state/resident_state.hpp"
#include "executor/train/job.hpp"
#include "rheo/pipeline/instance.hpp"

namespace rheo::inline v0 {

/// Generates tokens with one sequence through a pipeline, forward only. Where it holds the model twice, the first copy computes. Its ranks call it together.
/// @return the text on the rank of the last stage, nothing on the others  @throws mpi::peer_lost
std::string sampled_text(job const& about, pipeline_instance const& pipeline, int tokens, resident_state& resident, mpi::messenger& messages);

}  // namespace rheo::inline v0
