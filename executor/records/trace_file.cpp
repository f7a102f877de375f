// SPDX-License-Identifier: Apache-2.0
#include "executor/records/trace_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "rheo/units/exit_error.hpp"

#ifdef RHEO_HAS_ZLIB
#include <algorithm>
#include <limits>

#include <zlib.h>
#endif

namespace rheo::inline v0 {

namespace {

exit_error unreadable(std::string const& path, std::string_view why) { return {exit_code::bad_data, fmt::format("{}: cannot be read: {}", path, why)}; }

}  // namespace

#ifdef RHEO_HAS_ZLIB

struct trace_file::handle {
    gzFile file;

    explicit handle(std::string const& path) : file{gzopen(path.c_str(), "rb")} {}
    ~handle() { gzclose(file); }
    handle(handle const&) = delete;
    handle& operator=(handle const&) = delete;
};

trace_file::trace_file(std::string path) : path_{std::move(path)}, file_{std::make_shared<handle>(path_)}
{
    if (file_->file == nullptr) {
        throw unreadable(path_, std::strerror(errno));
    }
}

std::size_t trace_file::operator()(char* to, std::size_t room)
{
    auto const most = static_cast<unsigned>(std::min<std::size_t>(room, std::numeric_limits<int>::max()));
    auto const count = gzread(file_->file, to, most);
    int code = Z_OK;
    auto const* const why = gzerror(file_->file, &code);
    if (count < 0 || (count == 0 && code != Z_OK && code != Z_STREAM_END)) {  // an end that comes too early is Z_BUF_ERROR
        throw unreadable(path_, code == Z_ERRNO ? std::strerror(errno) : why);
    }
    return static_cast<std::size_t>(count);
}

#else

struct trace_file::handle {
    std::ifstream file;
};

trace_file::trace_file(std::string path) : path_{std::move(path)}, file_{std::make_shared<handle>()}
{
    file_->file.open(path_, std::ios::binary);
    if (!file_->file) {
        throw unreadable(path_, std::strerror(errno));
    }
}

std::size_t trace_file::operator()(char* to, std::size_t room)
{
    file_->file.read(to, static_cast<std::streamsize>(room));
    if (file_->file.bad()) {
        throw unreadable(path_, std::strerror(errno));
    }
    return static_cast<std::size_t>(file_->file.gcount());
}

#endif

}  // namespace rheo::inline v0
