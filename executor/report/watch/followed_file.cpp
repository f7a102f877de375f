// SPDX-License-Identifier: Apache-2.0
#include "executor/report/watch/followed_file.hpp"

#include <cerrno>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rheo::inline v0 {

namespace {

struct opened_file {
    int number;
    ~opened_file()
    {
        if (number >= 0) {
            ::close(number);
        }
    }
};

/// From a byte to the end.
std::string read_from(int file, std::int64_t offset, std::int64_t size)
{
    std::string text(static_cast<std::size_t>(size - offset), '\0');
    std::size_t have = 0;
    while (have < text.size()) {
        auto const count = ::pread(file, text.data() + have, text.size() - have, static_cast<off_t>(offset + static_cast<std::int64_t>(have)));
        if (count > 0) {
            have += static_cast<std::size_t>(count);
        } else if (count == 0 || errno != EINTR) {
            break;  // cut meanwhile, or the server is away: the next look finds out
        }
    }
    text.resize(have);
    return text;
}

}  // namespace

followed_file::news followed_file::poll()
{
    news result;
    opened_file const file{::open(path_.c_str(), O_RDONLY | O_CLOEXEC)};
    struct stat now = {};
    if (file.number < 0 || ::fstat(file.number, &now) != 0) {
        return result;
    }
    result.is_there = true;
    bool const is_other = now.st_dev != device_ || now.st_ino != node_ || now.st_size < read_;
    if (is_other) {
        result.began_again = node_ != 0;
        device_ = now.st_dev;
        node_ = now.st_ino;
        read_ = 0;
    }
    auto const text = now.st_size > read_ ? read_from(file.number, read_, now.st_size) : std::string{};
    std::string_view rest{text};
    for (auto end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
        result.lines.emplace_back(rest.substr(0, end));
        rest.remove_prefix(end + 1);
    }
    read_ += static_cast<std::int64_t>(text.size() - rest.size());
    return result;
}

}  // namespace rheo::inline v0
