// SPDX-License-Identifier: Apache-2.0
#include "executor/text/corpus/token_file_writer.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::size_t buffered_bytes = 1 << 20;

}  // namespace

token_file_writer::token_file_writer(std::string path, token_file_form form, std::int64_t most_tokens)
    : path_{std::move(path)}, form_{form}, most_{std::clamp<std::int64_t>(most_tokens, 1, most_tokens_of_a_file)}
{
    if (std::error_code ignored; std::filesystem::is_directory(path_, ignored)) {  // else it is seen when all is written
        errno = EISDIR;
        fail(path_);
    }
    begin_file();
}

token_file_writer::~token_file_writer()
{
    if (descriptor_ >= 0) {
        ::close(descriptor_);
    }
    for (auto const& name : temporary_) {
        ::unlink(name.c_str());
    }
}

void token_file_writer::fail(std::string const& name) const
{
    throw exit_error{exit_code::environment, fmt::format("tokens: '{}' cannot be written: {}", name, std::strerror(errno))};
}

void token_file_writer::begin_file()
{
    auto const slash = path_.rfind('/') + 1;  // hidden: what reads the folder leaves it out, should it stay behind
    auto name = fmt::format("{}.{}.{}.{}.partial", path_.substr(0, slash), path_.substr(slash), ::getpid(), temporary_.size());
    descriptor_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0) {
        fail(name);
    }
    temporary_.push_back(std::move(name));
    in_file_ = 0;
    buffer_.assign(static_cast<std::size_t>(token_file_header_bytes), '\0');  // the header, until its number is known
}

void token_file_writer::put(char const* data, std::size_t size, std::int64_t at)
{
    while (size > 0) {
        auto const count = at < 0 ? ::write(descriptor_, data, size) : ::pwrite(descriptor_, data, size, at);
        if (count < 0 && errno != EINTR) {
            fail(temporary_.back());
        }
        if (count > 0) {
            data += count;
            size -= static_cast<std::size_t>(count);
            at = at < 0 ? at : at + count;
        }
    }
}

void token_file_writer::flush()
{
    put(buffer_.data(), buffer_.size(), -1);
    buffer_.clear();
}

void token_file_writer::end_file()
{
    flush();
    std::array<std::int32_t, 3> const header{form_.magic, form_.version, static_cast<std::int32_t>(in_file_)};
    put(reinterpret_cast<char const*>(header.data()), sizeof header, 0);
    auto const synced = ::fdatasync(descriptor_) == 0 || errno == EINVAL;  // EINVAL: no file that can be
    if (!synced || ::close(std::exchange(descriptor_, -1)) != 0) {
        fail(temporary_.back());
    }
}

void token_file_writer::write(std::span<std::int32_t const> tokens)
{
    while (!tokens.empty()) {
        if (in_file_ == most_) {
            end_file();
            begin_file();
        }
        auto const width = static_cast<std::size_t>(form_.token_bytes);
        auto const count = std::min({tokens.size(), static_cast<std::size_t>(most_ - in_file_), buffered_bytes / width});
        auto const before = buffer_.size();
        buffer_.resize(before + count * width);
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(buffer_.data() + before + i * width, &tokens[i], width);  // little-endian: the low bytes come first
        }
        in_file_ += static_cast<std::int64_t>(count);
        count_ += static_cast<std::int64_t>(count);
        tokens = tokens.subspan(count);
        if (buffer_.size() >= buffered_bytes) {
            flush();
        }
    }
}

std::vector<std::string> token_file_writer::finish()
{
    end_file();
    std::vector<std::string> names;
    auto const stem = is_token_file(path_) ? path_.substr(0, path_.size() - 4) : path_;
    for (std::size_t i = 0; i < temporary_.size(); ++i) {
        names.push_back(temporary_.size() == 1 ? path_ : fmt::format("{}.{:05}.bin", stem, i));
        if (::rename(temporary_[i].c_str(), names.back().c_str()) != 0) {
            fail(names.back());
        }
    }
    temporary_.clear();
    return names;
}

}  // namespace rheo::inline v0
