// SPDX-License-Identifier: Apache-2.0

// One training of a small GPT, as the campaign starts it under mpirun. What decides the bits is fixed here;
// arguments `key=value` choose what must not: pipelines, shares, schedule, threads, faults. The rank that speaks
// writes what `rheo::run` returned to result.json in the run folder.

#include <charconv>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>
#include <nlohmann/json.hpp>

#include "executor/config/files/schedule_file.hpp"
#include "executor/mpi/segment_folder.hpp"
#include "executor/train/run.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/grid.hpp"

namespace {

int number(std::string_view text)
{
    int value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
        throw std::invalid_argument{"not a number: " + std::string{text}};
    }
    return value;
}

std::vector<int> numbers(std::string_view text)
{
    std::vector<int> result;
    while (!text.empty()) {
        auto const comma = text.find(',');
        result.push_back(number(text.substr(0, comma)));
        text.remove_prefix(comma == text.npos ? text.size() : comma + 1);
    }
    return result;
}

rheo::run_config small_job()
{
    rheo::run_config config;
    config.model = {.vocabulary = 256, .context = 32, .width = 32, .heads = 2, .blocks = 4, .dropout_per_mille = 100};
    config.train.steps = 4;
    config.train.microbatches = 8;
    config.train.microbatch = {2, 16};
    config.train.eval_microbatches = 4;
    config.optimizer.warmup_steps = 2;
    return config;
}

void set(rheo::run_config& config, std::string_view key, std::string const& value)
{
    if (key == "folder") {
        config.run.folder = value;
    } else if (key == "data") {
        config.data.paths = {value};
    } else if (key == "pipelines") {
        config.plan.pipelines = numbers(value);
    } else if (key == "shares") {
        config.plan.shares = numbers(value);
    } else if (key == "schedule") {
        config.plan.schedule = *rheo::find_schedule(value);
    } else if (key == "threads") {
        config.run.threads = number(value);
    } else if (key == "rendezvous") {
        config.run.rendezvous = number(value) != 0;
    } else if (key == "recompute") {
        config.plan.recompute = value == "auto"      ? rheo::recompute_policy::automatic
                                : number(value) != 0 ? rheo::recompute_policy::always
                                                     : rheo::recompute_policy::never;
    } else if (key == "memory_kib") {
        config.plan.memory = rheo::kibibytes(number(value));
    } else if (key == "min_ranks") {
        config.plan.min_ranks = number(value);
    } else if (key == "blocks") {
        config.model.blocks = number(value);
    } else if (key == "steps") {
        config.train.steps = number(value);
    } else if (key == "seed") {
        config.train.seed = static_cast<std::uint64_t>(number(value));
    } else if (key == "layers") {
        config.plan.layers = numbers(value);
    } else if (key == "slices") {
        config.train.microbatch.slices = number(value);
    } else if (key == "shards") {
        config.train.shards = number(value);
        config.model.width = 64;
        config.model.heads = 4;
    } else if (key == "tensor") {
        config.plan.tensor.values = numbers(value);
    } else if (key == "changes") {
        config.plan.changes.push_back(value);
    } else if (key == "spares") {
        config.plan.spares = number(value);
    } else if (key == "failures") {
        config.plan.failures = number(value);
    } else if (key == "clocks") {
        config.power.device = rheo::power_source::emulated;
        config.power.clock_profile = value;
        config.power.pace = rheo::emulation_pace::profile;
        config.power.slow.steps = 1;  // there are few steps
    } else if (key == "inject") {
        config.run.inject.push_back(value);
    } else {
        throw std::invalid_argument{"no such key: " + std::string{key}};
    }
}

}  // namespace

int main(int argc, char** argv)
{
    auto config = small_job();
    try {
        for (int i = 1; i < argc; ++i) {
            std::string const argument = argv[i];
            auto const equals = std::min(argument.find('='), argument.size() - 1);
            set(config, std::string_view{argument}.substr(0, equals), argument.substr(equals + 1));
        }
    } catch (std::invalid_argument const& wrong) {
        std::cerr << "train_once: " << wrong.what() << '\n';
        return 2;
    }
    rheo::mpi::use_own_segment_folder();  // two jobs run at once
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // before the first communicator is made of it
    auto const result = rheo::run(MPI_COMM_WORLD, rheo::on_grid(rheo::gpt_model(config.model), config.train.shards), config, {.quiet = true});
    if (result.is_reporter) {
        if (result.exit_code != 0) {
            std::cerr << "train_once: exit code " << result.exit_code << ": " << result.record.message << '\n';
        }
        int survivors = 0;
        if (result.survivors != MPI_COMM_NULL) {
            MPI_Comm_size(result.survivors, &survivors);
        }
        nlohmann::ordered_json const what{{"exit_code", result.exit_code},
                                          {"message", result.record.message},
                                          {"steps", result.record.steps.value},
                                          {"digest", to_string(result.record.digest)},
                                          {"pairs_by_survivors", result.record.pairs_by_survivors},
                                          {"survivors", survivors}};
        std::ofstream{config.run.folder + "/result.json"} << what.dump() << '\n';
    }
    rheo::leave_job(result);
}
