#pragma once
// SPDX-License-Identifier: Apache-2.0

// How a kernel is started, and where it finds its shared memory. A function call in place of <<<>>>, and no __shared__ variables:
// so a .cu file is plain C++, which the tests compile for the processor too.

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/cuda/error.hpp"
#include "kernels/cuda/stream.hpp"

namespace rheo::inline v0::cuda {

/// Threads of a block, blocks of a grid.
using extent = dim3;

struct launch_shape {
    extent grid;
    extent block;
    std::size_t shared_bytes = 0;  ///< per block; `shared_memory` points at them
};

/// Blocks that cover `count` things, `each` of them per block.
constexpr unsigned blocks_for(std::int64_t count, std::int64_t each) { return static_cast<unsigned>((count + each - 1) / each); }

/// Puts a kernel into the stream; nothing at all for an empty grid. @throws error
template <class... Parameters, class... Arguments>
void launch(stream queue, launch_shape const& shape, void (*kernel)(Parameters...), Arguments const&... arguments)
{
    if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) {
        return;
    }
    if (shape.shared_bytes > (48U << 10)) {
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shape.shared_bytes)), "cudaFuncSetAttribute");
    }
    cudaLaunchConfig_t config{};
    config.gridDim = shape.grid;
    config.blockDim = shape.block;
    config.dynamicSmemBytes = shape.shared_bytes;
    config.stream = static_cast<cudaStream_t>(queue.handle);
    check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), "cudaLaunchKernelEx");
}

/// The block's shared memory; its content is undefined at first. Aligned to 1024.
template <class T>
__device__ T* shared_memory()
{
#ifdef __CUDA_EMULATED__
    return static_cast<T*>(emulated::shared_memory());
#else
    extern __shared__ __align__(1024) unsigned char rheo_shared_memory[];
    return reinterpret_cast<T*>(rheo_shared_memory);
#endif
}

}  // namespace rheo::inline v0::cuda
