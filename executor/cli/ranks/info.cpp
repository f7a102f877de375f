// SPDX-License-Identifier: Apache-2.0
// `rheo info`: what was compiled in and what was found. Whether losses of ranks are survived is known only
// under mpirun: the library must have ULFM and the launcher must switch it on.

#include "executor/cli/commands.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "executor/cli/launch.hpp"
#include "executor/config/cluster/cluster_file.hpp"
#include "executor/config/text_file.hpp"
#include "executor/config/toml.hpp"
#include "executor/cuda/backend.hpp"
#include "executor/data/data.hpp"
#include "executor/faults/time_limit.hpp"
#include "executor/mpi/communicator.hpp"
#include "executor/mpi/cuda_support.hpp"
#include "executor/mpi/segment_folder.hpp"
#include "executor/nccl/library.hpp"
#include "executor/power/permission/found.hpp"
#include "executor/train/measured/measured_cluster.hpp"
#include "executor/train/same_command.hpp"
#include "kernels/blas.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/version.hpp"

namespace rheo::cli {

namespace {

/// A line of /proc/cpuinfo.
std::string cpu_line(std::string_view key)
{
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(key)) {
            auto const colon = line.find(':');
            return colon == line.npos ? std::string{} : line.substr(std::min(line.size(), colon + 2));
        }
    }
    return {};
}

/// Those of the processor's flags that kernels and BLAS look at.
std::vector<std::string> cpu_flags()
{
    constexpr std::string_view looked_at[] = {"avx2", "fma", "avx512f", "avx512dq", "avx512bw", "avx512vl"};
    std::vector<std::string> found;
    std::istringstream flags(cpu_line("flags"));
    for (std::string flag; flags >> flag;) {
        if (std::find(std::begin(looked_at), std::end(looked_at), flag) != std::end(looked_at)) {
            found.push_back(flag);
        }
    }
    return found;
}

std::string mpi_version()
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string version(text, static_cast<std::size_t>(length));
    return version.substr(0, version.find_first_of("\n,"));
}

std::string nccl_line(nccl::found_nccl const& found)
{
    if (found.version == 0) {
        return "none: " + found.error_if_none;
    }
    return nccl::version_text(found.version) + (found.version < nccl::library::shares_devices_from
                                                    ? ": a device for each rank"
                                                    : ": ranks may share a device when NCCL_MULTI_RANK_GPU_ENABLE is 1");
}

nlohmann::ordered_json nccl_json(int version)
{
    return {{"version", nccl::version_text(version)}, {"ranks_share_devices", version >= nccl::library::shares_devices_from}};
}

/// Devices with clocks and energy, a line each.
std::string power_lines(power::found_devices const& found)
{
    std::string lines;
    for (auto const& one : found.devices) {
        lines += fmt::format("clocks    {} ({}): {}; energy {}\n", one.name, one.key, one.message, one.energy.empty() ? "is read" : "is not: " + one.energy);
    }
    return found.devices.empty() ? fmt::format("clocks    no device: {}\n", fmt::join(found.missing, "; ")) : lines;
}

nlohmann::ordered_json power_json(power::found_devices const& found)
{
    nlohmann::ordered_json devices = nlohmann::json::array();
    for (auto const& one : found.devices) {
        devices.push_back({{"name", one.name}, {"key", one.key}, {"rung", power::name_of(one.rung)}, {"message", one.message}, {"energy", one.energy.empty()}});
    }
    return {{"devices", devices}, {"missing", found.missing}};
}

std::string link_text(modelled_link link) { return fmt::format("{:.3g} us and {:.3g} GB/s", in_microseconds(link.latency), link.bandwidth.count / 1e9); }

/// Writes what was measured, and says it in a line. @param messages whether they were measured
void write_cluster(cluster_model const& cluster, std::string const& path, bool messages)
{
    auto const& device = cluster.device.description;
    auto const ranks = cluster.levels.front().network.members;
    std::string links;
    for (auto const& level : cluster.levels) {
        links += level.network.members > 1 ? fmt::format("; in a {} {}", level.name, link_text(level.network.link)) : "";
    }
    auto const line =
        fmt::format("{} of {}, {:.3g} TFLOP/s, {:.3g} GB/s of memory and {:.3g} GiB each{}",
                    nodes_of(cluster) == 1 ? "a node" : fmt::format("{} nodes", nodes_of(cluster)), ranks == 1 ? "one rank" : fmt::format("{} ranks", ranks),
                    device.compute.count / 1e12, device.traffic.count / 1e9, static_cast<double>(device.memory.count) / 1073741824.0, links);
    write_whole(
        path,
        fmt::format(
            "# Measured by rheo info --cluster: {}.\n{}# What is not measured: watts, [storage], [recovery]; see the reference of described clusters.\n{}",
            line, messages ? "" : "# Messages were not measured: that takes two ranks, mpirun -n 2 or more.\n", to_toml(cluster)));
    fmt::print("{}: {}{}\n", path, line, messages ? "" : "; messages are not measured, that takes mpirun with two ranks or more");
}

/// Under a launcher with all ranks, else with this one.
int measure_cluster(info_options const& options)
{
    auto config = with_settings({}, options.settings);
    auto const launched = launched_rank().has_value();
    if (launched) {
        int level = 0;
        mpi::use_own_segment_folder();
        {
            time_limit const waits{limited_start(config.run.watchdog.start, false, "MPI_Init")};
            MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
        }
    }
    auto const cluster = measured_cluster(launched ? MPI_COMM_WORLD : MPI_COMM_NULL, std::move(config), options.repeats);
    if (cluster && is_lowest_rank()) {
        write_cluster(*cluster, options.cluster, devices_of(*cluster) > 1);
    }
    if (launched) {
        MPI_Finalize();
    }
    if (!cluster) {
        throw exit_error{exit_code::environment, fmt::format("--cluster: {}", cluster.error())};
    }
    return 0;
}

}  // namespace

int info(info_options const& options)
{
    if (!options.cluster.empty()) {
        return measure_cluster(options);
    }
    nlohmann::ordered_json ulfm{{"compiled_in", RHEO_HAS_ULFM == 1}, {"active", nullptr}};
    auto const launched = launched_rank().has_value();
    if (launched) {
        mpi::use_own_segment_folder();
        MPI_Init(nullptr, nullptr);
        ulfm["active"] = mpi::survives_losses();
    }
    if (is_lowest_rank()) {
        std::string data;
        try {
            data = default_data_folder();
        } catch (exit_error const&) {  // then there is none
        }
        auto const flags = cpu_flags();
        auto const found = power::find_devices();
        auto const gpus = cuda::find_devices();
        auto const code = cuda::compiled_code();
        auto const cudnn = cuda::find_cudnn();
        auto const nccl = nccl::find_nccl();
        auto const active = !RHEO_HAS_ULFM               ? "not compiled in"
                            : !launched                  ? "compiled in; whether it is active shows under mpirun --with-ft ulfm"
                            : ulfm["active"].get<bool>() ? "active"
                                                         : "compiled in, but not switched on: start with mpirun --with-ft ulfm --mca pml ob1";
        bool const open = RHEO_HAS_ULFM && !launched;  // the launcher decides
        auto const losses = open ? "" : what_a_loss_does(launched && ulfm["active"].get<bool>());
        if (options.json) {
            nlohmann::ordered_json const all{
                {"schema", 1},
                {"version", RHEO_VERSION},
                {"mpi", mpi_version()},
                {"mpi_takes_device_memory", mpi::has_cuda_support()},
                {"ulfm", ulfm},
                {"losses", open ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(ulfm["active"] == true ? "survived" : "resumed")},
                {"blas", blas_description()},
                {"cpu", cpu_line("model name")},
                {"cpu_flags", flags},
                {"threads", std::thread::hardware_concurrency()},
                {"gpus", gpus.names},
                {"gpu_code", code.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(code)},
                {"cudnn", cudnn.version.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(cudnn.version)},
                {"nccl", nccl.version == 0 ? nlohmann::ordered_json(nullptr) : nccl_json(nccl.version)},
                {"power", power_json(found)},
                {"default_data", data}};
            fmt::print("{}\n", all.dump(2));
        } else {
            fmt::print(
                "rheo      {}\nMPI       {}\nULFM      {}\nlosses    {}\nBLAS      {}\nprocessor {}, {} threads: {}\nGPUs      {}\nGPU code  {}\ncuDNN     {}\nNCCL      {}\n{}text      {}\n",
                RHEO_VERSION, mpi_version() + (mpi::has_cuda_support() ? ": takes what lies on GPUs" : ""), active,
                open ? "survived when ULFM is active, else resumed" : losses, blas_description(), cpu_line("model name"), std::thread::hardware_concurrency(),
                fmt::join(flags, " "), gpus.names.empty() ? "none: " + gpus.error_if_none : fmt::format("{}", fmt::join(gpus.names, ", ")),
                code.empty() ? "none: CUDA is not compiled in" : code, cudnn.version.empty() ? "none: " + cudnn.error_if_none : cudnn.version, nccl_line(nccl),
                power_lines(found), data.empty() ? "no C++ standard library headers found; name files with --data" : data);
        }
    }
    if (launched) {
        MPI_Finalize();
    }
    return 0;
}

}  // namespace rheo::cli
