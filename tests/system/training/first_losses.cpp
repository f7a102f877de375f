// SPDX-License-Identifier: Apache-2.0
// The first twenty losses of a real run, on any number of ranks, against the reference in double precision. Float and
// double part company slowly: one step's loss differs by about 1e-8, and Adam's division makes a small
// gradient's rounding into a small difference of a parameter, so after twenty steps 1e-4 is far above what is
// due to rounding and far below what any mistake in clipping, decay, learning rate or moments would leave.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include <mpi.h>
#include <nlohmann/json.hpp>

#include "executor/data/data.hpp"
#include "executor/train/run.hpp"
#include "unit/executor/stage/reference_training.hpp"

namespace {

constexpr int compared = 20;
constexpr double tolerance = 1e-4;

rheo::run_config small_job(std::string const& folder)
{
    rheo::run_config config;
    config.model = {.vocabulary = 256, .context = 24, .width = 32, .heads = 2, .blocks = 2};
    config.data.paths = {folder + "/text"};
    config.train.steps = 30;  // the cosine does not end where the comparison does
    config.train.seed = 11;
    config.train.microbatches = 4;
    config.train.microbatch = {2, 16};
    config.train.eval_microbatches = 2;
    config.optimizer = {.learning_rate = 3e-3, .final_learning_rate = 3e-4, .warmup_steps = 5, .beta2 = 0.98, .weight_decay = 0.2, .clip_norm = 0.8};
    config.run.folder = folder + "/run";
    config.run.trace = false;
    return config;
}

void write_text(std::string const& file)
{
    std::ofstream out(file, std::ios::binary);
    for (int i = 0; i < 400; ++i) {
        out << "the square of " << i << " is " << i * i << ", and its cube " << i * i * i << ";\n";
    }
}

/// The losses of committed steps, as the run recorded them.
std::vector<double> recorded_losses(std::string const& file)
{
    std::vector<double> losses;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        auto const object = nlohmann::json::parse(line);
        if (object.value("kind", "") == "step") {
            losses.push_back(object.at("loss").get<double>());
        }
    }
    return losses;
}

std::vector<double> reference_losses(rheo::run_config const& config)
{
    auto const shape = config.train.microbatch;
    rheo::dataset const data{config.data, config.model.vocabulary, shape};
    auto const& o = config.optimizer;
    reference::optimizer_settings const settings{.learning_rate = o.learning_rate,
                                                 .final_learning_rate = o.final_learning_rate,
                                                 .warmup_steps = o.warmup_steps,
                                                 .steps = config.train.steps,
                                                 .beta1 = o.beta1,
                                                 .beta2 = o.beta2,
                                                 .epsilon = o.epsilon,
                                                 .weight_decay = o.weight_decay,
                                                 .clip_norm = o.clip_norm};
    reference::training training{reference::gpt{config.model, shape, config.train.seed}};
    std::vector<double> losses;
    for (rheo::step_id s{0}; s.value < compared; ++s) {
        std::vector<reference::microbatch> step(static_cast<std::size_t>(config.train.microbatches));
        for (std::size_t m = 0; m < step.size(); ++m) {
            step[m].tokens.resize(static_cast<std::size_t>(rows(shape)));
            step[m].targets.resize(step[m].tokens.size());
            data.training_microbatch(config.train.seed, s, rheo::microbatch_id{static_cast<int>(m)}, step[m].tokens, step[m].targets);
        }
        losses.push_back(training.train(step, settings));
    }
    return losses;
}

int compare(std::vector<double> const& actual, std::vector<double> const& expected)
{
    int wrong = actual.size() < expected.size() ? 1 : 0;
    for (std::size_t s = 0; s < expected.size() && s < actual.size(); ++s) {
        bool const near = std::fabs(actual[s] - expected[s]) <= tolerance;
        std::cout << "step " << s << ": loss " << actual[s] << ", difference " << actual[s] - expected[s] << (near ? "\n" : "  TOO FAR\n");
        wrong += near ? 0 : 1;
    }
    if (actual.size() < expected.size()) {
        std::cout << "the run recorded " << actual.size() << " steps\n";
    }
    return wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    char const* const temporary = std::getenv("TMPDIR");
    auto const folder = (temporary != nullptr ? std::filesystem::path{temporary} : std::filesystem::temp_directory_path()) / "first-losses";
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        std::filesystem::remove_all(folder);
        std::filesystem::create_directories(folder);
        write_text(folder / "text");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    auto const config = small_job(folder);
    auto result = rheo::run(MPI_COMM_WORLD, rheo::gpt_model(config.model), config, {.quiet = true});
    if (result.is_reporter) {
        if (result.exit_code != 0) {
            std::cout << result.record.message << '\n';
        } else {
            result.exit_code = compare(recorded_losses(config.run.folder + "/metrics.jsonl"), reference_losses(config));
        }
        std::filesystem::remove_all(folder);
    }
    rheo::leave_job(result);
}
