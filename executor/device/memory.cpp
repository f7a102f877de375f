// SPDX-License-Identifier: Apache-2.0
#include "executor/device/memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace rheo::inline v0 {

namespace {

constexpr std::uintptr_t cache_line = 64;
constexpr std::size_t large_page = std::size_t{2} << 20U;

std::uintptr_t rounded_up(std::uintptr_t place, std::size_t unit) { return (place + unit - 1) / unit * unit; }

/// Memory of many arrays, in the system's large pages: where pages of 4 KiB are touched first, the system's work for each is most of what a copy into
/// them takes. It goes back to the system with its last array.
struct shared_room {
    std::atomic<std::size_t> arrays;
    void* mapping;
    std::size_t length;  ///< of the mapping
};

/// Before every array: where its memory begins.
struct origin {
    std::size_t size = 0;         ///< of an array in a room
    shared_room* room = nullptr;  ///< null: what it lies in is its own
    void* whole = nullptr;
};
static_assert(sizeof(origin) <= cache_line && sizeof(shared_room) <= cache_line);

/// Large memory comes from the system as zeros: calloc knows that and writes none, so that pages are touched first by who uses them.
class memory_of_the_processor final : public memory {
public:
    void* take(std::size_t size) override
    {
        auto* const whole = size < SIZE_MAX - 2 * cache_line ? std::calloc(1, size + 2 * cache_line) : nullptr;
        if (whole == nullptr) {
            throw std::bad_alloc{};
        }
        return marked(rounded_up(reinterpret_cast<std::uintptr_t>(whole) + cache_line, cache_line), {.whole = whole});
    }

    void give_back(void* place) noexcept override
    {
        if (place == nullptr) {
            return;
        }
        origin of;
        std::memcpy(&of, static_cast<std::byte*>(place) - sizeof of, sizeof of);
        if (of.room == nullptr) {
            std::free(of.whole);
        } else if (of.room->arrays.fetch_sub(1) == 1) {
            munmap(of.room->mapping, of.room->length);
        } else {
            auto const page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
            auto const first = rounded_up(reinterpret_cast<std::uintptr_t>(place), page);
            auto const last = (reinterpret_cast<std::uintptr_t>(place) + of.size) / page * page;
            if (first < last) {
                madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
            }
        }
    }

    std::vector<void*> take_all(std::span<std::size_t const> sizes) override
    {
        std::size_t together = cache_line;
        for (auto const size : sizes) {
            if (size >= SIZE_MAX / 2 - together) {
                throw std::bad_alloc{};
            }
            together += cache_line + rounded_up(size, cache_line);
        }
        if (together < large_page) {
            return memory::take_all(sizes);
        }
        std::vector<void*> all;
        all.reserve(sizes.size());
        // the last page is a large one when more than half of it is used
        auto const used = together % large_page > large_page / 2 ? rounded_up(together, large_page) : together;
        auto const length = used + large_page;
        auto* const mapping = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (mapping == MAP_FAILED) {
            throw std::bad_alloc{};
        }
        auto place = rounded_up(reinterpret_cast<std::uintptr_t>(mapping), large_page);
#ifdef MADV_HUGEPAGE
        madvise(reinterpret_cast<void*>(place), used, MADV_HUGEPAGE);  // where there are none, pages are small
#endif
        auto* const room = ::new (reinterpret_cast<void*>(place)) shared_room{sizes.size(), mapping, length};
        place += cache_line;
        for (auto const size : sizes) {
            all.push_back(marked(place + cache_line, {.size = size, .room = room}));
            place += cache_line + rounded_up(size, cache_line);
        }
        return all;
    }

    bool addressed_by_processor() const override { return true; }

private:
    static void* marked(std::uintptr_t place, origin const& of)
    {
        auto* const array = reinterpret_cast<std::byte*>(place);
        std::memcpy(array - sizeof of, &of, sizeof of);
        return array;
    }
};

}  // namespace

std::vector<void*> memory::take_all(std::span<std::size_t const> sizes)
{
    std::vector<void*> all;
    all.reserve(sizes.size());
    try {
        for (auto const size : sizes) {
            all.push_back(take(size));
        }
    } catch (...) {
        std::for_each(all.begin(), all.end(), [&](void* place) { give_back(place); });
        throw;
    }
    return all;
}

memory& host_memory()
{
    static memory_of_the_processor everywhere;
    return everywhere;
}

}  // namespace rheo::inline v0
