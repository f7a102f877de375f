#pragma once
// SPDX-License-Identifier: Apache-2.0

// A queue of a device beside the one that a backend computes in, for what waits there for other ranks. Nothing computes in it, and no computation waits for it on
// the device: the processor looks whether it has got somewhere, and only then puts into the backend's queue what reads the result. So what arrives broken is
// never computed with, and a wait for computations ends whatever becomes of the other ranks.

#include <cstdint>

#include "kernels/cuda/stream.hpp"

namespace rheo::inline v0 {

class device_stream {
public:
    device_stream() = default;
    device_stream(device_stream const&) = delete;
    device_stream& operator=(device_stream const&) = delete;
    virtual ~device_stream() = default;

    virtual cuda::stream in_order() const = 0;
    /// Names all that has been put there so far. Numbers ascend.
    virtual std::uint64_t mark() = 0;
    /// Whether what a mark names is done. Never waits. @throws when some of it failed
    virtual bool passed(std::uint64_t mark) = 0;
};

}  // namespace rheo::inline v0
