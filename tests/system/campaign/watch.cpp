// SPDX-License-Identifier: Apache-2.0
#include "watch.hpp"

#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace campaign {

std::vector<pid_t> ranks_of(trial& run)
{
    std::vector<pid_t> found;
    auto const until = clock::now() + deadline;
    while (run.running().running() && clock::now() < until) {
        found.clear();
        for (int rank = 0; rank < run.what().where.ranks; ++rank) {
            std::ifstream file{run.run_folder() / "ranks" / (std::to_string(rank) + ".json")};
            auto const object = nlohmann::json::parse(file, nullptr, false);
            if (!object.is_object()) {
                break;
            }
            found.push_back(object.at("pid").get<pid_t>());
        }
        if (static_cast<int>(found.size()) == run.what().where.ranks) {
            return found;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{2});
    }
    throw std::runtime_error{"the ranks of " + name_of(run.what()) + " do not begin"};
}

int attempts_of(std::filesystem::path const& run_folder)
{
    int count = 0;
    std::ifstream file{run_folder / "metrics.jsonl"};
    for (std::string line; std::getline(file, line);) {
        count += line.starts_with(R"({"kind":"step")") || line.starts_with(R"({"kind":"redo")") ? 1 : 0;
    }
    return count;
}

}  // namespace campaign
