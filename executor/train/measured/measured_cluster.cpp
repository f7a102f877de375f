// SPDX-License-Identifier: Apache-2.0
#include "executor/train/measured/measured_cluster.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "executor/config/cluster/cluster_file.hpp"
#include "executor/mpi/communicator.hpp"
#include "executor/mpi/error.hpp"
#include "executor/train/measured/measured_exchanges.hpp"
#include "executor/train/measured/measured_layers.hpp"
#include "executor/train/opened_backend.hpp"
#include "rheo/model/footprint.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/simulate/network/fitted_link.hpp"

namespace rheo::inline v0 {

namespace {

constexpr double alike = 0.1;  ///< of rates: less is no difference
constexpr std::size_t longest_message = std::size_t{8} << 20U;

double seconds_since(std::chrono::steady_clock::time_point begin) { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); }

/// A block of a transformer that keeps the device busy.
void choose_layers(run_config& config)
{
    bool const is_small = config.run.device == compute_device::cpu;
    config.model.width = is_small ? 512 : 4096;
    config.model.heads = is_small ? 8 : 32;
    config.model.blocks = 1;
    config.model.vocabulary = 1024;
    config.model.context = is_small ? 256 : 2048;
    config.train.microbatch = {is_small ? 2 : 4, config.model.context};
}

flop_rate rate_of_layers(run_config const& config, model_description const& model, compute_backend& backend, int repeats)
{
    auto const layers = measured_layers(model, config, backend, repeats);
    flop_rate most{};
    for (std::size_t l = 0; l < layers.size(); ++l) {
        auto const work = forward_flops(model.layers[l], config.train.microbatch) + backward_flops(model.layers[l], config.train.microbatch);
        auto const time = layers[l].forward + layers[l].backward;
        if (time > seconds{}) {
            most = std::max(most, flop_rate{static_cast<double>(work.count) / time.count});
        }
    }
    return most;
}

bytes_per_second rate_of_copies(run_config const& config, compute_backend& backend, int repeats)
{
    std::size_t const size = std::size_t{config.run.device == compute_device::cpu ? 64U : 1024U} << 20U;
    array<std::byte> from{backend.own(), size};
    array<std::byte> to{backend.own(), size};
    double least = 1e30;
    for (int r = 0; r <= repeats; ++r) {
        auto const begin = std::chrono::steady_clock::now();
        backend.copy(to.data(), from.data(), size);
        backend.wait();
        least = r == 0 ? least : std::min(least, seconds_since(begin));  // the first one touches memory
    }
    return {2.0 * static_cast<double>(size) / least};
}

/// Of the machine that this process runs on, in all.
bytes memory_of_node()
{
    std::ifstream file("/proc/meminfo");
    std::string name;
    std::int64_t kibibytes_of_node = 0;
    file >> name >> kibibytes_of_node;
    return name == "MemTotal:" ? kibibytes(kibibytes_of_node) : gibibytes(1);
}

/// One way between the first two ranks of a communicator: half of a message there and back. At the first rank; empty at others.
std::vector<measured_time> measured_messages(MPI_Comm comm, compute_backend& backend, int repeats)
{
    int rank = 0;
    MPI_Comm_rank(comm, &rank);
    array<std::byte> message{backend.messages(), longest_message};
    std::vector<measured_time> rows;
    seconds before{};
    for (std::size_t size = 8; rank < 2 && size <= longest_message; size *= 8) {
        auto const count = static_cast<int>(size);
        auto const rounds = static_cast<int>(std::clamp<std::size_t>((std::size_t{1} << 16U) / size, 1, 64));
        double least = 1e30;
        for (int r = 0; r < 4 * repeats; ++r) {
            auto const begin = std::chrono::steady_clock::now();
            for (int k = 0; k < 2 * rounds; ++k) {
                if ((k + rank) % 2 == 0) {
                    mpi::check(MPI_Send(message.data(), count, MPI_BYTE, 1 - rank, 0, comm), "MPI_Send");
                } else {
                    mpi::check(MPI_Recv(message.data(), count, MPI_BYTE, 1 - rank, 0, comm, MPI_STATUS_IGNORE), "MPI_Recv");
                }
            }
            least = std::min(least, seconds_since(begin) / (2 * rounds));
        }
        before = std::max(before, seconds{least});  // a longer message is not quicker, but for what ran beside
        rows.push_back({bytes{static_cast<std::int64_t>(size)}, before});
    }
    return rank == 0 ? rows : std::vector<measured_time>{};
}

/// To three digits: the next measurement has others.
double rounded(double value)
{
    auto const unit = value > 0.0 ? std::pow(10.0, std::floor(std::log10(value)) - 2.0) : 1.0;
    return std::round(value / unit) * unit;
}

result<std::optional<modelled_link>> link_of(std::vector<measured_time> const& rows, std::string const& where)
{
    if (rows.empty()) {
        return std::optional<modelled_link>{};
    }
    auto const link = fit_link(array_view<measured_time const>{rows});
    if (!link) {
        return failure{"messages " + where + ": " + link.error() + "; measure again with less running beside"};
    }
    return std::optional{modelled_link{{rounded(std::max(link->latency, nanoseconds(1)).count)}, {rounded(link->bandwidth.count)}}};
}

/// Of all protocols that messages take, where there are messages.
std::vector<fitted_line> lines_of(std::vector<measured_time> const& rows)
{
    std::vector<fitted_line> lines;
    auto const fitted = fit_lines(array_view<measured_time const>{rows});
    if (fitted) {
        for (auto const& line : *fitted) {
            lines.push_back({microseconds(rounded(in_microseconds(line.latency))), rounded(line.seconds_per_byte / us_per_mib) * us_per_mib});
        }
    }
    return lines;
}

/// The mean of a node's ranks; of its memory the least.
measured_device node_of(std::span<measured_device const> ranks)
{
    auto mean = ranks.front();
    mean.compute = {};
    mean.traffic = {};
    auto const part = 1.0 / static_cast<double>(ranks.size());
    for (auto const& rank : ranks) {
        mean.compute.count += part * rank.compute.count;
        mean.traffic.count += part * rank.traffic.count;
        mean.memory = std::min(mean.memory, rank.memory);
    }
    return mean;
}

cluster_device described(measured_device const& d)
{
    auto const memory = bytes{d.memory.count >> 20U << 20U};  // whole MiB
    return {{{rounded(d.compute.count)}, {rounded(d.traffic.count)}, memory}, {}, {}};
}

template <class ValueOf>
auto median_of(std::vector<measured_device> const& nodes, ValueOf const& value_of)
{
    std::vector<decltype(value_of(nodes.front()))> values;
    for (auto const& node : nodes) {
        values.push_back(value_of(node));
    }
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

result<cluster_model> cluster_of(std::span<measured_device const> by_rank, std::optional<modelled_link> in_node, std::optional<modelled_link> between_nodes)
{
    std::vector<measured_device> nodes;
    auto const first_of_next = std::find_if(by_rank.begin(), by_rank.end(), [](measured_device const& d) { return d.node != 0; });
    auto const size = static_cast<std::size_t>(first_of_next - by_rank.begin());
    for (std::size_t first = 0; size > 0 && first < by_rank.size(); first += size) {
        auto const ranks = by_rank.subspan(first, std::min(size, by_rank.size() - first));
        auto const number = static_cast<std::int32_t>(nodes.size());
        bool const is_node = ranks.size() == size && std::all_of(ranks.begin(), ranks.end(), [&](measured_device const& d) { return d.node == number; });
        if (!is_node) {
            return failure{"node 0 has " + std::to_string(size) + " ranks, and ranks " + std::to_string(first) + " to " +
                           std::to_string(first + ranks.size() - 1) + " are not those of node " + std::to_string(number) +
                           "; expected nodes of as many ranks each, one after the other: mpirun --map-by ppr:" + std::to_string(size) + ":node"};
        }
        nodes.push_back(node_of(ranks));
    }
    if (nodes.empty()) {
        return failure{"no rank of node 0 was measured"};
    }
    measured_device const common{median_of(nodes, [](measured_device const& d) { return d.compute; }),
                                 median_of(nodes, [](measured_device const& d) { return d.traffic; }),
                                 median_of(nodes, [](measured_device const& d) { return d.memory; }), 0};
    cluster_model cluster{.device = described(common), .levels = {}, .different = {}, .storage = {}, .recovery = {}};
    cluster.levels.push_back({"node", {static_cast<int>(size), network_topology::switched, in_node.value_or(link_between_ranks)}});
    if (nodes.size() > 1) {
        cluster.levels.push_back({"cluster", {static_cast<int>(nodes.size()), network_topology::switched, between_nodes.value_or(link_between_ranks)}});
    }
    auto const is_off = [](double rate, double usual) { return std::abs(rate / usual - 1.0) > alike; };
    for (auto const& node : nodes) {
        if (is_off(node.compute.count, common.compute.count) || is_off(node.traffic.count, common.traffic.count)) {
            cluster.different.push_back({node.node, node.node, described(node), {}});
        }
    }
    return cluster;
}

result<cluster_model> measured_cluster(MPI_Comm comm, run_config config, int repeats)
{
    choose_layers(config);
    auto const model = running_model(config);
    auto const backend = open_backend(config, model);
    int rank = 0;
    int ranks = 1;
    int in_node = 1;
    std::int32_t node = 0;
    mpi::communicator neighbours;
    if (comm != MPI_COMM_NULL) {
        MPI_Comm_rank(comm, &rank);
        MPI_Comm_size(comm, &ranks);
        neighbours = mpi::communicator{ranks_of_this_node(comm)};
        in_node = neighbours.size();
        int const is_first = neighbours.rank() == 0 ? 1 : 0;
        mpi::check(MPI_Scan(&is_first, &node, 1, MPI_INT, MPI_SUM, comm), "MPI_Scan");
        --node;
        mpi::check(MPI_Bcast(&node, 1, MPI_INT, 0, neighbours.handle()), "MPI_Bcast");
    }
    measured_device own{};
    own.compute = rate_of_layers(config, model, *backend, repeats);
    own.traffic = rate_of_copies(config, *backend, repeats);
    own.memory = backend->free_memory().value_or(bytes{memory_of_node().count / in_node});
    own.node = node;
    if (comm == MPI_COMM_NULL) {
        return cluster_of(std::span{&own, 1}, std::nullopt, std::nullopt);
    }
    std::vector<measured_device> all(static_cast<std::size_t>(rank == 0 ? ranks : 0));
    mpi::check(MPI_Gather(&own, sizeof own, MPI_BYTE, all.data(), sizeof own, MPI_BYTE, 0, comm), "MPI_Gather");
    auto const inside = node == 0 && in_node > 1 ? measured_messages(neighbours.handle(), *backend, repeats) : std::vector<measured_time>{};
    wait_asleep(comm);
    MPI_Comm firsts = MPI_COMM_NULL;
    mpi::check(MPI_Comm_split(comm, neighbours.rank() == 0 ? 0 : MPI_UNDEFINED, rank, &firsts), "MPI_Comm_split");
    std::vector<measured_time> between;
    if (firsts != MPI_COMM_NULL) {
        mpi::communicator const first_ranks{firsts};
        between = first_ranks.size() > 1 ? measured_messages(first_ranks.handle(), *backend, repeats) : between;
    }
    wait_asleep(comm);
    if (rank != 0) {
        return cluster_model{};
    }
    auto const in_link = link_of(inside, "inside a node");
    auto const between_link = link_of(between, "between nodes");
    if (!in_link || !between_link) {
        return failure{in_link ? between_link.error() : in_link.error()};
    }
    auto const described = cluster_of(all, *in_link, *between_link);
    if (!described) {
        return described;
    }
    auto cluster = *described;
    cluster.levels.front().lines = lines_of(inside);
    if (cluster.levels.size() > 1) {
        cluster.levels.back().lines = lines_of(between);
    }
    return cluster;
}

}  // namespace rheo::inline v0
