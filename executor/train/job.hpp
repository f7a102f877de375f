#pragma once
// SPDX-License-Identifier: Apache-2.0

// A job as a value: the model, its state collection, the configuration. It is the same on all ranks and never changes, so plans and results can be
// computed anywhere from it.

#include <vector>

#include "executor/checkpoint/fingerprint_line.hpp"
#include "executor/checkpoint/levels/local_folder.hpp"
#include "executor/config/config.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/model/model.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/tensor/collection.hpp"

namespace rheo::inline v0 {

struct job {
    model_description model;  ///< as it runs: fused or not
    collection state;
    std::vector<reduction_unit> units;
    run_config config;
    std::vector<fingerprint_line> fingerprint{};
    run_identity run{};  ///< names the node-local folders

    int grid() const { return grid_of(model); }  ///< shards of the model's width
    int layers() const { return static_cast<int>(model.layers.size()); }
    int microbatches() const { return config.train.microbatches; }
    microbatch_shape shape() const { return config.train.microbatch; }
    int items() const { return microbatches() * shape().slices; }  ///< of a step: contributions of a use
    std::int64_t tokens_per_step() const { return microbatches() * microbatch_rows(shape()); }
};

}  // namespace rheo::inline v0
