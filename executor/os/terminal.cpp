// SPDX-License-Identifier: Apache-2.0
#include "executor/os/terminal.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <fmt/format.h>

namespace rheo::inline v0 {

bool shows_in_terminal()
{
    if (std::getenv("PMIX_RANK") == nullptr) {
        return ::isatty(STDOUT_FILENO) == 1;
    }
    std::error_code error;
    auto const target = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", ::getppid()), error).string();
    return !error && (target.starts_with("/dev/pts/") || target.starts_with("/dev/tty"));
}

terminal_size size_of_terminal()
{
    bool const is_own = ::isatty(STDOUT_FILENO) == 1;
    auto const fd = is_own ? STDOUT_FILENO : ::open(fmt::format("/proc/{}/fd/1", ::getppid()).c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    winsize size{};
    bool const known = fd >= 0 && ::ioctl(fd, TIOCGWINSZ, &size) == 0;
    if (!is_own && fd >= 0) {
        ::close(fd);
    }
    terminal_size result;
    if (known && size.ws_col > 0) {
        result.columns = size.ws_col;
    }
    if (known && size.ws_row > 0) {
        result.rows = size.ws_row;
    }
    return result;
}

}  // namespace rheo::inline v0
