// SPDX-License-Identifier: Apache-2.0
// The emulation itself: it runs what is right, and finds what is wrong.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/matrix.cuh"
#include "kernels/cuda/reduce.cuh"
#include "support/catch.hpp"

using namespace rheo::cuda;
using Catch::Matchers::ContainsSubstring;
using rheo::bfloat16;

namespace {

constexpr unsigned threads = 96;

/// Runs a kernel over `blocks` blocks of 96 threads in one order and gives what it wrote, 96 words for each block.
template <class... Parameters>
std::vector<unsigned> result_of(void (*kernel)(unsigned*, Parameters...), unsigned order, unsigned blocks = 3)
{
    std::vector<unsigned> out(threads * blocks, 0xffffffffU);
    emulated::set_order(order);
    launch({}, {.grid = blocks, .block = threads, .shared_bytes = threads * sizeof(unsigned)}, kernel, out.data());
    emulated::set_order(0);
    return out;
}

template <class Kernel>
bool same_in_every_order(Kernel kernel)
{
    auto const first = result_of(kernel, 0);
    return std::ranges::all_of(std::vector{1U, 2U, 3U, 4U}, [&](unsigned order) { return result_of(kernel, order) == first; });
}

template <bool Barrier>
void mirror(unsigned* out)
{
    auto* const shared = shared_memory<unsigned>();
    shared[threadIdx.x] = threadIdx.x + 100 * blockIdx.x;
    if constexpr (Barrier) {
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = shared[blockDim.x - 1 - threadIdx.x];
}

/// The second round writes what others of the first still read, unless there is a barrier between.
template <bool Barrier>
void twice(unsigned* out)
{
    auto* const shared = shared_memory<unsigned>();
    unsigned sum = 0;
    for (unsigned round = 0; round < 2; ++round) {
        shared[threadIdx.x] = round + 1;
        __syncthreads();
        sum += 10 * sum + shared[(threadIdx.x + 1) % blockDim.x];
        if constexpr (Barrier) {
            __syncthreads();
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

/// As a sum over a block in two rounds that share their room: a warp that gets ahead writes what others still read.
template <bool Barrier>
void two_rounds(unsigned* out)
{
    auto* const shared = shared_memory<unsigned>();
    unsigned sum = 0;
    for (unsigned round = 1; round <= 2; ++round) {
        if (threadIdx.x % 32 == 0) {
            shared[threadIdx.x / 32] = round;
        }
        __syncthreads();
        sum = 10 * sum + __shfl_sync(0xffffffffU, shared[threadIdx.x % 3], 2);
        if constexpr (Barrier) {
            __syncthreads();
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

void sums_of_warps(unsigned* out)
{
    unsigned sum = threadIdx.x;
    for (int mask = 16; mask > 0; mask /= 2) {
        sum += __shfl_xor_sync(0xffffffffU, sum, mask);
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

void depends_on_blocks(unsigned* out)
{
    if (threadIdx.x == 0) {
        out[blockIdx.x * blockDim.x] = blockIdx.x == 0 ? 7 : out[(blockIdx.x - 1) * blockDim.x];
    }
}

void lane_missing(unsigned* out)
{
    if (threadIdx.x != 5) {
        out[threadIdx.x] = __shfl_xor_sync(0xffffffffU, threadIdx.x, 1);
    }
}

void barrier_not_for_all(unsigned* out)
{
    if (threadIdx.x < 40) {
        __syncthreads();
    }
    out[threadIdx.x] = 0;
}

void two_barriers(unsigned* out)
{
    if (threadIdx.x < 40) {
        __syncthreads();
        out[threadIdx.x] = 0;
    } else {
        __syncthreads();
    }
}

void lane_not_in_mask(unsigned*) { __syncwarp(0x7fffffffU); }

void lane_not_in_warp(unsigned*) { __syncwarp(); }

/// Two halves of a warp meet apart, each by its own mask.
void halves(unsigned* out)
{
    bool const low = threadIdx.x % 32 < 16;
    unsigned const sum = low ? __reduce_add_sync(0xffffU, threadIdx.x) : 1000 + __reduce_add_sync(0xffff0000U, threadIdx.x);
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

void source_not_in_mask(unsigned* out)
{
    if (threadIdx.x % 32 < 16) {
        out[threadIdx.x] = __shfl_sync(0xffffU, threadIdx.x, 20);
    }
}

void collectives(unsigned* out)
{
    unsigned const t = threadIdx.x;
    unsigned const lane = t % 32;
    unsigned wrong = 0;
    wrong |= __shfl_sync(0xffffffffU, t, 3) != t - lane + 3 ? 1U : 0;
    wrong |= __shfl_sync(0xffffffffU, t, 1, 8) != t - lane % 8 + 1 ? 2U : 0;
    wrong |= __shfl_up_sync(0xffffffffU, t, 1) != (lane == 0 ? t : t - 1) ? 4U : 0;
    wrong |= __shfl_down_sync(0xffffffffU, t, 2) != (lane >= 30 ? t : t + 2) ? 8U : 0;
    wrong |= __shfl_xor_sync(0xffffffffU, 0.5 + t, 4) != 0.5 + (t ^ 4U) ? 16U : 0;
    wrong |= __ballot_sync(0xffffffffU, lane % 2 == 0) != 0x55555555U ? 32U : 0;
    wrong |= __reduce_max_sync(0xffffffffU, t) != t - lane + 31 ? 64U : 0;
    wrong |= __reduce_add_sync(0xffffffffU, 2) != 64 ? 128U : 0;
    wrong |= __any_sync(0xffffffffU, lane == 9) != 1 || __all_sync(0xffffffffU, lane == 9) != 0 ? 256U : 0;
    wrong |= __syncthreads_or(t == 70) != 1 || __syncthreads_and(t == 70) != 0 || __syncthreads_count(t < 70) != 70 ? 512U : 0;
    out[blockIdx.x * blockDim.x + t] = wrong;
}

constexpr unsigned copied_words = 4;  // 16 bytes
constexpr auto source_words = [] {
    struct {
        alignas(16) unsigned at[threads * copied_words];
    } words{};
    for (unsigned i = 0; i < threads * copied_words; ++i) {
        words.at[i] = i + 7;
    }
    return words;
}();

/// Each thread brings 16 bytes, then zeros, and reads what the next one brought.
template <bool Waits, bool MeetsBefore, bool MeetsAfter>
void copies(unsigned* out)
{
    auto* const shared = shared_memory<unsigned>();
    unsigned const t = threadIdx.x;
    unsigned sum = 0;
    for (unsigned round = 0; round < 2; ++round) {
        begin_copy(shared + t * copied_words, source_words.at + t * copied_words, round == 0);
        end_group();
        if constexpr (Waits) {
            await_groups<0>();
        }
        if constexpr (MeetsBefore) {
            __syncthreads();  // all have what they brought
        }
        sum = 31 * sum + shared[(t + 1) % blockDim.x * copied_words];
        if constexpr (MeetsAfter) {
            __syncthreads();  // no thread reads any more
        }
    }
    out[blockIdx.x * blockDim.x + t] = sum;
}

/// Two groups under way to one place: to wait for all but one leaves open which of them is there.
template <int Pending>
void two_groups(unsigned* out)
{
    auto* const shared = shared_memory<unsigned>();
    unsigned const t = threadIdx.x;
    auto* const own = shared + t * copied_words;
    begin_copy(own, source_words.at, true);
    end_group();
    begin_copy(own, source_words.at + copied_words, true);
    end_group();
    await_groups<Pending>();
    out[blockIdx.x * blockDim.x + t] = own[0];
}

float value_of_thread(unsigned t) { return 1.0F / static_cast<float>(t + 3); }

void warp_reductions(unsigned* out)
{
    float const sum = warp_reduce(value_of_thread(threadIdx.x));
    float const largest = warp_reduce(value_of_thread(threadIdx.x), ::cuda::maximum<>{});
    bool const right = largest == value_of_thread(threadIdx.x / warp_size * warp_size);
    out[blockIdx.x * blockDim.x + threadIdx.x] = right ? std::bit_cast<unsigned>(sum) : 0;
}

void block_reductions(unsigned* out)
{
    float values[2] = {value_of_thread(threadIdx.x), -value_of_thread(threadIdx.x)};
    block_reduce(values, shared_memory<float>());
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[1] == -values[0] ? std::bit_cast<unsigned>(values[0]) : 0;
}

void reductions_of_first_lanes(unsigned* out)
{
    out[blockIdx.x * blockDim.x + threadIdx.x] = std::bit_cast<unsigned>(reduce_to_first_lane(value_of_thread(threadIdx.x), ::cuda::std::plus<>{}));
}

/// The sum in CUB's tree: neighbours first, then pairs of them, and so on.
float sum_of_tree(std::vector<float> values)
{
    for (std::size_t offset = 1; offset < values.size(); offset *= 2) {
        for (std::size_t i = 0; i + offset < values.size(); ++i) {
            values[i] += values[i + offset];
        }
    }
    return values.front();
}

/// Whether a kernel whose threads copy 16 bytes each writes this in every order, for each thread.
template <class Kernel>
bool writes_in_every_order(Kernel kernel, std::vector<unsigned> const& expected)
{
    return std::ranges::all_of(std::vector{0U, 1U, 2U, 3U, 4U}, [&](unsigned order) {
        std::vector<unsigned> out(threads, 0xffffffffU);
        emulated::set_order(order);
        launch({}, {.grid = 1, .block = threads, .shared_bytes = threads * 16}, kernel, out.data());
        emulated::set_order(0);
        return out == expected;
    });
}

}  // namespace

TEST_CASE("emulated: barriers, shuffles, votes, reductions work")
{
    CHECK(same_in_every_order(mirror<true>));
    CHECK(result_of(mirror<true>, 0)[threads] == 195);
    CHECK(same_in_every_order(twice<true>));
    CHECK(result_of(twice<true>, 0) == std::vector<unsigned>(threads * 3, 13));
    CHECK(same_in_every_order(two_rounds<true>));
    CHECK(same_in_every_order(sums_of_warps));
    CHECK(same_in_every_order(halves));
    CHECK((result_of(halves, 0)[3] == 15 * 8 && result_of(halves, 0)[20] == 1000 + 16 * 16 + 15 * 8));
    CHECK(result_of(sums_of_warps, 0)[40] == 32 * 32 + 31 * 16);
    for (unsigned order = 0; order < 5; ++order) {
        CHECK(result_of(collectives, order) == std::vector<unsigned>(threads * 3, 0));
    }
}

TEST_CASE("emulated: reductions go in CUB's tree")
{
    std::vector<float> of_warps;
    for (unsigned warp = 0; warp < 3; ++warp) {
        std::vector<float> values;
        for (unsigned lane = 0; lane < 32; ++lane) {
            values.push_back(value_of_thread(32 * warp + lane));
        }
        of_warps.push_back(sum_of_tree(values));
    }
    std::vector<unsigned> const of_block(threads * 3, std::bit_cast<unsigned>(sum_of_tree(of_warps)));
    for (unsigned order = 0; order < 5; ++order) {
        auto const of_threads = result_of(warp_reductions, order);
        auto const of_first_lanes = result_of(reductions_of_first_lanes, order);
        for (unsigned t = 0; t < threads; ++t) {
            auto const sum = std::bit_cast<unsigned>(of_warps[t / 32]);
            CHECK(of_threads[t] == sum);
            CHECK(of_first_lanes[t] == (t % 32 == 0 ? sum : 0xffffffffU));  // elsewhere it is undefined
        }
        CHECK(result_of(block_reductions, order) == of_block);
    }
}

TEST_CASE("emulated device: a barrier that is missing shows")
{
    CHECK_FALSE(same_in_every_order(mirror<false>));
    CHECK(result_of(mirror<false>, 0)[0] == 0xffffffffU);  // poison: thread 0 read what no thread had written
    CHECK_FALSE(same_in_every_order(twice<false>));
    CHECK_FALSE(same_in_every_order(two_rounds<false>));
}

TEST_CASE("emulated: async copies arrive; missing waits show")
{
    std::vector<unsigned> expected;
    for (unsigned t = 0; t < threads; ++t) {
        expected.push_back(31 * source_words.at[(t + 1) % threads * copied_words]);
    }
    CHECK(writes_in_every_order(copies<true, true, true>, expected));
    CHECK_FALSE(writes_in_every_order(copies<false, true, true>, expected));
    CHECK_FALSE(writes_in_every_order(copies<true, false, true>, expected));
    CHECK_FALSE(writes_in_every_order(copies<true, true, false>, expected));
    std::vector<unsigned> const second(threads, source_words.at[copied_words]);
    std::vector<unsigned> const first(threads, source_words.at[0]);
    CHECK(writes_in_every_order(two_groups<0>, second));
    CHECK_FALSE((writes_in_every_order(two_groups<1>, first) || writes_in_every_order(two_groups<1>, second)));
    bfloat16 const values[16] = {};
    bfloat16 to[8];
    CHECK_THROWS_WITH(begin_copy(to, values + 1, true), ContainsSubstring("multiples of its bytes"));
}

TEST_CASE("emulated: dependence between blocks shows") { CHECK_FALSE(same_in_every_order(depends_on_blocks)); }

TEST_CASE("emulated: threads that cannot meet are reported")
{
    CHECK_THROWS_WITH(result_of(lane_missing, 0), ContainsSubstring("thread 0 of block (0, 0, 0) waits at a shuffle in emulated.cpp:") &&
                                                      ContainsSubstring("for thread 5, which has ended"));
    CHECK_THROWS_WITH(result_of(barrier_not_for_all, 1), ContainsSubstring("waits at __syncthreads") && ContainsSubstring("for thread 40, which has ended"));
    CHECK_THROWS_WITH(result_of(two_barriers, 2), ContainsSubstring("a barrier is one place for all threads of a block"));
    CHECK_THROWS_WITH(result_of(lane_not_in_mask, 0), ContainsSubstring("thread 31 of block (0, 0, 0) is not in the mask of __syncwarp"));
    CHECK_THROWS_WITH(result_of(source_not_in_mask, 0), ContainsSubstring("reads lane 20") && ContainsSubstring("which the mask of the shuffle does not hold"));
    unsigned out = 0;
    CHECK_THROWS_WITH(launch({}, {.grid = 1, .block = 40}, lane_not_in_warp, &out), ContainsSubstring("that its warp of 8 threads does not have"));
    CHECK(same_in_every_order(mirror<true>));  // the next launch finds everything in order
}

TEST_CASE("emulated: launch beyond limits is an error with place")
{
    unsigned out = 0;
    CHECK_THROWS_WITH(launch({}, {.grid = 1, .block = 1025}, mirror<true>, &out),
                      ContainsSubstring("cudaLaunchKernelEx failed: invalid configuration argument") && ContainsSubstring("launch.cuh:"));
    CHECK_THROWS_AS(launch({}, {.grid = {1, 70000}, .block = 32}, mirror<true>, &out), error);
    CHECK_THROWS_WITH(launch({}, {.grid = 1, .block = 32, .shared_bytes = 300 << 10}, mirror<true>, &out), ContainsSubstring("cudaFuncSetAttribute failed"));
    auto const before = emulated::work().blocks;
    CHECK_NOTHROW(launch({}, {.grid = 0, .block = 32}, mirror<true>, &out));
    CHECK(emulated::work().blocks == before);
}
