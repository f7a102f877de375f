#pragma once
// SPDX-License-Identifier: Apache-2.0

// The groups of measurements, in the order in which they run.

namespace bench {

class results;

void memory_bound(results& to);  ///< every kernel whose limit is the memory
void products(results& to);      ///< linear layers and attention
void models(results& to);        ///< whole layers of models, and what their sums would be
void sizes(results& to);         ///< some kernels over sizes, for the picture

/// Writes report.html and results.jsonl into the folder that was asked for. @return whether both are there
bool write_report(results const& from);

}  // namespace bench
