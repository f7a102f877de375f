#pragma once
// SPDX-License-Identifier: Apache-2.0

// A layer of a model as ranks run it: a stage of the executor on the device, with its queue and its memory, and an item of numbers that goes through it
// again and again.

#include <memory>

#include "executor/device/backend.hpp"
#include "executor/stage/stage.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "rheo/model/model.hpp"

namespace bench {

class layer_at_work {
public:
    /// @param model as it is run, fused; it outlives the layer, and so does `on`
    layer_at_work(rheo::compute_backend& backend, rheo::model_description const& model, rheo::layer_id which, rheo::microbatch_shape shape);

    // Put into the queue: done after wait().
    void forward();
    void backward();  ///< @pre forward, once or more
    void wait() { backend_->wait(); }

private:
    void fill(void* with_numbers, std::size_t size);

    rheo::compute_backend* backend_;
    rheo::collection info_;
    rheo::resident_state state_;
    std::unique_ptr<rheo::stage> stage_;
    rheo::activation item_;
    rheo::array<std::byte> above_, below_;
    rheo::loss_sum loss_;
};

}  // namespace bench
