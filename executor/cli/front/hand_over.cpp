// SPDX-License-Identifier: Apache-2.0
// The commands that ranks run, or that ask the MPI, in the program `rheo`: it is linked with no MPI, whose libraries take longer to load than a
// plan takes to make. So it continues as `rheo-ranks`, which has all commands and lies beside it: the same process with the same
// arguments, so that a launcher and its signals reach what it has started.

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "executor/cli/commands.hpp"
#include "executor/cli/generation_part.hpp"
#include "executor/cli/launch.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

/// @throws exit_error when there is no such program
int hand_over()
{
    std::ifstream file{"/proc/self/cmdline", std::ios::binary};
    std::string words{std::istreambuf_iterator<char>{file}, {}};  // each ends with a zero
    std::vector<char*> arguments;
    for (std::size_t begin = 0; begin < words.size(); begin = words.find('\0', begin) + 1) {
        arguments.push_back(words.data() + begin);
    }
    arguments.push_back(nullptr);
    std::error_code error;
    auto const program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / "rheo-ranks";
    ::execv(program.c_str(), arguments.data());
    throw exit_error{exit_code::environment,
                     fmt::format("{} cannot be started: {}; it runs train, profile, info, and generate under a launcher, and is installed beside rheo",
                                 program.string(), std::strerror(errno))};
}

}  // namespace

int train(train_options const&) { return hand_over(); }
int profile(profile_options const&) { return hand_over(); }
int info(info_options const&) { return hand_over(); }

model_part generation_part()
{
    if (launched_rank()) {
        hand_over();
    }
    return {};
}
void leave_generation(model_part const&) {}

}  // namespace rheo::cli
