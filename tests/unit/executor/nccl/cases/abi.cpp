// SPDX-License-Identifier: Apache-2.0
// What we declare of NCCL is what its own header declares; most of that is seen when this is compiled.
#include "executor/nccl/abi.hpp"

#include <cstring>
#include <type_traits>

#include <nccl.h>

#include "support/catch.hpp"

namespace {

namespace ours = rheo::nccl;

static_assert(ours::success == ncclSuccess);
static_assert(ours::unhandled_cuda_error == ncclUnhandledCudaError);
static_assert(ours::system_error == ncclSystemError);
static_assert(ours::internal_error == ncclInternalError);
static_assert(ours::invalid_argument == ncclInvalidArgument);
static_assert(ours::invalid_usage == ncclInvalidUsage);
static_assert(ours::remote_error == ncclRemoteError);
static_assert(ours::in_progress == ncclInProgress);

static_assert(static_cast<int>(ours::data_type::int8) == ncclInt8);
static_assert(static_cast<int>(ours::data_type::int32) == ncclInt32);
static_assert(static_cast<int>(ours::data_type::int64) == ncclInt64);
static_assert(static_cast<int>(ours::reduction_operation::sum) == ncclSum);
static_assert(static_cast<int>(ours::reduction_operation::max) == ncclMax);

static_assert(sizeof(ours::unique_id) == sizeof(ncclUniqueId) && alignof(ours::unique_id) == alignof(ncclUniqueId));
static_assert(sizeof(ours::unique_id::internal) == NCCL_UNIQUE_ID_BYTES);

// A later config has more members at its end.
static_assert(sizeof(ours::config) <= sizeof(ncclConfig_t) && alignof(ours::config) == alignof(ncclConfig_t));
#define RHEO_SAME_MEMBER(mine, theirs)                                              \
    static_assert(offsetof(ours::config, mine) == offsetof(ncclConfig_t, theirs) && \
                  std::is_same_v<decltype(ours::config::mine), decltype(ncclConfig_t::theirs)>)
RHEO_SAME_MEMBER(size, size);
RHEO_SAME_MEMBER(magic, magic);
RHEO_SAME_MEMBER(version, version);
RHEO_SAME_MEMBER(blocking, blocking);
RHEO_SAME_MEMBER(cga_cluster_size, cgaClusterSize);
RHEO_SAME_MEMBER(min_ctas, minCTAs);
RHEO_SAME_MEMBER(max_ctas, maxCTAs);
RHEO_SAME_MEMBER(net_name, netName);
RHEO_SAME_MEMBER(split_share, splitShare);
RHEO_SAME_MEMBER(traffic_class, trafficClass);
RHEO_SAME_MEMBER(comm_name, commName);
RHEO_SAME_MEMBER(collnet_enable, collnetEnable);
RHEO_SAME_MEMBER(cta_policy, CTAPolicy);
RHEO_SAME_MEMBER(shrink_share, shrinkShare);
RHEO_SAME_MEMBER(nvls_ctas, nvlsCTAs);
#undef RHEO_SAME_MEMBER

/// Their type in the place of each of ours that is passed in the same way.
template <class T>
struct as_passed {
    using type = T;
};
template <class T>
using passed = typename as_passed<T>::type;
template <>
struct as_passed<ncclResult_t> {
    using type = ours::result;
};
template <>
struct as_passed<ncclResult_t*> {
    using type = ours::result*;
};
template <>
struct as_passed<ncclDataType_t> {
    using type = ours::data_type;
};
template <>
struct as_passed<ncclRedOp_t> {
    using type = ours::reduction_operation;
};
template <>
struct as_passed<ncclUniqueId> {
    using type = ours::unique_id;
};
template <>
struct as_passed<ncclUniqueId*> {
    using type = ours::unique_id*;
};
template <>
struct as_passed<ncclConfig_t*> {
    using type = ours::config*;
};
template <>
struct as_passed<ncclComm_t> {
    using type = ours::comm;
};
template <>
struct as_passed<ncclComm_t*> {
    using type = ours::comm*;
};
template <>
struct as_passed<cudaStream_t> {
    using type = ours::stream;
};
template <class Result, class... Parameters>
struct as_passed<Result (*)(Parameters...)> {
    using type = passed<Result> (*)(passed<Parameters>...);
};
static_assert(sizeof(ncclResult_t) == sizeof(int) && sizeof(ncclDataType_t) == sizeof(int) && sizeof(ncclRedOp_t) == sizeof(int));

#define RHEO_SAME_FUNCTION(name) static_assert(std::is_same_v<decltype(ours::functions::name), passed<decltype(&::name)>>)
RHEO_SAME_FUNCTION(ncclGetVersion);
RHEO_SAME_FUNCTION(ncclGetErrorString);
RHEO_SAME_FUNCTION(ncclGetLastError);
RHEO_SAME_FUNCTION(ncclGetUniqueId);
RHEO_SAME_FUNCTION(ncclCommInitRankConfig);
RHEO_SAME_FUNCTION(ncclCommGetAsyncError);
RHEO_SAME_FUNCTION(ncclCommAbort);
RHEO_SAME_FUNCTION(ncclGroupStart);
RHEO_SAME_FUNCTION(ncclGroupEnd);
RHEO_SAME_FUNCTION(ncclSend);
RHEO_SAME_FUNCTION(ncclRecv);
RHEO_SAME_FUNCTION(ncclAllReduce);
#undef RHEO_SAME_FUNCTION

}  // namespace

TEST_CASE("abi: a new config is that of nccl.h but for its version")
{
    ours::config const mine;
    ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
    theirs.size = sizeof mine;
    theirs.version = mine.version;
    CHECK(std::memcmp(&mine, &theirs, sizeof mine) == 0);
    CHECK(mine.version <= NCCL_VERSION_CODE);
}
