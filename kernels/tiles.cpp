// SPDX-License-Identifier: Apache-2.0
#include "kernels/tiles.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::size_t cache_line = 64;

struct memory {
    std::byte* begin = nullptr;
    std::size_t size = 0;

    memory() = default;
    memory(memory const&) = delete;
    memory& operator=(memory const&) = delete;
    ~memory() { release(); }

    void release() { ::operator delete(begin, std::align_val_t{cache_line}); }

    std::byte* at_least(std::size_t wanted)
    {
        if (size < wanted) {
            release();
            begin = nullptr;
            size = 0;
            begin = static_cast<std::byte*>(::operator new(wanted, std::align_val_t{cache_line}));
            size = wanted;
        }
        return begin;
    }
};

void pause_for_a_moment()
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

constexpr int spins = 1000;  // some ten microseconds: longer than the gap between two runs of one operation

}  // namespace

struct tile_pool::state {
    struct job {
        function call = nullptr;
        void* tile = nullptr;
        std::int64_t count = 0;
    };

    std::mutex mutex;
    std::condition_variable wake;
    std::condition_variable finished;
    job current;                           // under mutex
    bool open = false;                     // under mutex: helpers may still join the current job
    bool stop = false;                     // under mutex
    int sleeping = 0;                      // under mutex
    std::exception_ptr error;              // under mutex
    std::atomic<std::uint64_t> ticket{0};  // counts jobs; written under mutex
    std::atomic<int> inside{0};            // helpers at work; written under mutex
    alignas(cache_line) std::atomic<std::int64_t> next{0};
    std::vector<std::thread> helpers;
    std::vector<std::array<memory, scratch_slots>> scratch;

    explicit state(int threads) : scratch(static_cast<std::size_t>(threads)) {}

    void work(job const& todo, int worker)
    {
        for (auto t = next.fetch_add(1, std::memory_order_relaxed); t < todo.count; t = next.fetch_add(1, std::memory_order_relaxed)) {
            try {
                todo.call(todo.tile, t, worker);
            } catch (...) {
                std::lock_guard const lock{mutex};
                if (!error) {
                    error = std::current_exception();
                }
                next.store(todo.count, std::memory_order_relaxed);
            }
        }
    }

    void help(int worker)
    {
        std::uint64_t seen = 0;
        for (;;) {
            for (int i = 0; i < spins && ticket.load(std::memory_order_relaxed) == seen; ++i) {
                pause_for_a_moment();
            }
            std::unique_lock lock{mutex};
            ++sleeping;
            wake.wait(lock, [&] { return stop || ticket.load(std::memory_order_relaxed) != seen; });
            --sleeping;
            if (stop) {
                return;
            }
            seen = ticket.load(std::memory_order_relaxed);
            if (!open) {
                continue;  // woken too late: no thread waits for a helper that never joined
            }
            job const todo = current;
            inside.fetch_add(1, std::memory_order_relaxed);
            lock.unlock();
            work(todo, worker);
            lock.lock();
            if (inside.fetch_sub(1, std::memory_order_relaxed) == 1) {
                finished.notify_one();
            }
        }
    }
};

tile_pool::tile_pool(int threads)
{
    expects(threads >= 1, "a tile pool needs at least one thread");
    state_ = std::make_unique<state>(threads);
    for (int worker = 1; worker < threads; ++worker) {
        state_->helpers.emplace_back([s = state_.get(), worker] { s->help(worker); });
    }
}

tile_pool::~tile_pool()
{
    {
        std::lock_guard const lock{state_->mutex};
        state_->stop = true;
        state_->ticket.fetch_add(1, std::memory_order_relaxed);
    }
    state_->wake.notify_all();
    for (auto& helper : state_->helpers) {
        helper.join();
    }
}

int tile_pool::threads() const noexcept { return static_cast<int>(state_->scratch.size()); }

std::span<std::byte> tile_pool::scratch(int worker, std::size_t size, int slot)
{
    expects(worker >= 0 && worker < threads() && slot >= 0 && slot < scratch_slots, "scratch memory is asked for by a worker of the pool, in one of its slots");
    return {state_->scratch[static_cast<std::size_t>(worker)][static_cast<std::size_t>(slot)].at_least(size), size};
}

void tile_pool::run(std::int64_t count, function call, void* tile)
{
    auto& s = *state_;
    if (count <= 1 || s.helpers.empty()) {
        for (std::int64_t t = 0; t < count; ++t) {
            call(tile, t, 0);
        }
        return;
    }
    state::job const todo{.call = call, .tile = tile, .count = count};
    bool anyone_asleep = false;
    {
        std::lock_guard const lock{s.mutex};
        s.current = todo;
        s.open = true;
        s.error = nullptr;
        s.next.store(0, std::memory_order_relaxed);
        s.ticket.fetch_add(1, std::memory_order_relaxed);
        anyone_asleep = s.sleeping > 0;
    }
    if (anyone_asleep) {
        s.wake.notify_all();
    }
    s.work(todo, 0);
    for (int i = 0; i < spins && s.inside.load(std::memory_order_relaxed) != 0; ++i) {
        pause_for_a_moment();
    }
    std::unique_lock lock{s.mutex};
    s.open = false;
    s.finished.wait(lock, [&] { return s.inside.load(std::memory_order_relaxed) == 0; });
    if (s.error) {
        auto const error = s.error;
        s.error = nullptr;
        std::rethrow_exception(error);
    }
}

}  // namespace rheo::inline v0
