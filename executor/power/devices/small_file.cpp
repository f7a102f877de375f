// SPDX-License-Identifier: Apache-2.0
#include "executor/power/devices/small_file.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "executor/power/descriptor.hpp"
#include "rheo/units/csv.hpp"

namespace rheo::inline v0::power {

namespace {

device_error refused(std::string const& path, char const* verb, int error)
{
    auto const cause = error == EACCES || error == EPERM || error == EROFS ? device_error_code::no_permission
                       : error == ENOENT || error == ENOTDIR               ? device_error_code::not_found
                                                                           : device_error_code::failed;
    return {cause, path + " cannot be " + verb + ": " + std::strerror(error)};
}

/// What one pass over the file finds.
device_result<std::string> read_once(std::string const& path)
{
    descriptor const file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
    if (!file) {
        return refused(path, "read", errno);
    }
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t count = 0; (count = ::read(file.get(), part.data(), part.size())) != 0;) {
        if (count < 0 || text.size() > (std::size_t{1} << 20)) {
            return refused(path, "read", count < 0 ? errno : EFBIG);
        }
        text.append(part.data(), static_cast<std::size_t>(count));
    }
    while (!text.empty() && text.back() == '\n') {
        text.pop_back();
    }
    return text;
}

}  // namespace

device_result<std::string> read_small_file(std::string const& path)
{
    // A plain file can be read while a write is half done. What two passes find alike is no such mixture.
    constexpr int most_passes = 100;
    auto before = read_once(path);
    for (int pass = 1; pass < most_passes && before; ++pass) {
        auto now = read_once(path);
        if (now && *now == *before) {
            break;
        }
        before = std::move(now);
    }
    return before;
}

device_result<double> read_number_file(std::string const& path)
{
    auto const text = read_small_file(path);
    if (!text) {
        return text.error();
    }
    double value = 0.0;
    if (!read_number(text->substr(0, text->find('\n')), value)) {
        return device_error{device_error_code::not_supported, path + " holds '" + text->substr(0, 40) + "' and no number"};
    }
    return value;
}

device_result<done> write_small_file(std::string const& path, std::string const& text)
{
    descriptor const file{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
    if (!file) {
        return refused(path, "written", errno);
    }
    // Not truncated before: another rank may read it meanwhile. Until it is cut behind, its first line is the value.
    auto const line = text + '\n';
    auto const count = ::write(file.get(), line.data(), line.size());
    if (count != static_cast<ssize_t>(line.size())) {
        return refused(path, "written", count < 0 ? errno : EIO);
    }
    [[maybe_unused]] auto const cut = ::ftruncate(file.get(), count);  // sysfs has no length to cut
    return done{};
}

}  // namespace rheo::inline v0::power
