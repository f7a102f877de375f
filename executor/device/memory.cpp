// SPDX-License-Identifier: Apache-2.0
#include "executor/device/memory.hpp"

#include <cstdint>
#include <cstdlib>
#include <new>

namespace rheo::inline v0 {

namespace {

constexpr std::uintptr_t cache_line = 64;

/// Large memory comes from the system as zeros: calloc knows that and writes none, so that pages are touched first by who uses them.
class memory_of_the_processor final : public memory {
public:
    void* take(std::size_t size) override
    {
        auto* const whole = size < SIZE_MAX - cache_line ? std::calloc(1, size + cache_line) : nullptr;
        if (whole == nullptr) {
            throw std::bad_alloc{};
        }
        auto* const place = static_cast<std::byte*>(whole) + (cache_line - reinterpret_cast<std::uintptr_t>(whole) % cache_line);
        std::memcpy(place - sizeof whole, &whole, sizeof whole);  // malloc aligns for a pointer, so there is room for one
        return place;
    }
    void give_back(void* place) noexcept override
    {
        void* whole = nullptr;
        if (place != nullptr) {
            std::memcpy(&whole, static_cast<std::byte*>(place) - sizeof whole, sizeof whole);
        }
        std::free(whole);
    }
    bool addressed_by_processor() const override { return true; }
};

}  // namespace

memory& host_memory()
{
    static memory_of_the_processor everywhere;
    return everywhere;
}

}  // namespace rheo::inline v0
