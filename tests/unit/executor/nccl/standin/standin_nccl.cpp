// SPDX-License-Identifier: Apache-2.0
// NCCL between processes of one host whose devices are emulated (tests/unit/kernels/emulated): messages and exact sums through shared memory, as strict as NCCL
// may be. A send is done when the receiver has taken all of it; the operations of a communicator run in the order of issue; sizes or kinds that differ between
// two sides end the program; a sum is added in another order each time. A peer that is gone, or has aborted, is waited for, silently and for ever. An abort
// ends the operations of its own side only: when their streams look at them next, what they have not yet written becomes 0xff. The
// messages of a group run at once, as far as they are between different members.
//
// RHEO_STANDIN_NCCL holds words, separated by spaces:
//   remote_error   a peer whose process is gone is noticed: ncclRemoteError, and what is pending ends as by an abort
//   in_progress=K  each call is in progress for K looks at the communicator; only then is its operation in the stream
//   init_never     no communicator comes up
//   init_fails     ncclCommInitRankConfig is a system error
//   exclude        no two operations of the process run at once, and they begin in the order of issue, as kernels for which there is no room beside each other
//   eager          a message that goes out is done when its last chunk is on its way, as NCCL's may be
//   log=FILE       a line for each operation begun: process, kind, bytes, communicator
// RHEO_STANDIN_NCCL_VERSION is its version; without it 22809.
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "communicator.hpp"

/// What the caller holds.
struct ncclComm {
    std::shared_ptr<standin::communicator> shared;
};

namespace {

using standin::description;
using standin::kind;
using standin::operation;
using standin::operations;
using standin::refused;

constexpr int most_blocks = 32;  // of a kernel, if a config says nothing

std::size_t size_of(ncclDataType_t type)
{
    switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64: return 8;
    }
    return 0;
}

/// What stops a call before it begins.
ncclResult_t unfit(ncclComm_t comm, ncclDataType_t type, int peer = 0)
{
    if (comm == nullptr || size_of(type) == 0 || peer < 0 || peer >= comm->shared->all().ranks()) {
        return refused(ncclInvalidArgument, "no communicator, no such type, or no such rank");
    }
    return comm->shared->ready();
}

ncclResult_t unfit_to_reduce(ncclComm_t comm, ncclDataType_t type, ncclRedOp_t reduction)
{
    if ((type != ncclInt32 && type != ncclInt64) || (reduction != ncclSum && reduction != ncclMax)) {
        return refused(ncclInvalidArgument, "the stand-in knows the sum and the greatest of int32 and int64");
    }
    return unfit(comm, type);
}

/// What this thread puts into streams when its group ends.
struct group {
    int depth = 0;
    std::map<std::pair<ncclComm_t, cudaStream_t>, operations> calls{};

    static group& of_thread()
    {
        static thread_local group own;
        return own;
    }
};

ncclResult_t put(ncclComm_t comm, operation some, cudaStream_t stream)
{
    if (auto& open = group::of_thread(); open.depth > 0) {
        open.calls.try_emplace({comm, stream}, true).first->second.add(std::move(some));
        return ncclSuccess;
    }
    operations alone;
    alone.add(std::move(some));
    return comm->shared->put(std::move(alone), stream);
}

template <class Function>
void each_other(ncclComm_t comm, Function const& call)
{
    for (int k = 0; k < comm->shared->all().ranks(); ++k) {
        if (k != comm->shared->all().rank()) {
            call(k);
        }
    }
}

/// The block of a rank in a buffer of all ranks' blocks.
std::byte* block(void const* first, std::size_t bytes, int rank)
{
    return static_cast<std::byte*>(const_cast<void*>(first)) + bytes * static_cast<std::size_t>(rank);
}

std::string refused_config(ncclConfig_t const* config)
{
    if (config == nullptr || config->magic != 0xcafebeef) {
        return "the config was not initialised";
    }
    if (config->size < offsetof(ncclConfig_t, cgaClusterSize) || config->size > sizeof(ncclConfig_t) || config->version < 21400) {
        return "the config is of no known version";
    }
    if (config->blocking != 0) {
        return "the stand-in never blocks";
    }
    if (config->minCTAs != INT_MIN && config->maxCTAs != INT_MIN && (config->minCTAs < 1 || config->minCTAs > config->maxCTAs)) {
        return "the config allows no number of blocks";
    }
    return {};
}

}  // namespace

extern "C" {

ncclResult_t ncclGetVersion(int* version)
{
    char const* const given = std::getenv("RHEO_STANDIN_NCCL_VERSION");
    *version = given != nullptr ? std::atoi(given) : 22809;
    return ncclSuccess;
}

char const* ncclGetErrorString(ncclResult_t code)
{
    switch (code) {
    case ncclSuccess: return "no error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    case ncclInternalError: return "internal error";
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclInProgress: return "NCCL operation in progress";
    }
    return "unknown result code";
}

char const* ncclGetLastError(ncclComm_t) { return standin::last_error().c_str(); }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id)
{
    *id = standin::room::new_id();
    return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t* config)
{
    *comm = nullptr;
    if (auto const why = refused_config(config); !why.empty()) {
        return refused(ncclInvalidArgument, why);
    }
    if (ranks < 1 || ranks > standin::room::most_ranks || rank < 0 || rank >= ranks) {
        return refused(ncclInvalidArgument, "no such rank");
    }
    auto how = standin::modes::given();
    if (how.init_fails) {
        return refused(ncclSystemError, "the stand-in was asked to fail");
    }
    *comm = new ncclComm{std::make_shared<standin::communicator>(id, ranks, rank, config->maxCTAs != INT_MIN ? config->maxCTAs : most_blocks, std::move(how))};
    return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state)
{
    if (comm == nullptr) {
        return refused(ncclInvalidArgument, "no communicator");
    }
    *state = comm->shared->poll();
    return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    if (auto const code = unfit(comm, ncclInt8); code != ncclSuccess) {
        return code;
    }
    comm->shared->finalize();
    return comm->shared->is_idle() ? ncclSuccess : ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (comm != nullptr && !comm->shared->is_idle()) {
        standin::end_loudly("ncclCommDestroy would wait for an operation");
    }
    delete comm;
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (comm != nullptr) {
        comm->shared->abort();
        delete comm;
    }
    return ncclSuccess;
}

ncclResult_t ncclGroupStart()
{
    ++group::of_thread().depth;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd()
{
    auto& open = group::of_thread();
    if (open.depth == 0) {
        return refused(ncclInvalidUsage, "no group was begun");
    }
    auto state = ncclSuccess;
    if (--open.depth == 0) {
        for (auto& [where, calls] : std::exchange(open.calls, {})) {
            if (auto const code = where.first->shared->put(std::move(calls), where.second); code != ncclSuccess) {
                state = code;
            }
        }
    }
    return state;
}

ncclResult_t ncclSend(void const* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    if (auto const code = unfit(comm, type, peer); code != ncclSuccess) {
        return code;
    }
    operation some{{.what = kind::message, .type = type, .bytes = count * size_of(type)}};
    some.goes_out(peer, data);
    return put(comm, std::move(some), stream);
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    if (auto const code = unfit(comm, type, peer); code != ncclSuccess) {
        return code;
    }
    operation some{{.what = kind::message, .type = type, .bytes = count * size_of(type)}};
    some.comes_in(peer, data);
    return put(comm, std::move(some), stream);
}

ncclResult_t ncclAllReduce(void const* mine, void* total, std::size_t count, ncclDataType_t type, ncclRedOp_t reduction, ncclComm_t comm, cudaStream_t stream)
{
    if (auto const code = unfit_to_reduce(comm, type, reduction); code != ncclSuccess) {
        return code;
    }
    operation some{{.what = kind::all_reduce, .type = type, .reduction = reduction, .bytes = count * size_of(type)}};
    some.combines(mine, total);
    each_other(comm, [&](int k) { some.goes_out(k, mine), some.comes_in(k, nullptr); });
    return put(comm, std::move(some), stream);
}

ncclResult_t ncclReduceScatter(void const* mine, void* total, std::size_t count, ncclDataType_t type, ncclRedOp_t reduction, ncclComm_t comm,
                               cudaStream_t stream)
{
    if (auto const code = unfit_to_reduce(comm, type, reduction); code != ncclSuccess) {
        return code;
    }
    auto const bytes = count * size_of(type);
    operation some{{.what = kind::reduce_scatter, .type = type, .reduction = reduction, .bytes = bytes}};
    some.combines(block(mine, bytes, comm->shared->all().rank()), total);
    each_other(comm, [&](int k) { some.goes_out(k, block(mine, bytes, k)), some.comes_in(k, nullptr); });
    return put(comm, std::move(some), stream);
}

ncclResult_t ncclAllGather(void const* mine, void* all, std::size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    if (auto const code = unfit(comm, type); code != ncclSuccess) {
        return code;
    }
    auto const bytes = count * size_of(type);
    operation some{{.what = kind::all_gather, .type = type, .bytes = bytes}};
    some.keeps(mine, block(all, bytes, comm->shared->all().rank()));
    each_other(comm, [&](int k) { some.goes_out(k, mine), some.comes_in(k, block(all, bytes, k)); });
    return put(comm, std::move(some), stream);
}

ncclResult_t ncclBroadcast(void const* data, void* copy, std::size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream)
{
    if (auto const code = unfit(comm, type, root); code != ncclSuccess) {
        return code;
    }
    operation some{{.what = kind::broadcast, .type = type, .root = root, .bytes = count * size_of(type)}};
    if (root == comm->shared->all().rank()) {
        some.keeps(data, copy);
        each_other(comm, [&](int k) { some.goes_out(k, data); });
    } else {
        some.comes_in(root, copy);
    }
    return put(comm, std::move(some), stream);
}

}  // extern "C"
