#pragma once
// SPDX-License-Identifier: Apache-2.0

// What all kernels of a rank share: the stream, the workspace, the table of products, copies of small things that the processor has (tokens,
// states of accumulators) in the device's memory, and losses on their way back.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/cuda/product.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/cuda/workspace.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/exact/exact.hpp"
#include "runtime/memory.hpp"

namespace rheo::inline v0::cuda {

class device_queue {
public:
    /// @param own the device's memory @param page_locked the processor's, for copies to and from the device; both outlive the queue
    device_queue(memory& own, memory& page_locked);
    ~device_queue();
    device_queue(device_queue const&) = delete;
    device_queue& operator=(device_queue const&) = delete;

    stream in_order() const { return stream_; }
    /// A workspace of at least that size, its counters included.
    workspace room(std::int64_t size);
    workspace product_room() { return room(workspace::counter_bytes + products::room_bytes); }
    products& by() { return products_; }

    void copy(void* to, void const* from, std::size_t size);
    /// Until all is done; then losses are where they were wanted.
    void wait();

    /// A copy of what the processor has, in memory that serves until the next call of the same place.
    enum class place : std::uint8_t { tokens, targets, order_rows, order_first, order_tokens, tensors, blocks, factors, end };
    template <class T>
    T const* copied(place where, std::span<T const> values)
    {
        return static_cast<T const*>(copied(where, values.data(), values.size_bytes()));
    }
    token_order_on_device ordered(std::span<std::int32_t const> tokens, std::int64_t vocabulary);

    /// Kernels add to the states of these accumulators until added() is called.
    void adds_to(std::span<accumulator_state> states);
    void added();
    template <class Sum>
    Sum in_device(Sum sum)
    {
        if (sum.state != nullptr) {
            sum.state = states_.data() + (sum.state - states_at_host_.data());
        }
        return sum;
    }

    /// Where the next kernel adds a loss; what it adds is added to `wanted` in wait(). After that kernel: end_loss().
    loss_sum* begin_loss(loss_sum& wanted);
    void end_loss();

private:
    void const* copied(place where, void const* from, std::size_t size);

    static constexpr std::size_t most_losses = 64;
    static constexpr auto places = static_cast<std::size_t>(place::end);
    static std::array<array<std::byte>, places> make_copies(memory& own);

    stream stream_;
    products products_;
    array<std::byte> room_;
    std::array<array<std::byte>, places> copies_;
    array<accumulator_state> states_;
    std::span<accumulator_state> states_at_host_;
    array<loss_sum> losses_, losses_at_host_;
    std::vector<loss_sum*> wanted_;
};

}  // namespace rheo::inline v0::cuda
