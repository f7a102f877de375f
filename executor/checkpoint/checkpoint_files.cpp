// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/checkpoint_files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

/// A file that cannot be read is bad data; one that cannot be written is the fault of its surroundings.
[[noreturn]] void refuse(exit_code code, std::filesystem::path const& path, char const* action, int error)
{
    throw exit_error{code, fmt::format("'{}' cannot be {}: {}", path.string(), action, std::strerror(error))};
}

/// Repeats a system call that a signal interrupted.
template <class Call>
auto uninterrupted(Call call)
{
    auto result = call();
    while (result < 0 && errno == EINTR) {
        result = call();
    }
    return result;
}

constexpr std::size_t largest_transfer = std::size_t{1} << 30;

}  // namespace

input_file::input_file(std::filesystem::path path)
    : path_{std::move(path)}, descriptor_{uninterrupted([&] { return ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); })}
{
    if (descriptor_ < 0) {
        refuse(exit_code::bad_data, path_, "opened", errno);
    }
    using file_status = struct stat;
    file_status about{};
    if (::fstat(descriptor_, &about) != 0 || !S_ISREG(about.st_mode)) {
        auto const error = S_ISREG(about.st_mode) ? errno : S_ISDIR(about.st_mode) ? EISDIR : EINVAL;
        ::close(descriptor_);
        refuse(exit_code::bad_data, path_, "read", error);
    }
    bytes_ = about.st_size;
}

input_file::~input_file() { ::close(descriptor_); }

void input_file::read(std::int64_t first, std::span<std::byte> into) const
{
    while (!into.empty()) {
        auto const got = uninterrupted([&] { return ::pread(descriptor_, into.data(), std::min(into.size(), largest_transfer), first); });
        if (got < 0) {
            refuse(exit_code::bad_data, path_, "read", errno);
        }
        if (got == 0) {
            throw exit_error{exit_code::bad_data, fmt::format("'{}' ends {} bytes too early", path_.string(), into.size())};
        }
        into = into.subspan(static_cast<std::size_t>(got));
        first += got;
    }
}

std::string input_file::read(std::int64_t first, std::int64_t count) const
{
    std::string text(static_cast<std::size_t>(count), '\0');
    read(first, std::as_writable_bytes(std::span{text}));
    return text;
}

output_file::output_file(std::filesystem::path path)
    : path_{std::move(path)}, descriptor_{uninterrupted([&] { return ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666); })}
{
    if (descriptor_ < 0) {
        refuse(exit_code::environment, path_, "made", errno);
    }
}

output_file::~output_file()
{
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
}

void output_file::write(std::span<std::byte const> bytes)
{
    while (!bytes.empty()) {
        auto const put = uninterrupted([&] { return ::write(descriptor_, bytes.data(), std::min(bytes.size(), largest_transfer)); });
        if (put <= 0) {
            refuse(exit_code::environment, path_, "written", put < 0 ? errno : ENOSPC);
        }
        bytes = bytes.subspan(static_cast<std::size_t>(put));
    }
}

void output_file::write(std::string_view text) { write(std::as_bytes(std::span{text})); }

void output_file::sync_and_close()
{
    if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0) {
        refuse(exit_code::environment, path_, "written to disk", errno);
    }
    if (::close(std::exchange(descriptor_, -1)) != 0) {
        refuse(exit_code::environment, path_, "closed", errno);
    }
}

std::string read_file(std::filesystem::path const& path, std::int64_t most)
{
    input_file const file{path};
    if (file.bytes() > most) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' has {} bytes; at most {} make sense", path.string(), file.bytes(), most)};
    }
    return file.read(0, file.bytes());
}

void write_file(std::filesystem::path const& path, std::string_view text, std::function<void()> const& half)
{
    output_file out{path};
    out.write(text.substr(0, text.size() / 2));
    if (half) {
        half();
    }
    out.write(text.substr(text.size() / 2));
    out.sync_and_close();
}

void sync_folder(std::filesystem::path const& folder)
{
    int const descriptor = uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (descriptor < 0) {
        refuse(exit_code::environment, folder, "opened", errno);
    }
    int const code = uninterrupted([&] { return ::fsync(descriptor); });
    int const error = errno;
    ::close(descriptor);
    if (code != 0 && error != EINVAL) {  // a file system that cannot sync folders keeps them in order by itself
        refuse(exit_code::environment, folder, "written to disk", error);
    }
}

void rename_file(std::filesystem::path const& from, std::filesystem::path const& to)
{
    if (::rename(from.c_str(), to.c_str()) != 0) {
        throw exit_error{exit_code::environment, fmt::format("'{}' cannot be renamed to '{}': {}", from.string(), to.string(), std::strerror(errno))};
    }
}

std::filesystem::path make_aside(std::filesystem::path const& run_folder)
{
    int k = 1;
    auto const target = [&] { return run_folder / fmt::format("before-{}", k); };
    std::error_code ignored;
    while (std::filesystem::exists(target(), ignored)) {
        ++k;
    }
    make_folder(target());
    return target();
}

void make_folder(std::filesystem::path const& folder)
{
    std::error_code ignored;
    if (::mkdir(folder.c_str(), 0777) != 0 && !(errno == EEXIST && std::filesystem::is_directory(folder, ignored))) {
        refuse(exit_code::environment, folder, "made", errno == EEXIST ? ENOTDIR : errno);
    }
}

}  // namespace rheo::inline v0
