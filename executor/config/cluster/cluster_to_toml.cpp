// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "executor/config/cluster/cluster_file.hpp"
#include "executor/config/toml_value.hpp"

namespace rheo::inline v0 {

namespace {

/// As few digits as give the count again when a reader multiplies with the unit. Division does not always find the number that was written:
/// one of its neighbours is it.
double number_of_units(double count, double unit)
{
    auto exact = count / unit;
    for (int digits = 1; digits < 17; ++digits) {
        auto const shorter = std::strtod(fmt::format("{:.{}g}", exact, digits).c_str(), nullptr);
        if (shorter * unit == count) {
            return shorter;
        }
    }
    for (auto const side : {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()}) {
        auto near = exact;
        for (int k = 0; k < 3; ++k, near = std::nextafter(near, side)) {
            exact = near * unit == count ? near : exact;
        }
    }
    return exact;
}

std::string in_unit_of(double count, double unit) { return toml_value(number_of_units(count, unit)); }

/// In GB/s where that gives the rate again, else in GiB/s, which always do.
std::string rate_line(bytes_per_second rate)
{
    constexpr double giga = 1e9;
    constexpr double gibi = 1073741824.0;
    auto const units = number_of_units(rate.count, giga);
    bool const is_giga = units * giga == rate.count && units <= 1e9;  // the most that a reader takes
    return is_giga ? fmt::format("rate_gb_per_s = {}\n", in_unit_of(rate.count, giga)) : fmt::format("rate_gib_per_s = {}\n", in_unit_of(rate.count, gibi));
}

std::string link_lines(modelled_link link) { return fmt::format("latency_us = {}\n{}", in_unit_of(link.latency.count, 1e-6), rate_line(link.bandwidth)); }

std::string measured_lines(std::vector<fitted_line> const& lines)
{
    std::string text;
    for (auto const& line : lines) {
        text += fmt::format("{}{{ latency_us = {}, us_per_mib = {} }}", text.empty() ? "" : ", ", in_unit_of(line.latency.count, 1e-6),
                            in_unit_of(line.seconds_per_byte, us_per_mib));
    }
    return lines.empty() ? "" : fmt::format("lines = [{}]\n", text);
}

std::string nccl_lines(nccl_machine const& m)
{
    return fmt::format("\n[nccl]\ngpu = \"{}\"\ncpu = \"{}\"\nchannels = {}\nchannel_gb_per_s = {}\nnvlink = {}\ntree_pattern = {}\nnvls_gb_per_s = {}\n",
                       nccl_gpu_names[static_cast<std::size_t>(m.gpu)], nccl_cpu_names[static_cast<std::size_t>(m.cpu)], m.channels,
                       toml_value(m.channel_bandwidth), m.has_nvlink, m.has_tree_pattern, toml_value(m.nvls_bandwidth));
}

std::string device_lines(cluster_device const& device)
{
    return fmt::format("compute_tflops = {}\nmemory_rate_gb_per_s = {}\nmemory_gib = {}\ncomputing_w = {}\nwaiting_w = {}\n",
                       in_unit_of(device.description.compute.count, 1e12), in_unit_of(device.description.traffic.count, 1e9),
                       in_unit_of(static_cast<double>(device.description.memory.count), 1073741824.0), toml_value(device.computing.count),
                       toml_value(device.waiting.count));
}

}  // namespace

std::string to_toml(cluster_model const& cluster)
{
    auto text = fmt::format("schema = 1\n\n[device]\n{}", device_lines(cluster.device));
    for (auto const& [name, network, lines] : cluster.levels) {
        text += fmt::format("\n[[level]]\nname = {}\nmembers = {}\ntopology = \"{}\"\n{}links_per_member = {}\n{}", toml_value(name), network.members,
                            name_of(network.topology), link_lines(network.link), network.links_per_member, measured_lines(lines));
    }
    for (auto const& different : cluster.different) {
        text += fmt::format("\n[[different]]\nnodes = [{}, {}]\n{}", different.first, different.last, device_lines(different.device));
        for (std::size_t k = 0; k < different.links.size(); ++k) {
            if (different.links[k]) {
                text += fmt::format("\n[[different.level]]\nname = {}\n{}", toml_value(cluster.levels[k].name), link_lines(*different.links[k]));
            }
        }
    }
    if (auto const& storage = cluster.storage) {
        text +=
            fmt::format("\n[storage]\nread_gb_per_s = {}\nwrite_gb_per_s = {}\n", in_unit_of(storage->read.count, 1e9), in_unit_of(storage->write.count, 1e9));
        text += storage->node_read ? fmt::format("node_read_gb_per_s = {}\n", in_unit_of(storage->node_read->count, 1e9)) : "";
        text += storage->node_write ? fmt::format("node_write_gb_per_s = {}\n", in_unit_of(storage->node_write->count, 1e9)) : "";
    }
    if (cluster.recovery) {
        text += "\n[recovery]\n";
        for (auto const& phase : recovery_phase_list) {
            text += fmt::format("{}_s = {}\n", phase.name, toml_value(((*cluster.recovery).*phase.time).count));
        }
    }
    return text + (cluster.nccl ? nccl_lines(*cluster.nccl) : "");
}

}  // namespace rheo::inline v0
