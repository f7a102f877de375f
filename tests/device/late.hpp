#pragma once
// SPDX-License-Identifier: Apache-2.0

// While one of these lives, the emulated device does things as late as CUDA allows.

#include <cuda_runtime.h>

struct late {
    late() { emulated::set_late(true); }
    ~late() { emulated::set_late(false); }
    late(late const&) = delete;
    late& operator=(late const&) = delete;
};
