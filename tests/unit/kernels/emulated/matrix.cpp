// SPDX-License-Identifier: Apache-2.0
#include "matrix.h"

#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <map>
#include <string>
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

/// Calls f(what each lane brought, by lane) when all lanes of the warp have come; none continues before all have called.
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
    std::size_t bytes;
    bool inside;
};

void make(copy const& c)
{
    if (c.inside) {
        std::memcpy(c.to, c.from, c.bytes);
    } else {
        std::memset(c.to, 0, c.bytes);
    }
}

/// What a thread contributes to a product of its warpgroup: its own sums of two rows, of 16 terms.
struct product {
    float* sums;
    int columns;
    std::array<std::array<float, 16>, 2> left;
    std::uint64_t left_matrix;  // in place of it, where not zero
    std::uint64_t right;
    bool right_by_terms;
    bool adds;
};

/// Of one thread: groups of copies that have been ended and not waited for, the last one still open; products that have not been waited for.
struct thread_units {
    std::deque<std::vector<copy>> ended;
    std::vector<copy> open;
    std::vector<product> products;
    bool may_multiply = false;
    bool hidden = false;  // to products, the copies that are there
};

struct block_units {
    extent block{~0U, ~0U, ~0U};
    std::uint64_t blocks_before = 0;
    std::map<unsigned, thread_units> of;
    int hidden = 0;  // how many threads have not shown their copies
};

/// The threads of a block begin again with the next one; a thread that has not waited for its copies has lost them.
block_units& ours()
{
    static block_units all;
    auto const& b = here().block;
    if (all.blocks_before != work().blocks || all.block.x != b.x || all.block.y != b.y || all.block.z != b.z) {
        all = {b, work().blocks, {}};
    }
    return all;
}

thread_units& mine() { return ours().of[thread_number()]; }

void hide_copies(bool hidden)
{
    ours().hidden += static_cast<int>(hidden) - static_cast<int>(mine().hidden);
    mine().hidden = hidden;
}

/// Elements of a described matrix (PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout", swizzled by 128 bytes): of 16 terms, in rows of
/// eight chunks of 16 bytes, where a chunk's place has been exchanged by the address of its row.
class described_matrix {
public:
    described_matrix(std::uint64_t matrix, bool rows_are_terms) : rows_are_terms_{rows_are_terms}
    {
        auto const field = [&](int bit) { return static_cast<std::uint32_t>(matrix >> bit & 0x3fffU) << 4; };
        if (matrix >> 62 != 1 || (matrix >> 49 & 7U) != 0) {
            throw fault{"the matrix of a warpgroup's product is swizzled by 128 bytes, from a multiple of 1024 on"};
        }
        first_ = field(0);
        leading_ = field(16);
        stride_ = field(32);
        if (rows_are_terms ? first_ % 1024 != 0 : first_ / 128 % 8 != 0) {
            throw fault{"the matrix of a warpgroup's product begins in the first of eight rows"};
        }
    }

    float operator()(int row, int term) const
    {
        auto const r = static_cast<std::uint32_t>(row);
        auto const t = static_cast<std::uint32_t>(term);
        std::uint32_t address =
            first_ + (rows_are_terms_ ? r / 64 * leading_ + r % 64 * 2 + t / 8 * stride_ + t % 8 * 128 : r / 8 * stride_ + r % 8 * 128 + t * 2);
        address ^= (address >> 7 & 7U) << 4;
        std::uint16_t half;
        std::memcpy(&half, memory_ + address, 2);
        return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16);
    }

private:
    std::byte const* memory_ = static_cast<std::byte const*>(shared_memory());
    std::uint32_t first_ = 0;
    std::uint32_t leading_ = 0;
    std::uint32_t stride_ = 0;
    bool rows_are_terms_;
};

void make(product const& p)
{
    if (ours().hidden != 0) {
        throw fault{"a product of a warpgroup finds what " + std::to_string(ours().hidden) + " threads have copied and not shown to products"};
    }
    int const first_row = static_cast<int>(thread_number()) / lanes % 4 * 16 + lane() / 4;
    auto left = p.left;
    if (p.left_matrix != 0) {
        described_matrix const matrix{p.left_matrix, false};
        for (int half = 0; half < 2; ++half) {
            for (int k = 0; k < 16; ++k) {
                left[static_cast<std::size_t>(half)][static_cast<std::size_t>(k)] = matrix(first_row + half * 8, k);
            }
        }
    }
    described_matrix const right_matrix{p.right, p.right_by_terms};
    int const first_column = lane() % 4 * 2;
    for (int c = 0; c < p.columns / 8 * 2; ++c) {
        int const column = c / 2 * 8 + first_column + c % 2;
        float right[16];
        for (int k = 0; k < 16; ++k) {
            right[k] = right_matrix(column, k);
        }
        for (std::size_t half = 0; half < 2; ++half) {
            float& sum = p.sums[c / 2 * 4 + static_cast<int>(half) * 2 + c % 2];
            float total = p.adds ? sum : 0.0F;
            for (std::size_t k = 0; k < 16; ++k) {
                total += left[half][k] * right[k];
            }
            sum = total;
        }
    }
}

void begin(product const& p)
{
    if (!mine().may_multiply) {
        throw fault{"a product of a warpgroup is not after wgmma.fence"};
    }
    if (runs_ahead()) {
        make(p);
    } else {
        mine().products.push_back(p);
    }
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

void begin_copy(void* shared, void const* global, int bytes, bool inside)
{
    copy const asked{shared, global, static_cast<std::size_t>(bytes), inside};
    auto const aligned = [&](void const* p) { return reinterpret_cast<std::uintptr_t>(p) % asked.bytes == 0; };
    if (!aligned(shared) || (inside && !aligned(global))) {
        throw fault{"an asynchronous copy is between addresses that are multiples of its bytes"};
    }
    if (runs_ahead()) {
        make(asked);
    } else {
        mine().open.push_back(asked);
    }
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
        hide_copies(true);
    }
}

unsigned shared_address(void const* p) { return static_cast<unsigned>(static_cast<std::byte const*>(p) - static_cast<std::byte const*>(shared_memory())); }

void show_copies_to_products() { hide_copies(false); }

void begin_products() { mine().may_multiply = true; }

void multiply_across(float* sums, int columns, std::uint64_t left, std::uint64_t right, bool adds)
{
    begin({.sums = sums, .columns = columns, .left = {}, .left_matrix = left, .right = right, .right_by_terms = false, .adds = adds});
}

void multiply_down(float* sums, int columns, std::uint32_t const* left, std::uint64_t right)
{
    product p{.sums = sums, .columns = columns, .left = {}, .left_matrix = 0, .right = right, .right_by_terms = true, .adds = true};
    exchange(std::array{left[0], left[1], left[2], left[3]}, [&](auto const& all) {
        for (std::size_t half = 0; half < 2; ++half) {
            for (std::size_t k = 0; k < 16; ++k) {
                auto const& from = all[static_cast<std::size_t>(lane()) / 4 * 4 + k % 8 / 2];
                p.left[half][k] = half_of(from[half + k / 8 * 2], static_cast<int>(k % 2));
            }
        }
    });
    begin(p);
}

void await_products()
{
    auto& units = mine();
    for (auto const& p : units.products) {
        make(p);
    }
    units.products.clear();
    units.may_multiply = false;
}

}  // namespace emulated
