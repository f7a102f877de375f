// SPDX-License-Identifier: Apache-2.0
#include "executor/cuda/queue.hpp"

#include <cstring>
#include <type_traits>
#include <utility>

#include <cuda_runtime.h>

#include "kernels/cuda/error.hpp"
#include "rheo/tensor/shard_grid.hpp"

namespace rheo::inline v0::cuda {

namespace {

cudaStream_t handle(stream s) { return static_cast<cudaStream_t>(s.handle); }

stream made_stream()
{
    cudaStream_t made = nullptr;
    check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return {made};
}

}  // namespace

template <std::size_t... I>
auto device_queue::make_ways(memory& own, memory& page_locked, std::index_sequence<I...>) -> std::array<way_to_device, places>
{
    return {((void)I, way_to_device{own, page_locked})...};
}

device_queue::device_queue(memory& own, memory& page_locked, tensor_cores attention, std::optional<order_of_sums> by_cudnn)
    : stream_{made_stream()},
      attention_{attention},
      cudnn_{by_cudnn ? std::optional{cudnn_attention{*by_cudnn}} : std::nullopt},
      scratch_{own},
      ways_{make_ways(own, page_locked, std::make_index_sequence<places>{})},
      states_{own},
      loss_{own, static_cast<std::size_t>(most_shards)},
      losses_at_host_{page_locked, most_losses}
{
}

device_queue::~device_queue()
{
    cudaStreamSynchronize(handle(stream_));
    cudaStreamDestroy(handle(stream_));
}

device_queue::way_to_device::way_to_device(memory& own, memory& page_locked) : at_host{page_locked}, in_device{own}
{
    cudaEvent_t made = nullptr;
    check(cudaEventCreate(&made), "cudaEventCreate");
    done = made;
}

device_queue::way_to_device::~way_to_device() { cudaEventDestroy(static_cast<cudaEvent_t>(done)); }

workspace device_queue::scratch(std::int64_t size)
{
    if (scratch_.size() < static_cast<std::size_t>(size)) {
        wait();
        scratch_.resize(static_cast<std::size_t>(size));
        ++arrangement_;
    }
    return {.memory = scratch_.data(), .bytes = static_cast<std::int64_t>(scratch_.size())};
}

void device_queue::copy(void* to, void const* from, std::size_t size)
{
    if (size != 0) {
        check(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, handle(stream_)), "cudaMemcpyAsync");
    }
}

void device_queue::zero(void* memory, std::size_t size)
{
    if (size != 0) {
        check(cudaMemsetAsync(memory, 0, size, handle(stream_)), "cudaMemsetAsync");
    }
}

void device_queue::wait()
{
    check(cudaStreamSynchronize(handle(stream_)), "cudaStreamSynchronize");
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
        if (wanted_[i] != nullptr) {
            *wanted_[i] = *wanted_[i] + losses_at_host_[i];
        }
    }
    wanted_.clear();
}

void const* device_queue::copied(place where, void const* from, std::size_t size)
{
    auto& way = ways_[static_cast<std::size_t>(where)];
    if (way.in_device.size() < size) {
        wait();
        way.at_host.resize(size);
        way.in_device.resize(size);
        ++arrangement_;
    } else {
        check(cudaEventSynchronize(static_cast<cudaEvent_t>(way.done)), "cudaEventSynchronize");
    }
    if (size != 0) {
        std::memcpy(way.at_host.data(), from, size);
        copy(way.in_device.data(), way.at_host.data(), size);
        check(cudaEventRecord(static_cast<cudaEvent_t>(way.done), handle(stream_)), "cudaEventRecord");
    }
    return way.in_device.data();
}

void device_queue::begin_item(item_values const& values)
{
    item_at_host_.clear();
    // Adds `count` elements, the values first and then `beyond` in place of those that are missing; gives where they begin.
    auto const add = [this]<class T>(std::span<T const> some, std::size_t count, std::type_identity_t<T> beyond) {
        auto const begin = (item_at_host_.size() + 15) / 16 * 16;
        item_at_host_.resize(begin + count * sizeof(T));
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(item_at_host_.data() + begin + i * sizeof(T), i < some.size() ? &some[i] : &beyond, sizeof(T));
        }
        return begin;
    };
    auto const rows = values.tokens.size();
    auto const tokens = add(values.tokens, rows, 0);
    auto const targets = add(values.targets, values.targets.size(), 0);
    auto const streams = add(values.streams, values.streams.size(), {});
    static token_order const none;
    auto const& order = values.order != nullptr ? *values.order : none;
    auto const segments = values.order != nullptr ? rows : 0;  // as many as there can be; those beyond the last have no rows
    auto const order_rows = add(std::span{order.rows}, segments, 0);
    auto const order_first = add(std::span{order.first}, segments + 1, static_cast<std::int32_t>(rows));
    auto const order_tokens = add(std::span{order.tokens}, segments, 0);
    auto const* const begin = static_cast<std::byte const*>(copied(place::item, item_at_host_.data(), item_at_host_.size()));
    auto const numbers = [begin](std::size_t offset) { return reinterpret_cast<std::int32_t const*>(begin + offset); };
    item_ = {
        .tokens = numbers(tokens),
        .targets = numbers(targets),
        .order = {.segments = static_cast<std::int64_t>(segments), .rows = numbers(order_rows), .first = numbers(order_first), .tokens = numbers(order_tokens)},
        .streams = reinterpret_cast<random_stream const*>(begin + streams)};
}

void device_queue::adds_to(std::span<accumulator_state> states)
{
    if (states_.size() != states.size()) {
        wait();
        states_.resize(states.size());
        ++arrangement_;
    }
    states_at_host_ = states;
    copy(states_.data(), states.data(), states.size_bytes());
}

void device_queue::added() { copy(states_at_host_.data(), states_.data(), states_at_host_.size_bytes()); }

loss_sum* device_queue::begin_loss()
{
    zero(loss_.data(), loss_.size() * sizeof(loss_sum));
    return loss_.data();
}

void device_queue::fetch_loss(loss_sum& wanted, std::size_t number)
{
    if (wanted_.size() == most_losses) {
        wait();
    }
    copy(losses_at_host_.data() + wanted_.size(), loss_.data() + number, sizeof(loss_sum));
    wanted_.push_back(&wanted);
}

}  // namespace rheo::inline v0::cuda
