// SPDX-License-Identifier: Apache-2.0
#include "executor/data/token_files.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <range/v3/view/iota.hpp>
#include <range/v3/view/zip.hpp>

#include "executor/data/file_list.hpp"
#include "executor/data/token_file_form.hpp"
#include "executor/os/mapped_copy.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace fs = std::filesystem;

namespace {

static_assert(std::endian::native == std::endian::little, "rheo: token files are little-endian and read as they are");

constexpr auto header_bytes = token_file_header_bytes;
constexpr std::int64_t mapped_from_bytes = 1 << 20;

[[noreturn]] void refuse(std::string const& message) { throw exit_error{exit_code::bad_data, "data: " + message}; }

[[noreturn]] void refuse_call(std::string const& path, int code) { refuse(fmt::format("'{}' cannot be read: {}", path, std::strerror(code))); }

class file_handle {
public:
    explicit file_handle(std::string const& path) : descriptor_{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)}
    {
        if (descriptor_ < 0) {
            refuse_call(path, errno);
        }
    }
    ~file_handle() { ::close(descriptor_); }
    file_handle(file_handle const&) = delete;
    file_handle& operator=(file_handle const&) = delete;
    int get() const { return descriptor_; }

private:
    int descriptor_;
};

std::int64_t modified_ns(struct stat const& status) { return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec; }

/// A moment for people, in UTC.
std::string moment(std::int64_t ns)
{
    std::time_t const s = ns / 1'000'000'000;
    std::tm parts{};
    ::gmtime_r(&s, &parts);
    return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03} UTC", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                       parts.tm_sec, ns / 1'000'000 % 1000);
}

/// What the header of a token file says, checked.
struct token_file_header {
    std::int64_t count;
    int token_bytes;
};

token_file_header check_token_file(file_bytes const& file, std::string const& path)
{
    if (file.size() < header_bytes) {
        refuse(fmt::format("'{}' is cut off: a token file begins with a header of {} bytes, this one has {}", path, header_bytes, file.size()));
    }
    std::array<std::int32_t, 3> header{};
    std::memcpy(header.data(), file.data(), sizeof header);
    auto const form = header[0] == tokens_of_32_bits.magic ? tokens_of_32_bits : tokens_of_16_bits;
    if (header[0] != form.magic) {
        refuse(fmt::format("'{}' is not a token file: it begins with the number {}, expected {} or {} (a text must not be called .bin)", path, header[0],
                           tokens_of_16_bits.magic, tokens_of_32_bits.magic));
    }
    if (header[1] != form.version) {
        refuse(fmt::format("'{}' is a token file of version {}, expected {}", path, header[1], form.version));
    }
    if (header[2] <= 0) {
        refuse(fmt::format("'{}' says that it holds {} tokens, expected at least 1", path, header[2]));
    }
    auto const expected = header_bytes + form.token_bytes * std::int64_t{header[2]};
    if (file.size() != expected) {
        refuse(
            fmt::format("'{}' says that it holds {} tokens, which are {} bytes with the header, but it has {} bytes", path, header[2], expected, file.size()));
    }
    return {header[2], form.token_bytes};
}

}  // namespace

file_bytes::file_bytes(std::string const& path) : path_{path}
{
    file_handle const file(path);
    struct stat status = {};
    if (::fstat(file.get(), &status) != 0) {
        refuse_call(path, errno);
    }
    if (!S_ISREG(status.st_mode)) {
        refuse(fmt::format("'{}' is neither a file nor a folder", path));
    }
    size_ = static_cast<std::size_t>(status.st_size);
    opened_ = {status.st_dev, status.st_ino, modified_ns(status)};
    if (status.st_size >= mapped_from_bytes) {
        auto* const address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
        if (address == MAP_FAILED) {
            refuse_call(path, errno);
        }
        mapped_ = address;
        return;
    }
    read_.resize(size_);
    std::size_t done = 0;
    while (done < size_) {
        auto const count = ::read(file.get(), read_.data() + done, size_ - done);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            refuse_call(path, errno);
        }
        if (count == 0) {
            refuse(fmt::format("'{}' became shorter while it was read", path));
        }
        done += static_cast<std::size_t>(count);
    }
}

file_bytes::~file_bytes()
{
    if (mapped_ != nullptr) {
        ::munmap(mapped_, size_);
    }
}

std::optional<std::string> file_bytes::change() const
{
    struct stat now = {};
    if (mapped_ == nullptr || ::stat(path_.c_str(), &now) != 0 || now.st_dev != opened_.device || now.st_ino != opened_.number) {
        return std::nullopt;  // what is mapped has lost its name at most
    }
    if (static_cast<std::size_t>(now.st_size) != size_) {
        return fmt::format("it had {} bytes, now it has {}", size_, now.st_size);
    }
    if (modified_ns(now) != opened_.modified_ns) {
        return fmt::format("it was last modified at {}, now at {}", moment(opened_.modified_ns), moment(modified_ns(now)));
    }
    return std::nullopt;
}

token_files::token_files(std::vector<std::string> const& paths)
{
    auto const files = list_files(paths);
    for (auto const& path : files) {
        auto const is_tokens = is_token_file(path);
        if (!pieces_.empty() && is_tokens == text_) {
            refuse(fmt::format("'{}' is a {} file, but '{}' is a {} file; a run takes one kind", path, is_tokens ? "token" : "text", pieces_.front().path,
                               text_ ? "text" : "token"));
        }
        auto const& file = files_.emplace_back(path);
        if (is_tokens) {
            auto const [count, bytes] = check_token_file(file, path);
            if (!pieces_.empty() && bytes != token_bytes_) {
                refuse(fmt::format("'{}' has tokens of {} bits, but '{}' has tokens of {} bits; a run takes one kind", path, 8 * bytes, pieces_.front().path,
                                   8 * token_bytes_));
            }
            token_bytes_ = bytes;
            pieces_.push_back({count_, count, file.data() + header_bytes, path});
        } else if (file.size() > 0) {
            token_bytes_ = 1;
            pieces_.push_back({count_, file.size(), file.data(), path});
        } else {
            files_.pop_back();
            if (files.size() == 1) {
                refuse(fmt::format("'{}' is empty", path));
            }
            continue;
        }
        text_ = !is_tokens;
        count_ += pieces_.back().count;
    }
    if (pieces_.empty()) {
        refuse("all files are empty");
    }
}

std::int32_t token_files::token(piece const& p, std::int64_t i) const
{
    if (text_) {
        return std::to_integer<std::int32_t>(p.data[i]);
    }
    std::uint32_t word = 0;
    std::memcpy(&word, p.data + token_bytes_ * i, static_cast<std::size_t>(token_bytes_));
    return static_cast<std::int32_t>(std::min<std::uint32_t>(word, INT32_MAX));  // beyond any vocabulary either way
}

std::optional<token_files::changed_file> token_files::change() const
{
    for (auto const& [i, from, file] : ranges::views::zip(ranges::views::ints(std::size_t{0}, pieces_.size()), pieces_, files_)) {
        if (auto const change = file.change()) {
            return changed_file{
                i, fmt::format("data: '{}' was changed in place while the run reads it: {}; data must stay as they are (a new version belongs in a new file)",
                               from.path, *change)};
        }
    }
    return std::nullopt;
}

void token_files::window(std::int64_t first, std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const
{
    auto found = std::upper_bound(pieces_.begin(), pieces_.end(), first, [](std::int64_t at, piece const& p) { return at < p.first; });
    auto const count = static_cast<std::int64_t>(tokens.size());
    std::int64_t const width = token_bytes_;
    std::vector<std::byte> bytes;
    piece part{0, 0, nullptr, {}};  // of a file, copied
    --found;
    for (std::int64_t i = 0; i <= count; ++i) {
        if (first + i >= part.first + part.count) {
            while (first + i >= found->first + found->count) {
                ++found;
            }
            part.first = first + i;
            part.count = std::min(count + 1 - i, found->first + found->count - part.first);
            bytes.resize(static_cast<std::size_t>(part.count * width));
            if (!copy_mapped(bytes.data(), found->data + width * (part.first - found->first), bytes.size())) {
                refuse(fmt::format("'{}' became shorter while it was in use", found->path));
            }
            part.data = bytes.data();
        }
        auto const next = token(part, first + i - part.first);
        if (i < count) {
            tokens[static_cast<std::size_t>(i)] = next;
        }
        if (i > 0) {
            targets[static_cast<std::size_t>(i - 1)] = next;
        }
    }
}

std::string default_data_folder()
{
    // The newest of /usr/include/c++/<version>: the compiler's own when rheo was built on this machine.
    fs::path best;
    std::vector<long> best_version;
    std::error_code error;
    for (fs::directory_iterator entry("/usr/include/c++", error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
        std::vector<long> version;
        std::string part;
        for (char const c : entry->path().filename().string() + '.') {
            if (c == '.') {
                version.push_back(std::strtol(part.c_str(), nullptr, 10));
                part.clear();
            } else {
                part += c;
            }
        }
        if (entry->is_directory(error) && version > best_version) {
            best = entry->path();
            best_version = version;
        }
    }
    if (best.empty()) {
        refuse("there are no C++ standard library headers in /usr/include/c++ to train on; name files or folders with --data");
    }
    return best.string();
}

}  // namespace rheo::inline v0
