#pragma once
// SPDX-License-Identifier: Apache-2.0

// A CUDA stream of its own with events as marks, which are used again and again.

#include <deque>
#include <vector>

#include "executor/device/device_stream.hpp"

namespace rheo::inline v0::cuda {

class event_stream final : public device_stream {
public:
    event_stream();
    ~event_stream() override;

    stream in_order() const override { return stream_; }
    std::uint64_t mark() override;
    bool passed(std::uint64_t mark) override;

private:
    stream stream_;
    std::uint64_t marks_ = 0;
    std::deque<void*> recorded_;  ///< cudaEvent_t of the last marks, the oldest first
    std::vector<void*> free_;
};

}  // namespace rheo::inline v0::cuda
