// SPDX-License-Identifier: Apache-2.0
#include "matrix.h"

#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

#include "grid.hpp"

namespace emulated {

namespace {

constexpr int lanes = 32;

unsigned thread_number()
{
    auto const& at = here();
    return at.thread.x + at.block_size.x * (at.thread.y + at.block_size.y * at.thread.z);
}

/// Calls f(what each lane brought, by lane) when all lanes of the warp have come; none goes on before all have called.
template <class Brought, class F>
void exchange(Brought const& mine, F f)
{
    static std::array<std::array<Brought, lanes>, 32> tables;  // of the warps of a block
    auto& table = tables[thread_number() / lanes];
    table[static_cast<std::size_t>(lane())] = mine;
    meet({.kind = meeting::warp_barrier, .place = std::source_location::current()});
    f(table);
    meet({.kind = meeting::warp_barrier, .place = std::source_location::current()});
}

float half_of(std::uint32_t pair, int which) { return std::bit_cast<float>(which == 0 ? pair << 16 : pair & 0xffff0000U); }

struct fragments {
    std::uint32_t left[4];
    std::uint32_t right[2];
};

struct copy {
    void* to;
    void const* from;
    bool inside;
};

void make(copy const& c)
{
    if (c.inside) {
        std::memcpy(c.to, c.from, 16);
    } else {
        std::memset(c.to, 0, 16);
    }
}

/// Of one thread: groups that have been ended and not waited for, the last one still open.
struct copies {
    std::deque<std::vector<copy>> ended;
    std::vector<copy> open;
};

copies& mine()
{
    // the threads of a block, which begin again with the next one; a thread that has not waited for its copies has lost them
    struct owner {
        extent block{~0U, ~0U, ~0U};
        std::uint64_t blocks_before = 0;
        std::map<unsigned, copies> of;
    };
    static owner all;
    auto const& at = here();
    auto const& b = at.block;
    if (all.blocks_before != work().blocks || all.block.x != b.x || all.block.y != b.y || all.block.z != b.z) {
        all = {b, work().blocks, {}};
    }
    return all.of[thread_number()];
}

}  // namespace

void multiply_add(float* sum, std::uint32_t const* left, std::uint32_t const* right)
{
    exchange(fragments{{left[0], left[1], left[2], left[3]}, {right[0], right[1]}}, [&](auto const& all) {
        int const g = lane() / 4;
        int const t = lane() % 4;
        for (int c = 0; c < 4; ++c) {
            int const row = g + c / 2 * 8;
            int const column = 2 * t + c % 2;
            float total = sum[c];
            for (int k = 0; k < 16; ++k) {
                auto const& from_left = all[static_cast<std::size_t>(row % 8 * 4 + k % 8 / 2)].left[row / 8 + k / 8 * 2];
                auto const& from_right = all[static_cast<std::size_t>(column * 4 + k % 8 / 2)].right[k / 8];
                total += half_of(from_left, k % 2) * half_of(from_right, k % 2);
            }
            sum[c] = total;
        }
    });
}

void load_matrices(std::uint32_t* to, void const* row, bool transposed)
{
    exchange(row, [&](auto const& all) {
        int const g = lane() / 4;
        int const t = lane() % 4;
        for (int m = 0; m < 4; ++m) {
            std::uint16_t halves[2];
            for (int k = 0; k < 2; ++k) {
                int const from_row = transposed ? 2 * t + k : g;
                int const from_column = transposed ? g : 2 * t + k;
                std::memcpy(&halves[k], static_cast<std::byte const*>(all[static_cast<std::size_t>(m * 8 + from_row)]) + from_column * 2, 2);
            }
            to[m] = halves[0] | static_cast<std::uint32_t>(halves[1]) << 16;
        }
    });
}

void begin_copy(void* shared, void const* global, bool inside)
{
    auto const aligned = [](void const* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
    if (!aligned(shared) || (inside && !aligned(global))) {
        throw fault{"an asynchronous copy is between addresses that are multiples of 16 bytes"};
    }
    if (runs_ahead()) {
        make({shared, global, inside});
        return;
    }
    mine().open.push_back({shared, global, inside});
}

void end_group()
{
    auto& groups = mine();
    groups.ended.push_back(std::move(groups.open));
    groups.open.clear();
}

void await_groups(int pending)
{
    auto& groups = mine();
    for (; static_cast<int>(groups.ended.size()) > pending; groups.ended.pop_front()) {
        for (auto const& c : groups.ended.front()) {
            make(c);
        }
    }
}

}  // namespace emulated
