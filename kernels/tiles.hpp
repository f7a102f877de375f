#pragma once
// SPDX-License-Identifier: Apache-2.0

// Threads that take tiles. An operation cuts its work by a grid that is part of its definition, never of the
// thread count, and each tile is computed by one thread alone; so the pool decides only who does what
// when, and the bits are the same for any number of threads. The caller is one of the threads. The
// others spin for a moment after each run and then sleep, because ranks may outnumber cores.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

namespace rheo::inline v0 {

class tile_pool {
public:
    /// @pre threads >= 1; threads - 1 are started
    explicit tile_pool(int threads);
    ~tile_pool();
    tile_pool(tile_pool const&) = delete;
    tile_pool& operator=(tile_pool const&) = delete;

    int threads() const noexcept;

    /// Calls tile(t, worker) once for each t in 0 .. count-1, worker in 0 .. threads()-1, and returns when
    /// all are done. When calls throw, the first exception comes out here and tiles not begun are left out.
    /// @pre called by one thread at a time, and not from inside a tile
    template <class Tile>
    void run(std::int64_t count, Tile&& tile)
    {
        using plain = std::remove_reference_t<Tile>;
        run(
            count, [](void* f, std::int64_t t, int worker) { (*static_cast<plain*>(f))(t, worker); },
            const_cast<void*>(static_cast<void const*>(std::addressof(tile))));
    }

    /// A worker's own memory, at least `size` bytes aligned to 64, kept from call to call; its content is not.
    /// Each slot is separate; a later request for the same slot of the same worker ends the earlier one.
    std::span<std::byte> scratch(int worker, std::size_t size, int slot = 0);

    /// The same, as an array. @pre T is trivial
    template <class T>
    T* scratch_of(int worker, std::int64_t count, int slot = 0)
    {
        static_assert(std::is_trivially_copyable_v<T>, "scratch memory holds trivial types only");
        return reinterpret_cast<T*>(scratch(worker, static_cast<std::size_t>(count) * sizeof(T), slot).data());
    }

    static constexpr int scratch_slots = 8;

private:
    using function = void (*)(void*, std::int64_t, int);
    void run(std::int64_t count, function call, void* tile);

    struct state;
    std::unique_ptr<state> state_;
};

}  // namespace rheo::inline v0
