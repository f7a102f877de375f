// SPDX-License-Identifier: Apache-2.0
#include "redistribution.hpp"

#include <cstring>
#include <limits>
#include <numeric>

#include <mpi.h>

#include "aligned_vector.hpp"
#include "rheo/tensor/nd_box.hpp"

using namespace rheo;

namespace {

using sizes = std::vector<std::size_t>;

std::size_t sum(sizes const& of) { return std::accumulate(of.begin(), of.end(), std::size_t{0}); }

template <class Arrays>
std::size_t bytes_in(Arrays const& arrays)
{
    std::size_t all = 0;
    for (auto const& a : arrays) {
        all += static_cast<std::size_t>(elements(a.box)) * sizeof(float);
    }
    return all;
}

/// One message to and from each peer, and a copy of what stays.
class plain_messages {
public:
    plain_messages(bench_run const& run, redistribution const& moved)
        : to_(static_cast<std::size_t>(run.ranks)), from_(to_.size()), out_(bytes_in(moved.held), 'o'), in_(bytes_in(moved.wanted), 'i')
    {
        for (auto const& t : moved.plan.transfers) {
            if (t.from.value == run.self) {
                to_[at(t.to)] += static_cast<std::size_t>(t.size.count);
            }
            if (t.to.value == run.self) {
                from_[at(t.from)] += static_cast<std::size_t>(t.size.count);
            }
        }
        kept_ = in_.size() - sum(from_);
    }

    void operator()()
    {
        std::vector<MPI_Request> requests;
        std::size_t received = 0;
        std::size_t sent = 0;
        for (std::size_t peer = 0; peer < from_.size(); ++peer) {
            if (from_[peer] > 0) {
                MPI_Irecv(in_.data() + received, static_cast<int>(from_[peer]), MPI_BYTE, static_cast<int>(peer), 0, MPI_COMM_WORLD, &requests.emplace_back());
                received += from_[peer];
            }
        }
        for (std::size_t peer = 0; peer < to_.size(); ++peer) {
            if (to_[peer] > 0) {
                MPI_Isend(out_.data() + sent, static_cast<int>(to_[peer]), MPI_BYTE, static_cast<int>(peer), 0, MPI_COMM_WORLD, &requests.emplace_back());
                sent += to_[peer];
            }
        }
        std::memcpy(in_.data() + received, out_.data() + sent, kept_);
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    }

private:
    sizes to_;
    sizes from_;
    std::size_t kept_ = 0;
    aligned_vector<char> out_;
    aligned_vector<char> in_;
};

/// All to rank 0 and from there to where it is wanted, packed already.
class gather_and_scatter {
public:
    gather_and_scatter(bench_run const& run, redistribution const& moved)
        : before_(places(run, bytes_in(moved.held))),
          after_(places(run, bytes_in(moved.wanted))),
          out_(bytes_in(moved.held), 'o'),
          in_(bytes_in(moved.wanted), 'i'),
          whole_(run.self == 0 ? static_cast<std::size_t>(before_.offset.back()) + static_cast<std::size_t>(before_.size.back()) : 0)
    {
    }

    void operator()()
    {
        MPI_Gatherv(out_.data(), static_cast<int>(out_.size()), MPI_BYTE, whole_.data(), before_.size.data(), before_.offset.data(), MPI_BYTE, 0,
                    MPI_COMM_WORLD);
        MPI_Scatterv(whole_.data(), after_.size.data(), after_.offset.data(), MPI_BYTE, in_.data(), static_cast<int>(in_.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
    }

private:
    struct place_of_each {
        std::vector<int> size;
        std::vector<int> offset;
    };

    static place_of_each places(bench_run const& run, std::size_t mine)
    {
        place_of_each all{std::vector<int>(static_cast<std::size_t>(run.ranks)), std::vector<int>(static_cast<std::size_t>(run.ranks))};
        auto const size = static_cast<int>(mine);
        MPI_Allgather(&size, 1, MPI_INT, all.size.data(), 1, MPI_INT, MPI_COMM_WORLD);
        std::exclusive_scan(all.size.begin(), all.size.end(), all.offset.begin(), 0);
        return all;
    }

    place_of_each before_;
    place_of_each after_;
    aligned_vector<char> out_;
    aligned_vector<char> in_;
    aligned_vector<char> whole_;
};

}  // namespace

layout_tensor matrix_of_floats(std::int64_t rows, std::int64_t columns) { return {.name = "matrix", .shape = {rows, columns}, .element = {dtype::f32}}; }

void measure(bench_run const& run, redistribution const& moved, std::vector<way> const& more)
{
    plain_messages plain{run, moved};
    gather_and_scatter by_one{run, moved};
    prepared_reshard prepared{MPI_COMM_WORLD, moved.plan, moved.held, moved.wanted, run.options};
    auto messages_alone = run.options;
    messages_alone.shared_from = bytes{std::numeric_limits<std::int64_t>::max()};
    prepared_reshard by_messages{MPI_COMM_WORLD, moved.plan, moved.held, moved.wanted, messages_alone};
    std::vector<way> ways{{"rheo::reshard", [&] { reshard(MPI_COMM_WORLD, moved.plan, moved.held, moved.wanted, run.options); }},
                          {"rheo::prepared_reshard", [&] { prepared.run(); }},
                          {"without shared memory", [&] { by_messages.run(); }}};
    ways.insert(ways.end(), more.begin(), more.end());
    ways.push_back({"gather and scatter", [&] { by_one(); }});
    ways.push_back({"plain messages", [&] { plain(); }});
    auto const mine = static_cast<double>(bytes_in(moved.wanted));
    double all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    compare(run, moved.name, all, std::move(ways));
}
