#pragma once
// SPDX-License-Identifier: Apache-2.0

// A parameter or one of its moments in the memory of a backend, as float or bfloat16 (dtype_policy::master): one type for both, because copies, digests and
// checkpoints move its bytes without looking at them.

#include <cstddef>
#include <span>

#include "executor/device/memory.hpp"
#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0 {

class state_array {
public:
    explicit state_array(memory& where = host_memory(), dtype type = dtype::f32) : type_{type}, bytes_{where} {}
    state_array(memory& where, std::size_t count, dtype type = dtype::f32) : state_array{where, type} { resize(count); }

    /// What it held is gone when the size is another: zeros.
    void resize(std::size_t count) { bytes_.resize(count * element_bytes()); }

    /// Elements that its memory has given; what it held is gone.
    void adopt(void* taken, std::size_t count) { bytes_.adopt(static_cast<std::byte*>(taken), count * element_bytes()); }

    dtype type() const { return type_; }
    std::size_t element_bytes() const { return static_cast<std::size_t>(size_of(type_)); }
    std::size_t size() const { return bytes_.size() / element_bytes(); }
    std::size_t size_bytes() const { return bytes_.size(); }
    bool empty() const { return bytes_.empty(); }

    std::byte* data() { return bytes_.data(); }
    std::byte const* data() const { return bytes_.data(); }
    /// @pre it holds float
    std::span<float> floats() { return held_as<float>(dtype::f32); }
    std::span<float const> floats() const { return held_as<float>(dtype::f32); }
    /// @pre it holds bfloat16
    std::span<bfloat16> bfloats() { return held_as<bfloat16>(dtype::bf16); }
    std::span<bfloat16 const> bfloats() const { return held_as<bfloat16>(dtype::bf16); }

private:
    template <class T>
    std::span<T> held_as(dtype type) const
    {
        expects(type == type_, "a state array is read in the type that it holds");
        return {reinterpret_cast<T*>(const_cast<std::byte*>(bytes_.data())), size()};
    }

    dtype type_;
    array<std::byte> bytes_;
};

}  // namespace rheo::inline v0
