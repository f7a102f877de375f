// SPDX-License-Identifier: Apache-2.0
#include "executor/device/memory.hpp"

#include <new>

namespace rheo::inline v0 {

namespace {

constexpr std::align_val_t cache_line{64};

class memory_of_the_processor final : public memory {
public:
    void* take(std::size_t size) override
    {
        auto* const place = ::operator new(size, cache_line);
        std::memset(place, 0, size);
        return place;
    }
    void give_back(void* place) noexcept override { ::operator delete(place, cache_line); }
    bool addressed_by_processor() const override { return true; }
};

}  // namespace

memory& host_memory()
{
    static memory_of_the_processor everywhere;
    return everywhere;
}

}  // namespace rheo::inline v0
