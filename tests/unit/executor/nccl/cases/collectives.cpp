// SPDX-License-Identifier: Apache-2.0
// What the stand-in offers beyond what we call.
#include <cstdint>
#include <numeric>

#include <dlfcn.h>

#include "members.hpp"
#include "support/catch.hpp"

namespace {

/// A communicator and the stand-in's functions by their names.
struct caller {
    nccl::comm comm = nullptr;
    void* const handle = ::dlopen(RHEO_STANDIN_NCCL, RTLD_NOW | RTLD_LOCAL);

    caller(nccl::unique_id const& id, int ranks, int rank)
    {
        nccl::config how;
        how.blocking = 0;
        call<nccl::result(nccl::comm*, int, nccl::unique_id, int, nccl::config*)>("ncclCommInitRankConfig", &comm, ranks, id, rank, &how);
        for (nccl::result state = nccl::in_progress; state != nccl::success;) {
            call<nccl::result(nccl::comm, nccl::result*)>("ncclCommGetAsyncError", comm, &state);
        }
    }

    template <class Signature, class... Arguments>
    nccl::result call(char const* name, Arguments... arguments) const
    {
        auto* const function = reinterpret_cast<Signature*>(::dlsym(handle, name));
        expect(function != nullptr, std::string{"no function "} + name);
        return function(arguments...);
    }
};

using gathers = nccl::result(void const*, void*, std::size_t, nccl::data_type, nccl::comm, cudaStream_t);
using reduces = nccl::result(void const*, void*, std::size_t, nccl::data_type, nccl::reduction_operation, nccl::comm, cudaStream_t);
using broadcasts = nccl::result(void const*, void*, std::size_t, nccl::data_type, int, nccl::comm, cudaStream_t);

constexpr std::size_t count = 20001;  // more than a chunk

std::vector<std::int32_t> counted_from(int first, std::size_t size)
{
    std::vector<std::int32_t> all(size);
    std::iota(all.begin(), all.end(), first);
    return all;
}

}  // namespace

TEST_CASE("collectives: gather, scatter sums, copy, the greatest")
{
    constexpr int ranks = 3;
    auto const id = standin()->new_id();
    members group{ranks, "", [&](int rank) {
                      caller const c{id, ranks, rank};
                      stream const queue;
                      auto const size = count * ranks;
                      auto const place = [&](on_device<std::int32_t> const& of) { return of.data + count * static_cast<std::size_t>(rank); };

                      on_device<std::int32_t> const blocks{counted_from(rank == 0 ? 5 : 0, size)};
                      on_device<std::int32_t> const mine{counted_from(static_cast<int>(count) * rank, count)};
                      on_device<std::int32_t> const gathered{size};
                      on_device<std::int32_t> const copied{count};
                      on_device<std::int32_t> const greatest{count};
                      c.call<gathers>("ncclAllGather", mine.data, gathered.data, count, nccl::data_type::int32, c.comm, queue.handle);
                      c.call<reduces>("ncclReduceScatter", blocks.data, place(blocks), count, nccl::data_type::int32, nccl::reduction_operation::sum, c.comm,
                                      queue.handle);
                      c.call<broadcasts>("ncclBroadcast", mine.data, copied.data, count, nccl::data_type::int32, 2, c.comm, queue.handle);
                      c.call<reduces>("ncclAllReduce", mine.data, greatest.data, count, nccl::data_type::int32, nccl::reduction_operation::max, c.comm,
                                      queue.handle);
                      queue.wait();

                      expect(gathered.read() == counted_from(0, size), "gathered");
                      auto const totals = blocks.read();
                      for (std::size_t k = count * static_cast<std::size_t>(rank); k < count * static_cast<std::size_t>(rank + 1); ++k) {
                          expect(totals[k] == 5 + 3 * static_cast<int>(k), "scattered sums");
                      }
                      expect(copied.read() == counted_from(2 * static_cast<int>(count), count), "copied");
                      expect(greatest.read() == counted_from(2 * static_cast<int>(count), count), "the greatest");
                      expect(c.call<nccl::result(nccl::comm)>("ncclCommFinalize", c.comm) == nccl::success, "finalized");
                      expect(c.call<nccl::result(nccl::comm)>("ncclCommDestroy", c.comm) == nccl::success, "destroyed");
                  }};
    CHECK(group.all_succeed());
}

TEST_CASE("collectives: what it cannot take is refused")
{
    auto const id = standin()->new_id();
    members alone{1, "", [&](int) {
                      caller const c{id, 1, 0};
                      on_device<std::int32_t> const place{1};
                      auto const reduce = [&](int type, int reduction) {
                          return c.call<nccl::result(void const*, void*, std::size_t, int, int, nccl::comm, cudaStream_t)>(
                              "ncclAllReduce", place.data, place.data, 1, type, reduction, c.comm, nullptr);
                      };
                      expect(reduce(7, 0) == nccl::invalid_argument, "a sum of floats");
                      expect(reduce(2, 1) == nccl::invalid_argument, "a product");
                      auto const begin = [&](nccl::config how) {
                          nccl::comm made = nullptr;
                          return c.call<nccl::result(nccl::comm*, int, nccl::unique_id, int, nccl::config*)>("ncclCommInitRankConfig", &made, 1, id, 0, &how);
                      };
                      nccl::config how;
                      expect(begin(how) == nccl::invalid_argument, "one that blocks");
                      how.blocking = 0;
                      how.magic = 0;
                      expect(begin(how) == nccl::invalid_argument, "a config without its mark");
                      how.magic = 0xcafebeef;
                      how.size = 1000;
                      expect(begin(how) == nccl::invalid_argument, "a config of no known size");
                  }};
    CHECK(alone.all_succeed());
}
