#pragma once
// SPDX-License-Identifier: Apache-2.0

// What comes from another rank or goes to one: where kernels use it, and where messages do. Where messages reach the memory that kernels use these are the
// same place and nothing is copied.

#include <cstddef>
#include <deque>
#include <span>

#include "executor/device/backend.hpp"

namespace rheo::inline v0 {

/// What a message reads of something that kernels have written: itself or, where messages have another memory, a copy, which is added to `copies`
/// and lives as long. Waits.
template <class T>
std::span<T const> on_host(compute_backend& backend, std::deque<array<T>>& copies, T const* from, std::size_t count)
{
    if (backend.has_one_memory()) {
        return {from, count};
    }
    auto& copy = copies.emplace_back(backend.messages(), count);
    backend.copy(copy.data(), from, count * sizeof(T));
    backend.wait();
    return copy;
}

/// A matrix that is used here and in messages, again and again.
class staging_buffer {
public:
    explicit staging_buffer(compute_backend& backend) : backend_{&backend}, device_{backend.own()}, host_{backend.messages()} {}

    /// @param is_direct messages reach where kernels use it
    void resize(std::size_t size, bool is_direct)
    {
        is_direct_ = is_direct;
        device_.resize(size);
        host_.resize(is_direct ? 0 : size);
    }
    std::size_t size() const { return device_.size(); }
    bool empty() const { return device_.empty(); }

    void* device() { return device_.data(); }
    std::span<std::byte> for_messages() { return is_direct_ ? std::span{device_.data(), device_.size()} : std::span{host_.data(), host_.size()}; }

    /// What a message brought goes where kernels use it.
    void copy_from_messages()
    {
        if (!is_direct_) {
            backend_->copy(device_.data(), host_.data(), size());
        }
    }
    /// What kernels left goes where a message takes it. Waits.
    void copy_to_messages()
    {
        if (!is_direct_) {
            backend_->copy(host_.data(), device_.data(), size());
            backend_->wait();
        }
    }

private:
    compute_backend* backend_;
    array<std::byte> device_;
    array<std::byte> host_;
    bool is_direct_ = false;
};

}  // namespace rheo::inline v0
