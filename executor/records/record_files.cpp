// SPDX-License-Identifier: Apache-2.0
#include "executor/records/record_files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace fs = std::filesystem;

appended_file::appended_file(std::string path) : path_{std::move(path)}
{
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
        throw exit_error{exit_code::environment, fmt::format("'{}' cannot be written: {}", path_, std::strerror(errno))};
    }
}

void appended_file::append(std::string_view block)
{
    while (descriptor_ >= 0 && !block.empty()) {
        auto const count = ::write(descriptor_, block.data(), block.size());
        if (count >= 0) {
            block.remove_prefix(static_cast<std::size_t>(count));
        } else if (errno != EINTR) {
            fmt::print(stderr, "rheo: '{}' cannot be written and is given up: {}\n", path_, std::strerror(errno));
            close();
        }
    }
}

void appended_file::close()
{
    if (descriptor_ >= 0) {
        ::close(std::exchange(descriptor_, -1));
    }
}

std::string end_of_file(std::string const& path, std::streamoff most)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    auto const size = static_cast<std::streamoff>(file.tellg());
    if (!file || size <= 0) {
        return {};
    }
    auto const from = std::max<std::streamoff>(0, size - most);
    file.seekg(from);
    std::string text(static_cast<std::size_t>(size - from), '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    if (from > 0) {
        auto const newline = text.find('\n');
        text.erase(0, newline == text.npos ? text.size() : newline + 1);
    }
    return text;
}

void make_record_folder(std::string const& path)
{
    std::error_code error;
    fs::create_directories(path, error);
    if (error) {
        throw exit_error{exit_code::environment, fmt::format("run folder: '{}' cannot be made: {}", path, error.message())};
    }
}

}  // namespace rheo::inline v0
