#pragma once
// SPDX-License-Identifier: Apache-2.0

// Work that is put into a queue again and again, with other values but the same memory: recorded as a CUDA graph, it is one launch. A slot is all
// that the arguments of the work's kernels hang on. Its first work is put there kernel by kernel, which also takes all workspace and
// chooses all products' algorithms; the second is recorded.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "executor/cuda/queue.hpp"

struct CUgraphExec_st;

namespace rheo::inline v0::cuda {

class recordings {
public:
    using slot = std::vector<std::uintptr_t>;

    /// @param queue outlives the recordings
    explicit recordings(device_queue& queue) : queue_{&queue} {}
    ~recordings();
    recordings(recordings const&) = delete;
    recordings& operator=(recordings const&) = delete;

    /// Puts the work into the queue. An empty slot is none: nothing is recorded.
    void perform(slot const& which, std::function<void()> const& work);

private:
    struct destroy {
        void operator()(CUgraphExec_st* graph) const;
    };
    using graph = std::unique_ptr<CUgraphExec_st, destroy>;

    graph recorded(std::function<void()> const& work);
    void forget();

    static constexpr std::size_t most = 1024;

    device_queue* queue_;
    std::map<slot, graph> known_;  ///< null: was there once
    std::uint64_t arrangement_ = 0;
};

}  // namespace rheo::inline v0::cuda
