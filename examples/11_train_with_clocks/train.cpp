// SPDX-License-Identifier: Apache-2.0
// Clocks that follow the plan, on plain processors: each rank has an emulated device with the times and energies of a profile. One rank is
// slow for a while, so the others need not hurry; another one is lost, and the new plan has its clocks at once. The bits are those of a training without clocks.
#include <cstdio>
#include <fstream>
#include <string>

#include <unistd.h>

#include "executor/train/run.hpp"
#include "rheo/energy/profile/profile_csv.hpp"

constexpr rheo::gpt_shape tiny{.vocabulary = 256, .context = 32, .width = 32, .heads = 2, .blocks = 2};
using my_model = rheo::model<rheo::embedding<tiny>, rheo::repeat<2, rheo::transformer_block<tiny>>, rheo::classifier<tiny>>;

/// As if measured layer by layer: half the clock takes 1.6 times as long for half the energy.
rheo::profile measured()
{
    rheo::profile result;
    constexpr rheo::rank_id every{-1};
    for (int layer = 0; layer < 4; ++layer) {
        for (auto const kind : {rheo::instruction_kind::forward, rheo::instruction_kind::backward}) {
            double const work = kind == rheo::instruction_kind::forward ? 1.0 : 2.0;
            result.rows.push_back({every, rheo::stage_id{layer}, kind, {1400.0}, rheo::milliseconds(2.0 * work), {0.8 * work}});
            result.rows.push_back({every, rheo::stage_id{layer}, kind, {1050.0}, rheo::milliseconds(2.5 * work), {0.55 * work}});
            result.rows.push_back({every, rheo::stage_id{layer}, kind, {700.0}, rheo::milliseconds(3.2 * work), {0.4 * work}});
        }
    }
    return result;
}

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    std::string const folder = argv[1];
    auto const profile = folder + "-" + std::to_string(getpid()) + ".csv";
    std::ofstream{profile} << to_csv(measured());
    rheo::run_config config;
    config.train = {.steps = 12, .microbatches = 6, .microbatch = {.sequences = 1, .tokens = 16}};
    config.plan.pipelines = {2, 2};
    config.power.device = rheo::power_source::emulated;
    config.power.clock_profile = profile;
    config.power.pace = rheo::emulation_pace::profile;
    config.run.folder = folder;
    config.run.inject = {"slow:1@2-5:1.5", "kill:3@9:backward"};

    auto const result = rheo::run<my_model>(MPI_COMM_WORLD, config, {.quiet = true});
    std::remove(profile.c_str());
    if (result.is_reporter) {
        std::ifstream records{folder + "/metrics.jsonl"};
        for (std::string line; std::getline(records, line);) {
            if (auto const at = line.find("clocks for a step"); at != line.npos) {
                std::printf("%s\n", line.substr(at, line.find('"', at) - at).c_str());
            }
        }
        std::printf("%lld steps, %s, %s\n", static_cast<long long>(result.record.steps.value), result.record.message.c_str(),
                    result.record.energy.count > 0 ? "joules counted" : "no joules");
    }
    rheo::leave_job(result);
}
