#pragma once
// SPDX-License-Identifier: Apache-2.0

// What all kernels of a rank share: the stream, the workspace, the table of products, copies of small things that the processor has (values of
// items, states of accumulators) in the device's memory, and losses on their way back.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "executor/data/item_values.hpp"
#include "executor/device/memory.hpp"
#include "kernels/attention/attention.hpp"
#include "kernels/attention/attention_cudnn.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/cuda/product.hpp"
#include "kernels/cuda/stream.hpp"
#include "kernels/cuda/workspace.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/exact/exact.hpp"

namespace rheo::inline v0::cuda {

class device_queue {
public:
    /// @param own the device's memory @param page_locked the processor's, for copies to and from the device; both outlive the queue
    /// @param attention whose tensor cores compute it in bf16; the device has them @param by_cudnn it does, in this order, in place of them
    device_queue(memory& own, memory& page_locked, tensor_cores attention, std::optional<order_of_sums> by_cudnn);
    ~device_queue();
    device_queue(device_queue const&) = delete;
    device_queue& operator=(device_queue const&) = delete;

    stream in_order() const { return stream_; }
    /// A workspace of at least that size, its counters included.
    workspace scratch(std::int64_t size);
    workspace product_scratch() { return scratch(workspace::counter_bytes + products::workspace_bytes); }
    products& by() { return products_; }
    tensor_cores attention() const { return attention_; }
    /// Null: attention is computed by our own kernels.
    cudnn_attention* attention_by_cudnn() { return cudnn_ ? &*cudnn_ : nullptr; }

    void copy(void* to, void const* from, std::size_t size);
    void zero(void* memory, std::size_t size);
    /// Until all is done; then losses are where they were wanted.
    void wait();

    /// A copy of what the processor has, in memory that serves until the next call of the same place.
    enum class place : std::uint8_t { item, tensors, blocks, factors, end };
    template <class T>
    T const* copied(place where, std::span<T const> values)
    {
        return static_cast<T const*>(copied(where, values.data(), values.size_bytes()));
    }

    /// Where the values of an item lie that is computed now.
    struct item_on_device {
        std::int32_t const* tokens = nullptr;
        std::int32_t const* targets = nullptr;
        token_order_on_device order{};
        random_stream const* streams = nullptr;
    };
    /// Copies them; for values of the same sizes the places are the same, as long as arrangement() is.
    void begin_item(item_values const& values);
    item_on_device const& item() const { return item_; }
    /// Another number once memory lies elsewhere that kernels use.
    std::uint64_t arrangement() const { return arrangement_; }

    /// Kernels add to the states of these accumulators until added() is called.
    void adds_to(std::span<accumulator_state> states);
    void added();
    gradient_sum_of<dtype::i64> in_device(gradient_sum_of<dtype::i64> sum)
    {
        if (sum.state != nullptr) {
            sum.state = in_device(sum.state);
        }
        return sum;
    }
    /// States of rows lie beside their sums.
    gradient_sum_of<dtype::i32> in_device(gradient_sum_of<dtype::i32> const& sum) { return sum; }
    accumulator_state* in_device(accumulator_state* state) { return states_.data() + (state - states_at_host_.data()); }

    /// Where the next kernels add losses, one for each shard: zeros.
    loss_sum* begin_loss();
    /// Where they were added last.
    loss_sum* loss() { return loss_.data(); }
    /// What was added there is added to `wanted` in wait().
    void fetch_loss(loss_sum& wanted, std::size_t number = 0);
    /// wait() adds nothing to what was wanted so far.
    void forget_losses() noexcept { std::fill(wanted_.begin(), wanted_.end(), nullptr); }

private:
    void const* copied(place where, void const* from, std::size_t size);

    static constexpr std::size_t most_losses = 64;
    static constexpr auto places = static_cast<std::size_t>(place::end);
    /// What goes to the device is read from page-locked memory, whenever the device comes to it; `done` is when it has been read.
    struct way_to_device {
        way_to_device(memory& own, memory& page_locked);
        ~way_to_device();
        way_to_device(way_to_device const&) = delete;
        way_to_device& operator=(way_to_device const&) = delete;

        array<std::byte> at_host, in_device;
        void* done = nullptr;
    };
    template <std::size_t... I>
    static std::array<way_to_device, places> make_ways(memory& own, memory& page_locked, std::index_sequence<I...>);

    stream stream_;
    tensor_cores attention_;
    std::optional<cudnn_attention> cudnn_;
    products products_;
    array<std::byte> scratch_;
    std::array<way_to_device, places> ways_;
    array<accumulator_state> states_;
    std::span<accumulator_state> states_at_host_;
    array<loss_sum> loss_, losses_at_host_;
    std::vector<loss_sum*> wanted_;  ///< null: forgotten
    std::vector<std::byte> item_at_host_;
    item_on_device item_;
    std::uint64_t arrangement_ = 0;
};

}  // namespace rheo::inline v0::cuda
