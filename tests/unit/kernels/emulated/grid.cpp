// SPDX-License-Identifier: Apache-2.0
#include "grid.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "fibers.hpp"

namespace emulated {

namespace {

constexpr int warp_size = 32;

struct thread_state {
    arrival waits{};
    std::uint64_t result = 0;
    bool ended = false;
};

char const* name_of(meeting kind)
{
    switch (kind) {
    case meeting::none: return "nothing";
    case meeting::block_barrier: return "__syncthreads";
    case meeting::block_or: return "__syncthreads_or";
    case meeting::block_and: return "__syncthreads_and";
    case meeting::block_count: return "__syncthreads_count";
    case meeting::warp_barrier: return "__syncwarp";
    case meeting::warp_shuffle: return "a shuffle";
    case meeting::warp_ballot: return "a vote";
    case meeting::warp_add:
    case meeting::warp_min:
    case meeting::warp_max: return "a reduction";
    }
    return "?";
}

bool of_warp(meeting kind) { return kind >= meeting::warp_barrier; }
bool of_block(meeting kind) { return kind >= meeting::block_barrier && kind <= meeting::block_count; }

struct block_run {
    fiber_set fibers;
    position at;
    std::vector<thread_state> threads;
    std::deque<int> ready;
    int running = 0;
    int arrived = 0;                   // at a meeting of the block
    std::vector<int> arrived_of_warp;  // at meetings of each warp, of whatever lanes
    std::vector<int> members;          // of the meeting that is being finished
    std::byte* shared = nullptr;
    unsigned order = 0;
    std::mt19937 random;
    work_done done;
};

block_run run_now;

inline block_run& state() { return run_now; }

std::string where(std::source_location const& place)
{
    std::string const file = place.file_name();
    return file.substr(file.rfind('/') + 1) + ":" + std::to_string(place.line());
}

std::string named(block_run const& run, int thread)
{
    auto const& b = run.at.block;
    return "thread " + std::to_string(thread) + " of block (" + std::to_string(b.x) + ", " + std::to_string(b.y) + ", " + std::to_string(b.z) + ")";
}

std::string doing(thread_state const& t)
{
    if (t.ended) {
        return "has ended";
    }
    return t.waits.kind == meeting::none ? "runs" : "waits at " + std::string{name_of(t.waits.kind)} + " in " + where(t.waits.place);
}

void set_thread(block_run& run, int index)
{
    run.running = index;
    auto const& size = run.at.block_size;
    auto const i = static_cast<unsigned>(index);
    run.at.thread = {i % size.x, i / size.x % size.y, i / size.x / size.y};
}

/// Whether the threads released last run first: so one warp gets as far ahead of the others as barriers let it.
bool ahead(block_run const& run) { return run.order == 1 || (run.order != 0 && run.order % 2 == 0); }

void release(block_run& run, std::vector<int>& members)
{
    if (run.order == 1) {
        std::reverse(members.begin(), members.end());
    } else if (run.order != 0) {
        std::shuffle(members.begin(), members.end(), run.random);
    }
    for (int const m : members) {
        auto& waits = run.threads[static_cast<std::size_t>(m)].waits;
        if (of_warp(waits.kind)) {
            --run.arrived_of_warp[static_cast<std::size_t>(m / warp_size)];
        }
        waits.kind = meeting::none;
    }
    run.ready.insert(ahead(run) ? run.ready.begin() : run.ready.end(), members.begin(), members.end());
}

void finish_block_meeting(block_run& run)
{
    meeting const kind = run.threads.front().waits.kind;
    std::uint64_t count = 0;
    std::vector<int> all;
    for (std::size_t i = 0; i < run.threads.size(); ++i) {
        count += run.threads[i].waits.value != 0 ? 1U : 0U;
        all.push_back(static_cast<int>(i));
    }
    for (auto& t : run.threads) {
        t.result = kind == meeting::block_or ? (count != 0 ? 1 : 0) : kind == meeting::block_and ? (count == all.size() ? 1 : 0) : count;
    }
    run.arrived = 0;
    release(run, all);
}

void meet_in_block(block_run& run)
{
    auto const& mine = run.threads[static_cast<std::size_t>(run.running)].waits;
    for (std::size_t i = 0; i < run.threads.size(); ++i) {
        auto const& other = run.threads[i].waits;
        if (static_cast<int>(i) == run.running || !of_block(other.kind)) {
            continue;
        }
        if (other.kind != mine.kind || other.place.line() != mine.place.line()) {
            throw fault{named(run, run.running) + " waits at " + name_of(mine.kind) + " in " + where(mine.place) + " while thread " + std::to_string(i) + " " +
                        doing(run.threads[i]) + ": a barrier is one place for all threads of a block"};
        }
        break;  // those that came before have been compared with each other
    }
    if (++run.arrived == static_cast<int>(run.threads.size())) {
        finish_block_meeting(run);
    }
}

void finish_warp_meeting(block_run& run)
{
    auto& members = run.members;
    auto const& first = run.threads[static_cast<std::size_t>(members.front())].waits;
    int const base = members.front() / warp_size * warp_size;
    std::uint64_t ballot = 0;
    std::uint32_t sum = 0;
    std::uint32_t least = 0xffffffffU;
    std::uint32_t largest = 0;
    for (int const m : members) {
        auto const value = run.threads[static_cast<std::size_t>(m)].waits.value;
        ballot |= value != 0 ? std::uint64_t{1} << (m - base) : 0;
        sum += static_cast<std::uint32_t>(value);
        least = std::min(least, static_cast<std::uint32_t>(value));
        largest = std::max(largest, static_cast<std::uint32_t>(value));
    }
    for (int const m : members) {
        auto& t = run.threads[static_cast<std::size_t>(m)];
        switch (first.kind) {
        case meeting::warp_shuffle:
            if ((t.waits.mask >> t.waits.source & 1U) == 0) {
                throw fault{named(run, m) + " reads lane " + std::to_string(t.waits.source) + " in " + where(t.waits.place) +
                            ", which the mask of the shuffle does not hold"};
            }
            t.result = run.threads[static_cast<std::size_t>(base + t.waits.source)].waits.value;
            break;
        case meeting::warp_ballot: t.result = ballot; break;
        case meeting::warp_add: t.result = sum; break;
        case meeting::warp_min: t.result = least; break;
        case meeting::warp_max: t.result = largest; break;
        default: break;
        }
    }
    release(run, members);
}

void meet_in_warp(block_run& run)
{
    auto const& mine = run.threads[static_cast<std::size_t>(run.running)].waits;
    int const base = run.running / warp_size * warp_size;
    if ((mine.mask >> (run.running - base) & 1U) == 0) {
        throw fault{named(run, run.running) + " is not in the mask of " + name_of(mine.kind) + " that it calls in " + where(mine.place)};
    }
    int const lanes = std::min(warp_size, static_cast<int>(run.threads.size()) - base);
    if (lanes < warp_size && mine.mask >> lanes != 0) {
        throw fault{named(run, run.running) + " names lanes in the mask of " + name_of(mine.kind) + " in " + where(mine.place) + " that its warp of " +
                    std::to_string(lanes) + " threads does not have"};
    }
    if (++run.arrived_of_warp[static_cast<std::size_t>(run.running / warp_size)] < std::popcount(mine.mask)) {
        return;  // not all of them can be there
    }
    run.members.clear();
    for (int lane = 0; lane < warp_size; ++lane) {
        if ((mine.mask >> lane & 1U) == 0) {
            continue;
        }
        int const other = base + lane;
        auto const& theirs = run.threads[static_cast<std::size_t>(other)].waits;
        if (theirs.kind != mine.kind || theirs.mask != mine.mask) {
            return;  // not there yet
        }
        run.members.push_back(other);
    }
    finish_warp_meeting(run);
}

/// Why no thread can run: one that waits, and what it waits for.
std::string stand_still(block_run const& run)
{
    std::string message;
    for (std::size_t i = 0; i < run.threads.size() && message.empty(); ++i) {
        auto const& t = run.threads[i];
        if (t.ended) {
            continue;
        }
        std::size_t const base = of_block(t.waits.kind) ? 0 : i / warp_size * warp_size;
        std::size_t const end = of_block(t.waits.kind) ? run.threads.size() : std::min(run.threads.size(), base + warp_size);
        for (std::size_t other = base; other < end; ++other) {
            auto const& o = run.threads[other];
            bool const meant = of_block(t.waits.kind) || (t.waits.mask >> (other - base) & 1U) != 0;
            if (meant && (o.ended || o.waits.kind != t.waits.kind || (!of_block(t.waits.kind) && o.waits.mask != t.waits.mask))) {
                message = named(run, static_cast<int>(i)) + " " + doing(t) + " for thread " + std::to_string(other) + ", which " + doing(o);
                break;
            }
        }
    }
    return message;
}

void run_block(block_run& run, void (*kernel)(void*), void* arguments, std::size_t shared_bytes)
{
    std::memset(run.shared, 0xff, shared_bytes);
    auto const count = static_cast<int>(run.at.block_size.volume());
    run.threads.assign(static_cast<std::size_t>(count), {});
    run.ready.clear();
    run.arrived = 0;
    run.arrived_of_warp.assign(static_cast<std::size_t>(count + warp_size - 1) / warp_size, 0);
    run.fibers.begin(count, kernel, arguments);
    std::vector<int> all(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
        all[static_cast<std::size_t>(i)] = i;
    }
    release(run, all);
    int ended = 0;
    while (!run.ready.empty()) {
        if (run.order > 1 && !ahead(run)) {
            std::swap(run.ready.front(), run.ready[run.random() % run.ready.size()]);
        }
        int const next = run.ready.front();
        run.ready.pop_front();
        set_thread(run, next);
        if (run.fibers.resume(next)) {
            run.threads[static_cast<std::size_t>(next)].ended = true;
            ++ended;
        }
    }
    if (ended != count) {
        throw fault{stand_still(run)};
    }
    ++run.done.blocks;
    run.done.threads += static_cast<std::uint64_t>(count);
}

}  // namespace

bool runs_ahead() { return ahead(state()); }

void set_order(unsigned order)
{
    state().order = order;
    state().random.seed(order);
}

work_done work() { return state().done; }

void count_launch() { ++state().done.launches; }
void count_graph() { ++state().done.graphs; }

void run_grid(extent grid, extent block, std::size_t shared_bytes, void (*kernel)(void*), void* arguments)
{
    auto& run = state();
    ++run.done.launches;
    run.at.grid_size = grid;
    run.at.block_size = block;
    // exactly as large as asked for, from an aligned address on, so that a sanitizer sees an access beyond
    constexpr std::align_val_t alignment{1024};
    auto* const shared = static_cast<std::byte*>(::operator new(std::max<std::size_t>(shared_bytes, 1), alignment));
    auto const free = [](std::byte* p) { ::operator delete(p, alignment); };
    std::unique_ptr<std::byte, decltype(free)> const owner{shared, free};
    run.shared = shared;
    std::vector<std::uint64_t> blocks(grid.volume());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = run.order == 1 ? blocks.size() - 1 - i : i;
    }
    if (run.order > 1) {
        std::shuffle(blocks.begin(), blocks.end(), run.random);
    }
    try {
        for (auto const b : blocks) {
            run.at.block = {static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y), static_cast<unsigned>(b / grid.x / grid.y)};
            run_block(run, kernel, arguments, shared_bytes);
        }
    } catch (...) {
        run.fibers.abandon();
        throw;
    }
}

position const& here() { return state().at; }

void* shared_memory() { return state().shared; }

int lane() { return state().running % warp_size; }

std::uint64_t meet(arrival const& brought)
{
    auto& run = state();
    int const self = run.running;
    auto& mine = run.threads[static_cast<std::size_t>(self)];
    mine.waits = brought;
    if (of_block(brought.kind)) {
        meet_in_block(run);
    } else {
        meet_in_warp(run);
    }
    run.fibers.pause();
    return mine.result;
}

}  // namespace emulated
