#pragma once
// SPDX-License-Identifier: Apache-2.0

// The device's own memory, where the variable RHEO_EMULATED_APART is set: pages that can be touched while the device is at work and at no other
// time, so that the processor, or a library that it calls, ends with a signal when it looks at them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <sys/mman.h>

namespace emulated {

/// Pages of addresses that are not used again when they are given back.
class memory_apart {
public:
    void* take(std::size_t bytes)
    {
        std::size_t const unit = bytes >= large_page ? large_page : page;  // large pages: else opening a workspace of 64 MiB is most of a test's time
        std::size_t const begin = (used_ + unit - 1) / unit * unit;
        std::size_t const end = begin + (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
        if (end > reserved) {
            return nullptr;
        }
        if (unit == large_page) {
            madvise(first_ + begin, end - begin, MADV_HUGEPAGE);
        }
        used_ = end;
        return first_ + begin;
    }
    void give_back(void* place, std::size_t bytes) { madvise(place, bytes, MADV_DONTNEED); }
    bool holds(void const* place) const { return place >= first_ && place < first_ + used_; }
    void open(bool access) { mprotect(first_, used_, access ? PROT_READ | PROT_WRITE : PROT_NONE); }

private:
    static constexpr std::size_t page = 4096;
    static constexpr std::size_t large_page = std::size_t{2} << 20;
    static constexpr std::size_t reserved = std::size_t{64} << 30;

    static std::byte* reserve()
    {
        auto* const place = static_cast<std::byte*>(mmap(nullptr, reserved + large_page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
        return place + (large_page - reinterpret_cast<std::uintptr_t>(place) % large_page) % large_page;
    }

    std::byte* first_ = reserve();
    std::size_t used_ = 0;
};

inline memory_apart* apart()
{
    static auto* const all = std::getenv("RHEO_EMULATED_APART") != nullptr ? new memory_apart : nullptr;
    return all;
}

/// While one exists, the device may touch its memory.
class at_work {
public:
    at_work() { change(depth_++ == 0, true); }
    ~at_work() { change(--depth_ == 0, false); }
    at_work(at_work const&) = delete;
    at_work& operator=(at_work const&) = delete;

private:
    static void change(bool changes, bool access)
    {
        if (changes && apart() != nullptr) {
            apart()->open(access);
        }
    }
    static inline int depth_ = 0;
};

}  // namespace emulated
