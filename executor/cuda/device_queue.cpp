// SPDX-License-Identifier: Apache-2.0
#include "cuda/device_queue.hpp"

#include <utility>

#include <cuda_runtime.h>

#include "kernels/cuda/error.hpp"

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

device_queue::device_queue(memory& own, memory& page_locked)
    : stream_{made_stream()}, room_{own}, copies_{make_copies(own)}, states_{own}, losses_{own, most_losses}, losses_at_host_{page_locked, most_losses}
{
}

device_queue::~device_queue()
{
    cudaStreamSynchronize(handle(stream_));
    cudaStreamDestroy(handle(stream_));
}

auto device_queue::make_copies(memory& own) -> std::array<array<std::byte>, places>
{
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::array<array<std::byte>, places>{((void)I, array<std::byte>{own})...};
    }(std::make_index_sequence<places>{});
}

workspace device_queue::room(std::int64_t size)
{
    if (room_.size() < static_cast<std::size_t>(size)) {
        wait();
        room_.resize(static_cast<std::size_t>(size));
    }
    return {.memory = room_.data(), .bytes = static_cast<std::int64_t>(room_.size())};
}

void device_queue::copy(void* to, void const* from, std::size_t size)
{
    if (size != 0) {
        check(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, handle(stream_)), "cudaMemcpyAsync");
    }
}

void device_queue::wait()
{
    check(cudaStreamSynchronize(handle(stream_)), "cudaStreamSynchronize");
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
        *wanted_[i] = *wanted_[i] + losses_at_host_[i];
    }
    wanted_.clear();
}

void const* device_queue::copied(place where, void const* from, std::size_t size)
{
    auto& to = copies_[static_cast<std::size_t>(where)];
    if (to.size() < size) {
        wait();
        to.resize(size);
    }
    copy(to.data(), from, size);
    return to.data();
}

token_order_on_device device_queue::ordered(std::span<std::int32_t const> tokens, std::int64_t vocabulary)
{
    auto const order = order_of(tokens, vocabulary);
    return {.segments = std::ssize(order.tokens), .rows = copied(place::order_rows, std::span{order.rows}), .first = copied(place::order_first, std::span{order.first}),
            .tokens = copied(place::order_tokens, std::span{order.tokens})};
}

void device_queue::adds_to(std::span<accumulator_state> states)
{
    if (states_.size() != states.size()) {
        wait();
        states_.resize(states.size());
    }
    states_at_host_ = states;
    copy(states_.data(), states.data(), states.size_bytes());
}

void device_queue::added() { copy(states_at_host_.data(), states_.data(), states_at_host_.size_bytes()); }

loss_sum* device_queue::begin_loss(loss_sum& wanted)
{
    if (wanted_.size() == most_losses) {
        wait();
    }
    auto* const here = losses_.data() + wanted_.size();
    wanted_.push_back(&wanted);
    check(cudaMemsetAsync(here, 0, sizeof(loss_sum), handle(stream_)), "cudaMemsetAsync");
    return here;
}

void device_queue::end_loss()
{
    auto const last = wanted_.size() - 1;
    copy(losses_at_host_.data() + last, losses_.data() + last, sizeof(loss_sum));
}

}  // namespace rheo::inline v0::cuda
