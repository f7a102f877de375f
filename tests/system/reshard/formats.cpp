// SPDX-License-Identifier: Apache-2.0
// formats [count]: random layouts over the ranks that it is started on, of tensors that are converted on the way (f32 and bf16) or that are sums of addends.
// Every element is computed again from its holders, in the order of ranks, and compared bit by bit. Some ranks are late, so that messages come in any order.
#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <mpi.h>

#include "../../support/random_layouts.hpp"
#include "../../support/spread_array.hpp"
#include "executor/reshard/reshard.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/verify_reshard.hpp"
#include "rheo/tensor/bfloat16.hpp"
#include "rheo/tensor/digest.hpp"

using namespace rheo;
using random_layouts::below;
using random_layouts::gap;
using random_layouts::spread_array;

namespace {

int wrong = 0;
long converted = 0;
long added = 0;

void check(bool right, std::string const& what)
{
    if (!right && ++wrong < 10) {
        std::printf("wrong: %s\n", what.c_str());
    }
}

struct element_key {
    tensor_id tensor;
    tensor_role role;
    std::int64_t index;
};

/// Any float that is a number; for conversions, also those that are none.
std::uint32_t float_bits(std::uint64_t hash, bool only_numbers)
{
    auto const bits = static_cast<std::uint32_t>(hash >> 20U);
    switch (hash % 12) {
    case 0: return 0x80000000U;
    case 1: return bits & 0x807fffffU;  // subnormal
    case 2: return only_numbers ? bits & 0x80000000U : bits | 0x7f800000U;
    case 3: return (bits & 0x80ff0000U) | 0x3f000000U;  // exact as bf16
    default: return (bits & 0x83ffffffU) | 0x3c000000U;
    }
}

/// What a rank holds of an element, lowest byte first. @param rank -1: all hold the same
std::uint64_t held_bits(dtype type, element_key const& e, int rank)
{
    auto const hash = mix_bits(mix_bits(static_cast<std::uint64_t>(e.index) * 4 + static_cast<std::uint64_t>(e.role)) + at(e.tensor) * 1000 +
                               static_cast<std::uint64_t>(rank + 1));
    switch (type) {
    case dtype::f32: return float_bits(hash, rank >= 0);
    case dtype::bf16: return float_bits(hash, rank >= 0) >> 16U;
    case dtype::f64: return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<std::int64_t>(hash)) * 0x1p-40);
    case dtype::i32: return hash & 0xffffffffU;
    default: return hash;
    }
}

float as_float(dtype type, std::uint64_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(type == dtype::bf16 ? bits << 16U : bits)); }

std::uint64_t sum_of(dtype held, dtype wanted, std::vector<std::uint64_t> const& addends)
{
    auto sum = addends.front();
    if (held == dtype::bf16) {
        sum <<= 16U;
    }
    for (std::size_t i = 1; i < addends.size(); ++i) {
        switch (wanted) {
        case dtype::f32: sum = std::bit_cast<std::uint32_t>(as_float(dtype::f32, sum) + as_float(held, addends[i])); break;
        case dtype::f64: sum = std::bit_cast<std::uint64_t>(std::bit_cast<double>(sum) + std::bit_cast<double>(addends[i])); break;
        case dtype::i32: sum = (sum + addends[i]) & 0xffffffffU; break;
        default: sum += addends[i];
        }
    }
    return sum;
}

std::uint64_t converted_bits(dtype held, dtype wanted, std::uint64_t bits)
{
    if (held == wanted) {
        return bits;
    }
    return wanted == dtype::bf16 ? bfloat16{as_float(dtype::f32, bits)}.bits() : bits << 16U;
}

/// The ranks that hold an element, ascending.
std::vector<int> holders_of(array_layout const& layout, element_key const& e)
{
    nd_box point = whole(layout.tensors[at(e.tensor)].shape);
    auto rest = e.index;
    for (int d = point.dimensions; d-- > 0;) {
        auto const length = point[d].end;
        point[d] = {rest % length, rest % length + 1};
        rest /= length;
    }
    std::vector<int> ranks;
    for (auto const& place : layout.places) {
        for (auto const& part : place.parts) {
            if (part.tensor == e.tensor && part.roles.has(e.role) && contains(part.box, point)) {
                for (auto const rank : place.ranks) {
                    ranks.push_back(rank.value);
                }
            }
        }
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

std::vector<spread_array> arrays_of(array_layout const& layout, rank_id rank, std::mt19937& draw)
{
    std::vector<spread_array> all;
    auto const* const place = find_place(layout, rank);
    for (std::size_t i = 0; place != nullptr && i < place->parts.size(); ++i) {
        auto const& part = place->parts[i];
        for (int r = 0; r < tensor_roles; ++r) {
            auto const role = static_cast<tensor_role>(r);
            if (auto const size = layout.tensors[at(part.tensor)].element[static_cast<std::size_t>(r)].size; part.roles.has(role) && size.count > 0) {
                all.emplace_back(part.tensor, role, part.box, size.count, draw);
            }
        }
    }
    return all;
}

/// Formats for the roles of each tensor: converted either way, sums, or left alone.
void draw_formats(reshard_request& request, std::mt19937& draw)
{
    constexpr std::pair<dtype, dtype> formats[] = {{dtype::f32, dtype::f32},  {dtype::f32, dtype::bf16}, {dtype::bf16, dtype::f32}, {dtype::f32, dtype::f32},
                                                   {dtype::bf16, dtype::f32}, {dtype::f64, dtype::f64},  {dtype::i32, dtype::i32},  {dtype::i64, dtype::i64}};
    for (std::size_t t = 0; t < request.to.tensors.size(); ++t) {
        for (std::size_t r = 0; r < static_cast<std::size_t>(tensor_roles); ++r) {
            if (request.to.tensors[t].element[r].size.count == 0) {
                continue;
            }
            auto const kind = draw() % 8;
            request.from.tensors[t].element[r] = formats[kind].first;
            request.to.tensors[t].element[r] = formats[kind].second;
            if (kind >= 3) {
                request.from.tensors[t].addends = request.from.tensors[t].addends | role_set{static_cast<tensor_role>(r)};
            }
        }
    }
}

reshard_options draw_options(std::mt19937& draw, std::mt19937& own)
{
    reshard_options options;
    options.message = bytes{draw() % 2 == 0 ? 1 + below(draw, 60) : 1 << 19};
    options.shared_from = bytes{draw() % 2 == 0 ? 0 : 1 << 20};  // by memory of the node, or not
    if (draw() % 3 != 0) {
        bool const is_late = own() % 2 == 0;
        options.copy_rows = [is_late](row_block const& b) {  // as the memory of a device would be reached
            for (std::size_t r = 0; r < b.rows; ++r) {
                auto const row = static_cast<std::ptrdiff_t>(r);
                std::memcpy(b.to + row * b.to_pitch, b.from + row * b.from_pitch, b.row_bytes);
            }
            if (is_late) {
                std::this_thread::sleep_for(std::chrono::microseconds{20});
            }
        };
    }
    return options;
}

/// What an array has to hold at the end.
std::vector<std::byte> expected_memory(reshard_request const& request, spread_array const& array)
{
    std::vector<std::byte> expected(array.memory.size(), gap);
    auto const& from = request.from.tensors[at(array.tensor)];
    auto const held = *from.element[static_cast<std::size_t>(array.role)].type;
    auto const wanted = *request.to.tensors[at(array.tensor)].element[static_cast<std::size_t>(array.role)].type;
    array.each(from.shape, [&](std::size_t offset, std::int64_t index) {
        if (index < 0) {
            return;
        }
        element_key const e{array.tensor, array.role, index};
        std::uint64_t bits = 0;
        if (from.addends.has(array.role)) {
            std::vector<std::uint64_t> addends;
            for (auto const rank : holders_of(request.from, e)) {
                addends.push_back(held_bits(held, e, rank));
            }
            bits = sum_of(held, wanted, addends);
            added += addends.size() > 1 ? 1 : 0;
        } else {
            bits = converted_bits(held, wanted, held_bits(held, e, -1));
            converted += held != wanted ? 1 : 0;
        }
        std::memcpy(expected.data() + offset, &bits, static_cast<std::size_t>(array.size));
    });
    return expected;
}

void run(unsigned seed, rank_id self, int ranks)
{
    std::mt19937 draw{seed};
    std::mt19937 own{seed * 64 + static_cast<unsigned>(self.value)};
    auto const name = "round " + std::to_string(seed) + ", rank " + std::to_string(self.value) + ": ";
    auto const tensors = random_layouts::random_tensors(draw);
    reshard_request request{.from = random_layouts::random_layout(random_layouts::padded_at_random(tensors, draw), ranks, draw),
                            .to = random_layouts::random_layout(random_layouts::padded_at_random(tensors, draw), ranks, draw)};
    draw_formats(request, draw);
    request.ranks = static_cast<rank_choice>(draw() % 2);
    if (draw() % 2 == 0) {
        request.round_budget = bytes{8 + below(draw, 60)};
    }
    auto const plan = plan_reshard(request);
    if (!plan) {
        check(false, name + plan.error());
        return;
    }
    check(describe(verify(*plan, request)).empty(), name + std::string{describe(verify(*plan, request)).view()});
    auto from = arrays_of(request.from, self, own);
    auto to = arrays_of(with_ranks_of(*plan, request.to), self, own);
    std::vector<held_array> held;
    std::vector<wanted_array> wanted;
    for (auto& a : from) {
        auto const& tensor = request.from.tensors[at(a.tensor)];
        auto const& format = tensor.element[static_cast<std::size_t>(a.role)];
        a.each(tensor.shape, [&](std::size_t offset, std::int64_t index) {
            if (index >= 0) {
                auto const bits = held_bits(*format.type, {a.tensor, a.role, index}, tensor.addends.has(a.role) ? self.value : -1);
                std::memcpy(a.memory.data() + offset, &bits, static_cast<std::size_t>(a.size));
            }
        });
        held.push_back({a.tensor, a.role, a.box, a.memory.data(), format, a.strides});
    }
    for (auto& a : to) {
        wanted.push_back({a.tensor, a.role, a.box, a.memory.data(), request.to.tensors[at(a.tensor)].element[static_cast<std::size_t>(a.role)], a.strides});
    }
    prepared_reshard prepared{MPI_COMM_WORLD, *plan, held, wanted, draw_options(draw, own)};
    for (auto repeats = draw() % 3; repeats > 0; --repeats) {
        prepared.run();
        for (auto& a : to) {
            a.each(request.to.tensors[at(a.tensor)].shape, [&](std::size_t offset, std::int64_t index) {
                if (index >= 0) {
                    std::memset(a.memory.data() + offset, 0x77, static_cast<std::size_t>(a.size));
                }
            });
        }
    }
    auto const moved = prepared.run();
    std::int64_t sent = 0;
    std::int64_t received = 0;
    for (auto const& t : plan->transfers) {
        sent += t.from == self ? t.size.count : 0;
        received += t.to == self ? t.size.count : 0;
    }
    check(moved.sent.count == sent && moved.received.count == received, name + "as many bytes as the plan says");
    for (auto const& a : to) {
        check(a.memory == expected_memory(request, a), name + "tensor " + std::to_string(a.tensor.value) + " " + to_string(a.box));
    }
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    auto const count = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 100;
    for (unsigned seed = 1; seed <= count && wrong == 0; ++seed) {
        try {
            run(seed, rank_id{rank}, ranks);
        } catch (std::exception const& error) {
            check(false, "round " + std::to_string(seed) + ": " + error.what());
        }
        int any = wrong;  // a rank that stops alone leaves the others waiting
        MPI_Allreduce(&any, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    long const mine[] = {converted, added};
    long all[2] = {};
    MPI_Allreduce(mine, all, 2, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    check(all[0] > 100 && (ranks == 1 || all[1] > 100), "elements were converted (" + std::to_string(all[0]) + ") and added (" + std::to_string(all[1]) + ")");
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
