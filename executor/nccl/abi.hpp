#pragma once
// SPDX-License-Identifier: Apache-2.0

// The part of NCCL's binary interface that messages and sums between GPUs need, declared here, so that neither its header nor its library is needed to build.
// Names, numbers and signatures are those of nccl.h (github.com/NVIDIA/nccl); where that header is at hand, the test nccl.abi compares them.

#include <climits>
#include <cstddef>
#include <cstdint>

namespace rheo::inline v0::nccl {

struct comm_state;
using comm = comm_state*;  ///< ncclComm_t
using result = int;        ///< ncclResult_t
using stream = void*;      ///< cudaStream_t

inline constexpr result success = 0;
inline constexpr result unhandled_cuda_error = 1;
inline constexpr result system_error = 2;
inline constexpr result internal_error = 3;
inline constexpr result invalid_argument = 4;
inline constexpr result invalid_usage = 5;
inline constexpr result remote_error = 6;
inline constexpr result in_progress = 7;

/// ncclDataType_t. No floats: NCCL sums nothing of ours whose bits depend on an order.
enum class data_type : int { int8 = 0, int32 = 2, int64 = 4 };
enum class reduction_operation : int { sum = 0, max = 2 };

/// ncclUniqueId
struct unique_id {
    char internal[128];
};

/// ncclConfig_t as of 2.27. Later versions add members at the end and tell ours by its size.
struct config {
    std::size_t size = sizeof(config);
    unsigned magic = 0xcafebeef;
    unsigned version = 22703;
    int blocking = INT_MIN;
    int cga_cluster_size = INT_MIN;
    int min_ctas = INT_MIN;
    int max_ctas = INT_MIN;
    char const* net_name = nullptr;
    int split_share = INT_MIN;
    int traffic_class = INT_MIN;
    char const* comm_name = nullptr;
    int collnet_enable = INT_MIN;
    int cta_policy = INT_MIN;
    int shrink_share = INT_MIN;
    int nvls_ctas = INT_MIN;
};

/// The functions by their names in the library.
struct functions {
    result (*ncclGetVersion)(int*) = nullptr;
    char const* (*ncclGetErrorString)(result) = nullptr;
    char const* (*ncclGetLastError)(comm) = nullptr;
    result (*ncclGetUniqueId)(unique_id*) = nullptr;
    result (*ncclCommInitRankConfig)(comm*, int, unique_id, int, config*) = nullptr;
    result (*ncclCommGetAsyncError)(comm, result*) = nullptr;
    result (*ncclCommAbort)(comm) = nullptr;
    result (*ncclGroupStart)() = nullptr;
    result (*ncclGroupEnd)() = nullptr;
    result (*ncclSend)(void const*, std::size_t, data_type, int, comm, stream) = nullptr;
    result (*ncclRecv)(void*, std::size_t, data_type, int, comm, stream) = nullptr;
    result (*ncclAllReduce)(void const*, void*, std::size_t, data_type, reduction_operation, comm, stream) = nullptr;
};

}  // namespace rheo::inline v0::nccl
