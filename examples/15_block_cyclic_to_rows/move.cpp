// SPDX-License-Identifier: Apache-2.0
// A matrix in ScaLAPACK's block-cyclic layout on a grid of 2 x 2 ranks becomes block rows: each rank gives the addresses of its blocks, nothing is gathered.
#include <cstdio>
#include <vector>

#include <executor/reshard/reshard.hpp>
#include <rheo/reshard/plan_reshard.hpp>
#include <rheo/reshard/sub_collections.hpp>

using namespace rheo;

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    layout_tensor const matrix{.name = "A", .shape = {1000, 600}, .element = {dtype::f64}};
    auto const blocks = slices_of(matrix.shape) | cyclic({.dimension = 0, .block = 64, .parts = 2}) | cyclic({.dimension = 1, .block = 64, .parts = 2});
    auto const rows = slices_of(matrix.shape) | cut({.dimension = 0, .parts = 4});
    auto const ranks = ranks_from(rank_id{0}, 4);
    auto const plan = plan_reshard({.from = on(ranks, collect(tensor_id{0}, blocks), {matrix}), .to = on(ranks, collect(tensor_id{0}, rows), {matrix})});

    std::int64_t const column = 512;  // the local matrix is column-major, as in ScaLAPACK, with room for more rows than any rank has
    std::vector<double> local(static_cast<std::size_t>(column * 320));
    std::vector<held_array> held;
    for (auto const& box : blocks.parts[static_cast<std::size_t>(rank)]) {
        auto* const first = &local[static_cast<std::size_t>(box[0].begin / 128 * 64 + box[1].begin / 128 * 64 * column)];
        for (auto i = box[0].begin; i < box[0].end; ++i) {
            for (auto j = box[1].begin; j < box[1].end; ++j) {
                first[i - box[0].begin + (j - box[1].begin) * column] = static_cast<double>(i * 600 + j);
            }
        }
        held.push_back({tensor_id{0}, tensor_role::parameter, box, first, dtype::f64, {1, column}});
    }
    auto const mine = rows.parts[static_cast<std::size_t>(rank)].front();
    std::vector<double> block(static_cast<std::size_t>(elements(mine)));
    wanted_array const wanted{tensor_id{0}, tensor_role::parameter, mine, block.data(), dtype::f64};
    auto const moved = reshard(MPI_COMM_WORLD, *plan, held, {&wanted, 1});

    bool right = true;
    for (std::size_t k = 0; k < block.size(); ++k) {
        right = right && block[k] == static_cast<double>(mine[0].begin * 600) + static_cast<double>(k);
    }
    MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &right, &right, 1, MPI_CXX_BOOL, MPI_LAND, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        std::printf("%s: rank 0 sent %lld, received %lld and kept %lld bytes\n", right ? "all rows are right" : "rows are wrong",
                    static_cast<long long>(moved.sent.count), static_cast<long long>(moved.received.count), static_cast<long long>(moved.kept.count));
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
