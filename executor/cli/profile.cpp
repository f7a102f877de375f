// SPDX-License-Identifier: Apache-2.0
// `rheo profile`: the layers of the configured model, measured on this machine, as the file that `rheo plan --profile` reads.

#include "cli/commands.hpp"

#include <fstream>

#include <fmt/format.h>

#include "rheo/model/gpt.hpp"
#include "rheo/partition/layer_profile_csv.hpp"
#include "runtime/measured_layers.hpp"
#include "runtime/toml.hpp"

namespace rheo::cli {

int profile(profile_options const& options)
{
    auto const config = read_config_file(options.config, options.settings).config;
    auto const model = config.run.fuse ? fused(gpt_model(config.model)) : gpt_model(config.model);
    auto const layers = measured_layers(model, config, options.repeats);
    if (options.out.empty()) {
        fmt::print("{}", to_csv(layers));
        return 0;
    }
    std::ofstream file{options.out, std::ios::binary};
    file << to_csv(layers);
    if (!file.flush()) {
        throw refusal{5, fmt::format("{}: this profile cannot be written", options.out)};
    }
    seconds forward{0.0};
    seconds backward{0.0};
    for (auto const& layer : layers) {
        forward += layer.forward;
        backward += layer.backward;
    }
    fmt::print("{}: {} layers, {:.3f} ms forward and {:.3f} ms backward per microbatch\n", options.out, layers.size(), forward.count * 1e3, backward.count * 1e3);
    return 0;
}

}  // namespace rheo::cli
