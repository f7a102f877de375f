// SPDX-License-Identifier: Apache-2.0
#include "executor/train/opened_backend.hpp"

#include <cstdlib>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/clocks/rank_device.hpp"
#include "executor/cuda/backend.hpp"
#include "executor/host/backend.hpp"
#include "kernels/attention/attention.hpp"

namespace rheo::inline v0 {

namespace {

cuda::attention_by attention_of(run_config const& config, model_description const& model, int rank_on_node)
{
    switch (config.run.attention) {
    case attention_kernel::automatic:
        return cuda::quickest_attention(policy_of(config), rank_on_node, model.layers, config.train.microbatch, config.run.deterministic);
    case attention_kernel::warp: break;
    case attention_kernel::warpgroup: return cuda::attention_by::warpgroups;
    case attention_kernel::cudnn: return cuda::attention_by::cudnn;
    }
    return cuda::attention_by::warps;
}

}  // namespace

std::unique_ptr<compute_backend> open_backend(run_config const& config, model_description const& model)
{
    if (config.run.device == compute_device::cuda) {
        auto const rank = place_on_host();
        ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // read at the first call: more streams than that wait for each other (nccl_transport.hpp)
        return cuda::make_backend(policy_of(config), rank,
                                  {.graphs = config.run.graphs, .attention = attention_of(config, model, rank), .deterministic = config.run.deterministic});
    }
    return std::make_unique<host_backend>(config.run.threads, policy_of(config));
}

std::vector<std::string> notes_of(compute_backend const& backend, run_config const& config, model_description const& model)
{
    std::vector<std::string> notes;
    bool const by_cudnn = backend.attention().starts_with("cuDNN");
    if (by_cudnn && !config.run.deterministic) {
        notes.emplace_back("run.deterministic is false: gradients of attention are added in any order, and two runs need not end with the same bits");
    }
    std::set<int> widths;  // of heads without tensor cores
    for (auto const& layer : model.layers) {
        for (auto const& o : layer.ops) {
            if (o.kind == op_kind::attention && !cuda::tensor_cores_take(o.out_width / o.heads)) {
                widths.insert(o.out_width / o.heads);
            }
        }
    }
    if (config.run.device == compute_device::cuda && config.train.dtype == stored_numbers::brain_float16 && !by_cudnn && !widths.empty()) {
        notes.push_back(
            fmt::format("attention is computed without tensor cores, many times slower: its heads are {} elements wide, tensor cores take "
                        "multiples of 8 up to 128",
                        fmt::join(widths, " and ")));
    }
    return notes;
}

}  // namespace rheo::inline v0
