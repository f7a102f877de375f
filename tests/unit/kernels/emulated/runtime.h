#pragma once
// SPDX-License-Identifier: Apache-2.0

// The host's side of the stand-in for CUDA: memory, streams and events of one device that is always there, and the launch of a kernel with
// the device's limits. Each stream is a queue of its own, ordered after others by events alone: the null stream waits for no other and no other for it,
// as with cudaStreamNonBlocking. What is put into a stream is done at once or, as late as CUDA allows, when the program waits for it (set_late): then
// who does not wait sees what was there before. While a stream is captured, what is put there becomes a graph; what
// CUDA forbids then ends the capture. Included by cuda_runtime.h.

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidResourceHandle = 400,
    cudaErrorNotReady = 600,
    cudaErrorStreamCaptureUnsupported = 900,
    cudaErrorStreamCaptureInvalidated = 901,
    cudaErrorStreamCaptureIsolation = 905,
};
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;
struct cudaLaunchAttribute {};
struct cudaDeviceProp {
    char name[256];
    int major;
    int minor;
    int multiProcessorCount;
};
struct cudaFuncAttributes {
    int binaryVersion;
};
inline constexpr unsigned cudaStreamNonBlocking = 1;
inline constexpr unsigned cudaEventDisableTiming = 2;
#define CUDART_VERSION 0
struct cudaLaunchConfig_t {
    dim3 gridDim{};
    dim3 blockDim{};
    std::size_t dynamicSmemBytes = 0;
    cudaStream_t stream = nullptr;
    cudaLaunchAttribute* attrs = nullptr;
    unsigned numAttrs = 0;
};

char const* cudaGetErrorName(cudaError_t code);
char const* cudaGetErrorString(cudaError_t code);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetPCIBusId(char* address, int bytes, int device);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaMalloc(void** pointer, std::size_t bytes);
cudaError_t cudaFree(void* pointer);
cudaError_t cudaMallocHost(void** pointer, std::size_t bytes);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t cudaMemset(void* to, int value, std::size_t bytes);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream = nullptr);
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* ready, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t ready);
cudaError_t cudaGraphLaunch(cudaGraphExec_t ready, cudaStream_t stream);

namespace emulated {
/// What the launch of a kernel returns; the limits are those of compute capability 9.0.
cudaError_t checked_launch(cudaLaunchConfig_t const& config, void const* kernel);
cudaError_t allow_shared_memory(void const* kernel, int bytes);
/// From now on work is done when the program waits, or again at once. The variable RHEO_EMULATED_LATE sets what holds at the start.
void set_late(bool late);
/// Does it now, or later, or whenever the graph is launched that is being captured.
void put(cudaStream_t stream, std::function<void()> work);
/// Work that waits for another device, as a kernel of NCCL: asked once all before it in its stream is done, perhaps before this returns, and again whenever the
/// program waits for or queries anything, until it says true. It holds back its own stream alone, and calls nothing of the runtime. While there is some, the
/// program may ask for no memory, give none back and not wait for the whole device, which on a GPU may last for ever: it is aborted.
void put_pending(cudaStream_t stream, std::function<bool()> work);
}  // namespace emulated

// For libraries opened at run time.
/// Of each device: RHEO_EMULATED_MULTIPROCESSORS, else as many as an H100 has.
extern "C" int rheo_emulated_multiprocessors();
/// As above. It is done when `work` does not give 0; `destroy`, if any, is called when it is not asked any more.
extern "C" void rheo_emulated_put_pending(void* stream, int (*work)(void* context), void (*destroy)(void* context), void* context);

template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute, int value)
{
    return emulated::allow_shared_memory(reinterpret_cast<void const*>(kernel), value);
}

template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* of, void (*)(Parameters...))
{
    *of = {.binaryVersion = 90};
    return cudaSuccess;
}

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(cudaLaunchConfig_t const* config, void (*kernel)(Parameters...), Arguments&&... arguments)
{
    auto const code = emulated::checked_launch(*config, reinterpret_cast<void const*>(kernel));
    if (code != cudaSuccess) {
        return code;
    }
    struct call {
        void (*kernel)(Parameters...);
        std::tuple<Parameters...> arguments;
    } all{kernel, {static_cast<Arguments&&>(arguments)...}};
    emulated::put(config->stream, [all, grid = config->gridDim, block = config->blockDim, shared = config->dynamicSmemBytes]() mutable {
        auto const thread = [](void* context) { std::apply(static_cast<call*>(context)->kernel, static_cast<call*>(context)->arguments); };
        emulated::run_grid({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, thread, &all);
    });
    return cudaSuccess;
}
