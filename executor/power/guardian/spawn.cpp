// SPDX-License-Identifier: Apache-2.0
#include "executor/power/guardian/spawn.hpp"

#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

extern char** environ;

namespace rheo::inline v0::power {

spawned spawn(std::string const& program, std::span<std::string const> words, spawn_options const& how)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    if (how.input >= 0) {
        posix_spawn_file_actions_adddup2(&files, how.input, STDIN_FILENO);
    } else {
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    }
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (how.errors >= 0) {
        posix_spawn_file_actions_adddup2(&files, how.errors, STDERR_FILENO);
    }
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, how.blocks_signals ? &all : &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    auto const group = how.kind == leads::session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(&attributes, static_cast<short>(group | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));

    std::vector<char*> arguments;
    for (auto const& word : words) {
        arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    spawned result;
    result.error = posix_spawn(&result.process, program.c_str(), &files, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (result.error != 0) {
        result.process = -1;  // unspecified after a failure
    }
    return result;
}

}  // namespace rheo::inline v0::power
