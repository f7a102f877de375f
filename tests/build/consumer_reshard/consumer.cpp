// SPDX-License-Identifier: Apache-2.0
// A research code with the installed component: the rows of a matrix, cut among the ranks, become columns.
#include <cstdint>
#include <vector>

#include <executor/reshard/reshard.hpp>
#include <rheo/reshard/plan_reshard.hpp>

using namespace rheo;

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    constexpr std::int64_t n = 12;
    layout_tensor matrix{"matrix", {n, n}};
    matrix.element[0] = element_format{dtype::f64};
    reshard_request request{.from = {{matrix}, {}}, .to = {{matrix}, {}}};
    auto const piece = [&](int r) { return index_range{n * r / ranks, n * (r + 1) / ranks}; };
    for (int r = 0; r < ranks; ++r) {
        request.from.places.push_back({{rank_id{r}}, {{tensor_id{0}, {piece(r), {0, n}}}}});
        request.to.places.push_back({{rank_id{r}}, {{tensor_id{0}, {{0, n}, piece(r)}}}});
    }
    auto const plan = plan_reshard(request);
    nd_box const rows{piece(rank), {0, n}};
    nd_box const columns{{0, n}, piece(rank)};
    std::vector<double> have(static_cast<std::size_t>(elements(rows)));
    std::vector<double> get(static_cast<std::size_t>(elements(columns)));
    for (std::size_t i = 0; i < have.size(); ++i) {
        have[i] = static_cast<double>(rows[0].begin * n) + static_cast<double>(i);
    }
    held_array const from{tensor_id{0}, tensor_role::parameter, rows, have.data(), dtype::f64};
    wanted_array const to{tensor_id{0}, tensor_role::parameter, columns, get.data(), dtype::f64};
    auto const moved = reshard(MPI_COMM_WORLD, *plan, {&from, 1}, {&to, 1});
    bool right = moved.kept.count + moved.received.count == elements(columns) * 8;
    auto const width = length(columns[1]);
    for (std::int64_t i = 0; i < elements(columns); ++i) {
        right = right && get[static_cast<std::size_t>(i)] == static_cast<double>(i / width * n + columns[1].begin + i % width);
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
