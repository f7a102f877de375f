// SPDX-License-Identifier: Apache-2.0
#include "executor/train/same_command.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include <unistd.h>

#include <fmt/format.h>

#include "executor/config/text_file.hpp"
#include "executor/os/process_state.hpp"
#include "executor/records/records.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> arguments_of(pid_t process)
{
    std::vector<std::string> words;
    auto const text = process_file(process, "cmdline");
    for (std::size_t i = 0; i < text.size();) {
        auto const end = std::min(text.find('\0', i), text.size());
        words.push_back(text.substr(i, end - i));
        i = end + 1;
    }
    return words;
}

/// True for what people start; not for the daemons that it starts in turn.
bool is_launcher(std::string const& word)
{
    constexpr std::string_view names[] = {"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun"};
    auto const name = fs::path(word).filename().string();
    return std::any_of(std::begin(names), std::end(names), [&](std::string_view known) {
        return name == known || name.starts_with(std::string{known} + '.');  // mpirun.mpich
    });
}

/// The process that started this one's ranks, when it is among the ancestors; else 0.
pid_t launcher()
{
    for (auto process = state_of(::getpid()).parent; process > 1; process = state_of(process).parent) {
        auto const words = arguments_of(process);
        // A script is seen as its interpreter with the script's name.
        if (std::any_of(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(words.size(), 2)), is_launcher)) {
            return process;
        }
    }
    return 0;
}

}  // namespace

std::string shell_line(std::vector<std::string> const& words)
{
    constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
    std::string line;
    for (auto const& word : words) {
        line += line.empty() ? "" : " ";
        if (!word.empty() && word.find_first_not_of(plain) == word.npos) {
            line += word;
            continue;
        }
        line += '\'';
        for (char const c : word) {
            line += c == '\'' ? std::string{"'\\''"} : std::string{c};
        }
        line += '\'';
    }
    return line;
}

std::string same_command(int ranks)
{
    auto const above = launcher();
    auto words = arguments_of(above != 0 ? above : ::getpid());
    if (above == 0 && ranks > 1) {
        auto const own = words;
        words = {"mpirun", "-n", std::to_string(ranks)};
        words.insert(words.end(), own.begin(), own.end());
    }
    std::error_code error;
    return "cd " + shell_line({fs::current_path(error).string()}) + " && " + shell_line(words);
}

std::string how_to_stop(int ranks)
{
    if (auto const above = launcher(); above != 0) {
        return fmt::format(
            "to stop with a checkpoint: kill -USR1 {} (the launcher, which passes it on; SIGTERM to the launcher kills the ranks within half a second)", above);
    }
    return ranks > 1 ? "to stop with a checkpoint: SIGUSR1 to any rank" : fmt::format("to stop with a checkpoint: kill -USR1 {}", ::getpid());
}

void keep_command(std::string const& folder, std::string const& line) { write_whole(folder + "/command", line + '\n'); }

}  // namespace rheo::inline v0
