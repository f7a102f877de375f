#pragma once
// SPDX-License-Identifier: Apache-2.0

// Processes that are the members of a communicator on the stand-in, each with an emulated device. A process that fails says why and ends with 1; one that hangs
// ends with a signal.

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <sys/mman.h>
#include <unistd.h>

#include "executor/nccl/communicator.hpp"
#include "executor/nccl/error.hpp"
#include "support/process.hpp"

namespace nccl = rheo::nccl;

/// A failure of a process that is no test case.
inline void expect(bool claim, std::string const& sentence)
{
    if (!claim) {
        throw std::runtime_error(sentence);
    }
}

/// Counts that all processes of a test see.
struct shared_counts {
    std::atomic<int>& operator[](std::size_t k) const { return first_[k]; }
    shared_counts() = default;
    ~shared_counts() { ::munmap(first_, bytes); }
    shared_counts(shared_counts const&) = delete;
    shared_counts& operator=(shared_counts const&) = delete;

    void wait(std::size_t k, int until) const
    {
        while (first_[k] < until) {
            ::usleep(200);
        }
    }
    /// Returns once all of them are here.
    void meet(std::size_t k, int all) const
    {
        ++first_[k];
        wait(k, all);
    }

private:
    static constexpr std::size_t bytes = 4096;
    std::atomic<int>* first_ = static_cast<std::atomic<int>*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
};

inline std::shared_ptr<nccl::library const> standin() { return std::make_shared<nccl::library const>(RHEO_STANDIN_NCCL); }

struct stream {
    cudaStream_t handle = nullptr;

    stream() { cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking); }
    ~stream() { cudaStreamDestroy(handle); }
    stream(stream const&) = delete;
    stream& operator=(stream const&) = delete;
    operator rheo::cuda::stream() const { return {handle}; }

    bool is_done() const { return cudaStreamQuery(handle) == cudaSuccess; }
    void wait() const { cudaStreamSynchronize(handle); }
    bool is_done_within(int polls) const
    {
        for (int k = 0; k < polls; ++k) {
            if (is_done()) {
                return true;
            }
            ::usleep(500);
        }
        return false;
    }
};

/// Memory of the device, never freed: these processes are short. All of it is taken before the first message, as CUDA asks for.
template <class T>
struct on_device {
    T* data = nullptr;
    std::size_t count = 0;

    explicit on_device(std::size_t size) : count{size} { cudaMalloc(reinterpret_cast<void**>(&data), size * sizeof(T)); }
    explicit on_device(std::vector<T> const& values) : on_device{values.size()}
    {
        stream const own;
        cudaMemcpyAsync(data, values.data(), count * sizeof(T), cudaMemcpyHostToDevice, own.handle);
        own.wait();
    }
    std::vector<T> read() const
    {
        stream const own;
        std::vector<T> values(count);
        cudaMemcpyAsync(values.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost, own.handle);
        own.wait();
        return values;
    }
    std::span<T> all() const { return {data, count}; }
};

inline void settle(nccl::communicator const& with)
{
    while (!with.settled()) {
        ::usleep(100);
    }
}

inline nccl::communicator up(nccl::unique_id const& id, int ranks, int rank)
{
    nccl::communicator made{standin(), id, ranks, rank};
    settle(made);
    return made;
}

/// Starts a process for each rank. @param mode what RHEO_STANDIN_NCCL says to them
class members {
public:
    members(int ranks, std::string const& mode, std::function<void(int rank)> const& work)
    {
        for (int rank = 0; rank < ranks; ++rank) {
            all_.push_back(std::make_unique<process>([&, rank] {
                ::alarm(60);
                ::signal(SIGABRT, SIG_DFL);
                ::setenv("RHEO_STANDIN_NCCL", mode.c_str(), 1);
                try {
                    work(rank);
                } catch (std::exception const& e) {
                    std::fprintf(stderr, "rank %d of %d: %s\n", rank, ranks, e.what());
                    ::_exit(1);
                }
            }));
        }
    }

    /// 0, or the signal that ended it, or 1 for a failure
    int ended(int rank) { return all_[static_cast<std::size_t>(rank)]->ended_within(90).value_or(-1); }
    bool all_succeed()
    {
        int failures = 0;
        for (std::size_t k = 0; k < all_.size(); ++k) {
            failures += ended(static_cast<int>(k)) != 0;
        }
        return failures == 0;
    }

private:
    std::vector<std::unique_ptr<process>> all_;
};
