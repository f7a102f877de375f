// SPDX-License-Identifier: Apache-2.0
// `rheo profile`: the layers of the configured model, measured on what run.device names, as the file that `rheo plan --layer-profile` reads. Under a launcher one
// rank measures the layers, and then the ranks of its node the exchanges that sharing a layer takes.
// Or its computations at every clock, measured in a training, as the file that `rheo frontier` reads.

#include "executor/cli/commands.hpp"

#include <fstream>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>
#include <range/v3/view/zip.hpp>

#include "executor/cli/launch.hpp"
#include "executor/config/toml.hpp"
#include "executor/faults/time_limit.hpp"
#include "executor/mpi/communicator.hpp"
#include "executor/mpi/segment_folder.hpp"
#include "executor/train/measured/measured_exchanges.hpp"
#include "executor/train/measured/measured_layers.hpp"
#include "executor/train/opened_backend.hpp"
#include "rheo/partition/layer_profile_csv.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

int write(std::vector<layer_profile> const& layers, run_config const& config, std::string const& out)
{
    if (out.empty()) {
        fmt::print("{}", to_csv(layers, policy_of(config)));
        return 0;
    }
    std::ofstream file{out, std::ios::binary};
    file << to_csv(layers, policy_of(config));
    if (!file.flush()) {
        throw exit_error{exit_code::environment, fmt::format("{}: this profile cannot be written", out)};
    }
    seconds forward{0.0};
    seconds backward{0.0};
    for (auto const& layer : layers) {
        forward += layer.forward;
        backward += layer.backward;
    }
    auto const shared = layers.front().all_reduce.size();
    fmt::print("{}: {} layers, {:.3f} ms forward and {:.3f} ms backward per microbatch{}\n", out, layers.size(), forward.count * 1e3, backward.count * 1e3,
               shared == 0 ? "" : fmt::format("; exchanges between up to {} ranks of a node", shared + 1));
    return 0;
}

/// On rank 0 the layers with what sharing them between ranks of its node takes; nothing on the others.
std::vector<layer_profile> measured_together(model_description const& model, run_config const& config, int repeats)
{
    std::vector<layer_profile> layers;
    std::vector<layer_output> outputs;
    for (auto const& layer : model.layers) {
        outputs.push_back({.rows = rows(config.train.microbatch), .width = layer.out_width, .policy = policy_of(config), .grid = layer.shards});
    }
    mpi::communicator const node{ranks_of_this_node(MPI_COMM_WORLD)};
    if (is_lowest_rank()) {
        layers = measured_layers(model, config, *open_backend(config, model), repeats);
    }
    wait_asleep(MPI_COMM_WORLD);
    auto const times = measured_exchanges(node.handle(), outputs, repeats);
    for (auto&& [layer, time] : ranges::views::zip(layers, times)) {
        layer.all_reduce = time;
    }
    return layers;
}

}  // namespace

int profile(profile_options const& options)
{
    if (options.clocks) {
        train_options training;
        training.config = options.config;
        training.settings = options.settings;
        training.settings.push_back("power.sweep=" + options.out);
        return train(training);
    }
    auto const config = read_config_file(options.config, options.settings).config;
    auto const model = running_model(config);
    if (!launched_rank()) {
        return write(measured_layers(model, config, *open_backend(config, model), options.repeats), config, options.out);
    }
    int level = 0;
    mpi::use_own_segment_folder();
    {
        time_limit const waits{limited_start(config.run.watchdog.start, false, "MPI_Init")};
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
    }
    auto const layers = measured_together(model, config, options.repeats);
    auto const code = layers.empty() ? 0 : write(layers, config, options.out);
    MPI_Finalize();
    return code;
}

}  // namespace rheo::cli
