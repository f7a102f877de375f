// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention_cudnn.hpp"

#include <string>

#include "kernels/cuda/workspace.hpp"
#include "support/catch.hpp"

using namespace rheo;
using cuda::attention_shape;
using cuda::order_of_sums;

namespace {

/// An H200, after its data sheet and the table of compute capability 9.0 in CUDA's programming guide.
cuda::cudnn_attention::described_device const h200{
    .properties = R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
    "multiProcessorCount": 132, "warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
    "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1,
    "totalGlobalMem": 150000000000, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 52428800, "cudaDeviceId": 0, "deviceVer": 900,
    "driverVer": 13000, "deviceName": "NVIDIA H200"})",
    .capability = 90};

// of GPT-2 124M, of models like Llama (7B; fewer heads of keys and values); two tokens; lengths that no tile divides; narrow and wide heads
constexpr attention_shape shapes[] = {{16, 1024, 12, 12, 64}, {1, 4096, 32, 32, 128}, {2, 2048, 32, 8, 128},
                                      {1, 2, 2, 2, 8},        {2, 33, 4, 1, 64},      {1, 131, 1, 1, 72}};

}  // namespace

TEST_CASE("cudnn plans: exist for the shapes of models")
{
    for (auto const order : {order_of_sums::fixed, order_of_sums::any}) {
        cuda::cudnn_attention attention{order, h200};
        for (auto const& s : shapes) {
            INFO(s.batch << " x " << s.length << ", " << s.heads << "/" << s.kv_heads << " of " << s.head_width
                         << (order == order_of_sums::fixed ? ", fixed" : ", any"));
            auto const scratch = attention.choose(s);
            CHECK(scratch >= cuda::workspace::counter_bytes);
            CHECK(attention.choose(s) == scratch);
        }
    }
}

TEST_CASE("cudnn plans: ordered sums need partial sums per key block")
{
    attention_shape const s{1, 4096, 32, 32, 128};
    auto const fixed = cuda::cudnn_attention{order_of_sums::fixed, h200}.choose(s);
    auto const any = cuda::cudnn_attention{order_of_sums::any, h200}.choose(s);
    auto const gradient = s.batch * s.length * s.heads * s.head_width * 4;  // of the queries, in float
    CHECK(any < 2 * gradient);
    CHECK(fixed > 4 * gradient);
    WARN("workspace of the backward of 1 x 4096 tokens, 32 heads of 128: " << (fixed >> 20) << " MiB in one order, " << (any >> 20) << " MiB in any");
}

TEST_CASE("cudnn plans: unsupported arguments are rejected")
{
    using Catch::Matchers::ContainsSubstring;
    cuda::cudnn_attention attention{order_of_sums::fixed, h200};
    CHECK_THROWS_WITH(
        attention.choose({1, 64, 2, 1, 68}),
        ContainsSubstring("cuDNN " + cuda::cudnn_attention::version() +
                          " has no plan for the forward of attention in bfloat16 over 1 x 64 tokens with 2 heads of 68 elements, 1 of keys and values: "));
    CHECK_THROWS_WITH(attention.choose({1, 1, 2, 2, 64}), ContainsSubstring("has no plan"));
    CHECK_THROWS_WITH(attention.choose({1, 64, 3, 2, 64}), ContainsSubstring("has no plan"));
    CHECK_THROWS_WITH((cuda::cudnn_attention{order_of_sums::any, {.properties = "{}", .capability = 90}}), ContainsSubstring("does not know this device"));
    CHECK_THROWS_WITH(
        attention.forward(
            {}, {},
            {.batch = 1, .length = 8, .width = 64, .heads = 1, .qkv = nullptr, .drop = {.probability = 0.1}, .output = nullptr, .log_sum_exp = nullptr}),
        ContainsSubstring("drops nothing"));
    CHECK_THROWS_WITH(
        attention.forward({}, {}, {.batch = 1, .length = 8, .width = 64, .heads = 1, .qkv = nullptr, .whole = 16, .output = nullptr, .log_sum_exp = nullptr}),
        ContainsSubstring("whole sequences"));
    CHECK_THROWS_WITH(attention.forward({}, {}, {.batch = 1, .length = 8, .width = 64, .heads = 1, .qkv = nullptr, .output = nullptr, .log_sum_exp = nullptr}),
                      ContainsSubstring("workspace is too small"));
}
