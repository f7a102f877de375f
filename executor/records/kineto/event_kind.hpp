#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the events of PyTorch's profiler are, by the words that it, CUDA, NCCL and their kin write: categories of old and new versions, kernels that communicate,
// and collectives that end at all ranks at once.

#include <cstdint>
#include <string_view>

namespace rheo::inline v0 {

enum class event_kind : std::uint8_t { other, kernel, memory, launch, mark };

/// Old traces have Kernel, Memcpy, Memset and Runtime. A mark of the host is known by its name only, so any other category of the host may be one.
event_kind kind_of(std::string_view category);

/// Whether a kernel moves data between devices.
bool communicates(std::string_view kernel);

/// Of an operation or a kernel, as PyTorch and NCCL name them: "AllReduce" for ncclDevKernel_AllReduce_Sum_f32 and for all_reduce; empty where it does not
/// block all of its ranks.
std::string_view blocking_operation(std::string_view name);

}  // namespace rheo::inline v0
