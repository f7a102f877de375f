#pragma once
// SPDX-License-Identifier: Apache-2.0

// The program `rheo` as its users start it: its exit code, and what it wrote to each stream.

#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/wait.h>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

struct outcome {
    int exit_code;
    std::string out;
    std::string err;
};

/// Runs `rheo`, which stands next to this test's executable, in a folder, for a minute at most.
inline outcome run_rheo(temporary_folder const& folder, std::string const& arguments, std::string const& environment = "")
{
    auto const program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rheo";
    REQUIRE(std::filesystem::exists(program));
    auto const command = "cd '" + folder.path.string() + "' && env -u OMPI_COMM_WORLD_RANK -u PMIX_RANK -u PMI_RANK " + environment + " timeout 60 '" +
                         program.string() + "' " + arguments + " >out 2>err </dev/null";
    int const status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, folder.read("out"), folder.read("err")};
}
