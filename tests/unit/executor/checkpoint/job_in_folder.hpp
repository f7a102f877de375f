#pragma once
// SPDX-License-Identifier: Apache-2.0
// A job in a folder of its own, as checkpointing sees it: ranks of one process, whose votes and reductions a test settles.

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "executor/train/checkpointing.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/checkpoint/small_job.hpp"

namespace small_job {

inline run_config small_config_in(temporary_folder const& folder)
{
    std::string text;
    for (int i = 0; i < 200; ++i) {
        text += "a line to learn\n";
    }
    folder.write("text", text);
    run_config config;
    config.model = shape;
    config.data.paths = {(folder.path / "text").string()};
    config.model.vocabulary = 256;
    config.train.steps = 100;
    config.train.microbatch = {1, 4};
    config.checkpoint.every_steps = 5;
    config.checkpoint.interval = {};
    config.run.folder = (folder.path / "run").string();
    return config;
}

/// What ranks have in common, and the state that each of them holds whole.
struct job_in_folder {
    temporary_folder folder;
    run_config config = small_config_in(folder);
    model_description model = gpt_model(config.model);
    host_backend backend{1};
    dataset data{config.data, config.model.vocabulary, config.train.microbatch};
    records silent{config.run.folder, rank_id{0}, false, true};
    job about{model, state_of(model), {}, config};
    fault_injector no_faults;
    resident_state state{about.state, backend};
    std::vector<pipeline_instance> both{{{layer_id{0}, layer_id{2}, layer_id{4}}, {{rank_id{0}}, {rank_id{1}}}}};
    std::vector<pipeline_instance> alone{{{layer_id{0}, layer_id{4}}, {{rank_id{0}}}}};

    job_in_folder()
    {
        initialise_layers(state, layer_id{0}, layer_id{4}, 1);
        silent.set_reporter(true);
    }

    /// Folders of checkpoints in the run folder, finished or not.
    std::set<std::string> folders() const
    {
        std::set<std::string> names;
        for (auto const& entry : std::filesystem::directory_iterator{config.run.folder}) {
            if (auto const name = entry.path().filename().string(); name.find("step-") != std::string::npos) {
                names.insert(name);
            }
        }
        return names;
    }

    std::string notes()
    {
        silent.flush();
        return folder.read("run/metrics.jsonl");
    }
};

}  // namespace small_job
