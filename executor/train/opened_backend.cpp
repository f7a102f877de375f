// SPDX-License-Identifier: Apache-2.0
#include "executor/train/opened_backend.hpp"

#include "executor/clocks/rank_device.hpp"
#include "executor/cuda/backend.hpp"
#include "executor/host/backend.hpp"

namespace rheo::inline v0 {

std::unique_ptr<compute_backend> open_backend(run_config const& config)
{
    if (config.run.device == compute_device::cuda) {
        auto const by = config.run.attention;
        return cuda::make_backend(policy_of(config), place_on_host(),
                                  {.graphs = config.run.graphs,
                                   .attention = by == attention_kernel::cudnn       ? cuda::attention_by::cudnn
                                                : by == attention_kernel::warpgroup ? cuda::attention_by::warpgroups
                                                                                    : cuda::attention_by::warps,
                                   .deterministic = config.run.deterministic});
    }
    return std::make_unique<host_backend>(config.run.threads, policy_of(config));
}

}  // namespace rheo::inline v0
