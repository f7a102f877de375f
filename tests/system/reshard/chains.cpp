// SPDX-License-Identifier: Apache-2.0
// chains [count]: random chains of layouts, A to B to ... and back to A, over the ranks that it is started on. Every element is a function of its
// tensor, role and index, so that each step is checked byte by byte, with the gaps between the elements of each array. Needs the library and rheo::reshard only.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <mpi.h>
#include <sys/resource.h>

#include "../../support/random_layouts.hpp"
#include "../../support/spread_array.hpp"
#include "executor/reshard/reshard.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/verify_reshard.hpp"
#include "rheo/tensor/digest.hpp"

using namespace rheo;
using random_layouts::below;
using random_layouts::gap;
using random_layouts::spread_array;

namespace {

int wrong = 0;

void check(bool right, std::string const& what)
{
    if (!right && ++wrong < 10) {
        std::printf("wrong: %s\n", what.c_str());
    }
}

struct array : spread_array {
    using spread_array::spread_array;

    void write(std::vector<std::byte>& into, std::size_t offset, std::int64_t element) const
    {
        auto const word = mix_bits(mix_bits(static_cast<std::uint64_t>(element) * 4 + static_cast<std::uint64_t>(role)) + at(tensor));
        std::memcpy(into.data() + offset, &word, static_cast<std::size_t>(size));
    }

    void fill(nd_shape const& shape)
    {
        each(shape, [&](std::size_t offset, std::int64_t element) {
            if (element >= 0) {
                write(memory, offset, element);
            }
        });
    }

    bool is_right(nd_shape const& shape) const
    {
        std::vector<std::byte> expected(memory.size(), gap);
        each(shape, [&](std::size_t offset, std::int64_t element) {
            if (element >= 0) {
                write(expected, offset, element);
            }
        });
        return expected == memory;
    }
};

/// The arrays of a rank in a layout.
std::vector<array> arrays_of(array_layout const& layout, rank_id rank, bool column_major, std::mt19937& draw)
{
    std::vector<array> all;
    auto const* const place = find_place(layout, rank);
    for (std::size_t i = 0; place != nullptr && i < place->parts.size(); ++i) {
        auto const& part = place->parts[i];
        for (int r = 0; r < tensor_roles; ++r) {
            auto const role = static_cast<tensor_role>(r);
            if (auto const size = layout.tensors[at(part.tensor)].element[static_cast<std::size_t>(r)].size; part.roles.has(role) && size.count > 0) {
                all.emplace_back(part.tensor, role, part.box, size.count, draw, column_major);
            }
        }
    }
    return all;
}

reshard_result move(reshard_plan const& plan, std::vector<array>& from, std::vector<array>& to, reshard_options const& options)
{
    std::vector<held_array> held;
    std::vector<wanted_array> wanted;
    for (auto const& a : from) {
        held.push_back({a.tensor, a.role, a.box, a.memory.data(), bytes{a.size}, a.strides});
    }
    for (auto& a : to) {
        wanted.push_back({a.tensor, a.role, a.box, a.memory.data(), bytes{a.size}, a.strides});
    }
    return reshard(MPI_COMM_WORLD, plan, held, wanted, options);
}

/// One chain; all ranks draw the same.
void run_chain(unsigned seed, rank_id self, int ranks)
{
    std::mt19937 draw{seed};
    std::mt19937 own{seed * 64 + static_cast<unsigned>(self.value)};
    auto const tensors = random_layouts::random_tensors(draw);
    auto const first = random_layouts::random_layout(random_layouts::padded_at_random(tensors, draw), ranks, draw);
    auto layout = first;
    bool const column_major = draw() % 3 == 0;  // of all arrays of all ranks: then messages are, too
    auto arrays = arrays_of(layout, self, column_major, own);
    for (auto& a : arrays) {
        a.fill(tensors[at(a.tensor)].shape);
    }
    auto const steps = 2 + below(draw, 4);
    for (int step = 0; step < steps; ++step) {
        auto const name = "chain " + std::to_string(seed) + ", step " + std::to_string(step) + ", rank " + std::to_string(self.value) + ": ";
        bool const last = step + 1 == steps;
        reshard_request request{.from = layout,
                                .to = last ? first : random_layouts::random_layout(random_layouts::padded_at_random(tensors, draw), ranks, draw)};
        request.ranks = last ? rank_choice::pinned : static_cast<rank_choice>(draw() % 2);
        if (draw() % 3 == 0) {
            request.round_budget = bytes{32 + below(draw, 100)};  // an element of three roles takes 24
        }
        auto const plan = plan_reshard(request);
        if (!plan) {
            check(false, name + plan.error());
            return;
        }
        reshard_options options;
        options.message = bytes{draw() % 3 == 0 ? 1 + below(draw, 40) : 1 << 19};
        options.shared_from = bytes{draw() % 2 == 0 ? 0 : 1 << 20};  // by memory of the node, or not
        if (draw() % 4 == 0) {                                       // as the memory of a device would be reached
            options.copy_rows = [](row_block const& b) {
                for (std::size_t r = 0; r < b.rows; ++r) {
                    auto const row = static_cast<std::ptrdiff_t>(r);
                    std::memcpy(b.to + row * b.to_pitch, b.from + row * b.from_pitch, b.row_bytes);
                }
            };
        }
        layout = with_ranks_of(*plan, request.to);
        auto next = arrays_of(layout, self, column_major, own);
        auto const moved = move(*plan, arrays, next, options);
        std::int64_t sent = 0;
        std::int64_t received = 0;
        for (auto const& t : plan->transfers) {
            sent += t.from == self ? t.size.count : 0;
            received += t.to == self ? t.size.count : 0;
        }
        check(moved.sent.count == sent && moved.received.count == received, name + "as many bytes as the plan says");
        for (auto const& a : next) {
            check(a.is_right(tensors[at(a.tensor)].shape), name + "tensor " + std::to_string(a.tensor.value) + " " + to_string(a.box));
        }
        arrays = std::move(next);
    }
}

/// A process that can open no more files, for as long as this lives.
class no_more_files {
public:
    no_more_files()
    {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        rlimit const none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &none);
    }
    no_more_files(no_more_files const&) = delete;
    no_more_files& operator=(no_more_files const&) = delete;
    ~no_more_files() { ::setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

/// Block rows to block columns, with gaps in all rows, of more than stays in the caches: rows go past them.
/// @param lends whether all ranks can lend their memory to the others of the node; else the last one cannot
void run_large(rank_id self, int ranks, bool lends)
{
    constexpr std::int64_t per_rank = 3'000'000;  // 12 MB
    constexpr std::int64_t gap = 5;
    std::int64_t const rows = 1000 * ranks;
    std::int64_t const columns = per_rank / 1000;
    auto const cut_at = [&](std::int64_t length, int rank) { return length * rank / ranks; };
    auto const box_of = [&](int dimension, int rank) {
        nd_box box{{0, rows}, {0, columns}};
        box[dimension] = {cut_at(dimension == 0 ? rows : columns, rank), cut_at(dimension == 0 ? rows : columns, rank + 1)};
        return box;
    };
    layout_tensor matrix{"matrix", {rows, columns}};
    matrix.element[0] = element_format{dtype::f32};
    array_layout from{{matrix}, {}};
    array_layout to{{matrix}, {}};
    for (int r = 0; r < ranks; ++r) {
        from.places.push_back({{rank_id{r}}, {{tensor_id{0}, box_of(0, r)}}});
        to.places.push_back({{rank_id{r}}, {{tensor_id{0}, box_of(1, r)}}});
    }
    auto const plan = plan_reshard({.from = from, .to = to});
    if (!plan) {
        check(false, plan.error());
        return;
    }
    auto const mine = box_of(0, self.value);
    auto const wanted_box = box_of(1, self.value);
    auto const pitch = [&](nd_box const& box) { return length(box[1]) + gap; };
    auto const number = [&](std::int64_t i, std::int64_t j) { return static_cast<float>((i * columns + j) % 16'000'000); };
    std::vector<float> have(static_cast<std::size_t>(length(mine[0]) * pitch(mine)), -1.0F);
    for (auto i = mine[0].begin; i < mine[0].end; ++i) {
        for (auto j = mine[1].begin; j < mine[1].end; ++j) {
            have[static_cast<std::size_t>((i - mine[0].begin) * pitch(mine) + j - mine[1].begin)] = number(i, j);
        }
    }
    std::vector<float> get(static_cast<std::size_t>(length(wanted_box[0]) * pitch(wanted_box)), -2.0F);
    held_array const held{tensor_id{0}, tensor_role::parameter, mine, have.data(), dtype::f32, {pitch(mine), 1}};
    wanted_array const wanted{tensor_id{0}, tensor_role::parameter, wanted_box, get.data(), dtype::f32, {pitch(wanted_box), 1}};
    prepared_reshard prepared = [&] {
        std::optional<no_more_files> starved;
        if (!lends && self.value == ranks - 1) {
            starved.emplace();
        }
        return prepared_reshard{MPI_COMM_WORLD, *plan, {&held, 1}, {&wanted, 1}};
    }();
    prepared.run();
    std::int64_t off = 0;
    for (auto i = wanted_box[0].begin; i < wanted_box[0].end; ++i) {
        for (std::int64_t j = 0; j < pitch(wanted_box); ++j) {
            bool const is_gap = j >= length(wanted_box[1]);
            auto const expected = is_gap ? -2.0F : number(i, wanted_box[1].begin + j);
            off += get[static_cast<std::size_t>((i - wanted_box[0].begin) * pitch(wanted_box) + j)] == expected ? 0 : 1;
        }
    }
    check(off == 0, "large rows: " + std::to_string(off) + " elements are off at rank " + std::to_string(self.value));
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
            run_chain(seed, rank_id{rank}, ranks);
        } catch (std::exception const& error) {
            check(false, "chain " + std::to_string(seed) + ": " + error.what());
        }
        int any = wrong;  // a rank that stops alone leaves the others waiting
        MPI_Allreduce(&any, &wrong, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    }
    if (wrong == 0) {
        run_large(rank_id{rank}, ranks, true);
        run_large(rank_id{rank}, ranks, false);
    }
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
