// SPDX-License-Identifier: Apache-2.0
#include "executor/report/watch/full_screen.hpp"

#include <cerrno>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace rheo::inline v0 {

namespace {

constexpr std::string_view second_screen = "\x1b[?1049h\x1b[?25l\x1b[2J";  // and no cursor, all blank
constexpr std::string_view first_screen = "\x1b[?25h\x1b[?1049l";

bool write_all(int descriptor, std::string_view text)
{
    while (!text.empty()) {
        auto const count = ::write(descriptor, text.data(), text.size());
        if (count >= 0) {
            text.remove_prefix(static_cast<std::size_t>(count));
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

}  // namespace

std::string picture_of(std::span<std::string const> lines)
{
    std::string picture = "\x1b[?2026h\x1b[H";  // terminals that know it show the rest at once
    for (std::size_t k = 0; k < lines.size(); ++k) {
        picture += (k == 0 ? "" : "\r\n") + lines[k] + "\x1b[K";
    }
    return picture + "\x1b[J\x1b[?2026l";
}

bool full_screen::show(std::span<std::string const> lines) { return write_all(descriptor_, picture_of(lines)); }

void full_screen::enter()
{
    if (!std::exchange(is_entered_, true)) {
        write_all(descriptor_, second_screen);
    }
}

void full_screen::leave() noexcept
{
    if (std::exchange(is_entered_, false)) {
        write_all(descriptor_, first_screen);
    }
}

}  // namespace rheo::inline v0
