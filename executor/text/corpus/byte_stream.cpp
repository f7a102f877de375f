// SPDX-License-Identifier: Apache-2.0
#include "executor/text/corpus/byte_stream.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef RHEO_HAS_ZLIB
#include <zlib.h>
#endif
#ifdef RHEO_HAS_ZSTD
#include <zstd.h>
#endif

#include <fmt/format.h>

#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::size_t block = 1 << 17;
constexpr std::size_t most_at_once = 1 << 20;

[[noreturn]] void refuse(std::string const& path, std::string const& why) { throw exit_error{exit_code::bad_data, fmt::format("text: '{}' {}", path, why)}; }

/// An open file, read in order.
class file {
public:
    explicit file(std::string path) : path_{std::move(path)}, descriptor_{::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)}
    {
        struct stat status = {};
        if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
            auto const error = errno;
            close();
            refuse(path_, fmt::format("cannot be read: {}", std::strerror(error)));
        }
        if (!S_ISREG(status.st_mode)) {
            close();
            refuse(path_, "is neither a file nor a folder");
        }
        ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    ~file() { close(); }
    file(file&& other) noexcept : path_{std::move(other.path_)}, descriptor_{std::exchange(other.descriptor_, -1)} {}
    file(file const&) = delete;
    file& operator=(file const&) = delete;
    file& operator=(file&&) = delete;

    std::string const& path() const { return path_; }

    std::size_t read(char* to, std::size_t most)
    {
        for (;;) {
            auto const count = ::read(descriptor_, to, most);
            if (count >= 0) {
                return static_cast<std::size_t>(count);
            }
            if (errno != EINTR) {
                refuse(path_, fmt::format("cannot be read: {}", std::strerror(errno)));
            }
        }
    }

private:
    std::string path_;
    int descriptor_;

    void close() const
    {
        if (descriptor_ >= 0) {
            ::close(descriptor_);
        }
    }
};

}  // namespace

struct byte_stream::source {
    source() = default;
    virtual ~source() = default;
    source(source const&) = delete;
    source& operator=(source const&) = delete;
    virtual std::size_t read(char* to, std::size_t most) = 0;
};

struct byte_stream::plain_file final : source {
    file from;
    std::string begin;  ///< what was read to see whether it is packed

    plain_file(file&& opened, std::string first) : from{std::move(opened)}, begin{std::move(first)} {}
    std::size_t read(char* to, std::size_t most) override
    {
        if (!begin.empty()) {
            auto const count = std::min(most, begin.size());
            std::memcpy(to, begin.data(), count);
            begin.erase(0, count);
            return count;
        }
        return from.read(to, most);
    }
};

#ifdef RHEO_HAS_ZLIB
struct byte_stream::gzip_file final : source {
    file from;
    std::vector<char> packed = std::vector<char>(block);
    z_stream state{};
    bool between = false;  ///< a member has ended, and nothing of the next was read

    gzip_file(file&& opened, std::string_view first) : from{std::move(opened)}
    {
        std::memcpy(packed.data(), first.data(), first.size());
        state.next_in = reinterpret_cast<Bytef*>(packed.data());
        state.avail_in = static_cast<uInt>(first.size());
        if (inflateInit2(&state, 16 + MAX_WBITS) != Z_OK) {  // 16: gzip's form alone
            throw std::bad_alloc{};
        }
    }
    ~gzip_file() override { inflateEnd(&state); }
    gzip_file(gzip_file const&) = delete;
    gzip_file& operator=(gzip_file const&) = delete;

    std::size_t read(char* to, std::size_t most) override
    {
        state.next_out = reinterpret_cast<Bytef*>(to);
        state.avail_out = static_cast<uInt>(most);
        while (state.avail_out == most) {
            if (state.avail_in == 0) {
                state.next_in = reinterpret_cast<Bytef*>(packed.data());
                state.avail_in = static_cast<uInt>(from.read(packed.data(), packed.size()));
                if (state.avail_in == 0 && between) {
                    return 0;
                }
                if (state.avail_in == 0) {
                    refuse(from.path(), "is cut off: its gzip data do not end");
                }
            }
            if (between) {  // members follow one another
                inflateReset(&state);
                between = false;
            }
            auto const answer = inflate(&state, Z_NO_FLUSH);
            between = answer == Z_STREAM_END;
            if (answer != Z_OK && answer != Z_STREAM_END && answer != Z_BUF_ERROR) {
                refuse(from.path(), fmt::format("is damaged: its gzip data cannot be unpacked ({})", state.msg != nullptr ? state.msg : "unknown"));
            }
        }
        return most - state.avail_out;
    }
};
#endif

#ifdef RHEO_HAS_ZSTD
struct byte_stream::zstd_file final : source {
    file from;
    std::vector<char> packed = std::vector<char>(block);
    ZSTD_inBuffer in{};
    ZSTD_DStream* state = ZSTD_createDStream();
    bool between = false;
    bool full = false;  ///< the last call filled its output: more may be waiting inside

    zstd_file(file&& opened, std::string_view first) : from{std::move(opened)}
    {
        if (state == nullptr) {
            throw std::bad_alloc{};
        }
        std::memcpy(packed.data(), first.data(), first.size());
        in = {packed.data(), first.size(), 0};
    }
    ~zstd_file() override { ZSTD_freeDStream(state); }
    zstd_file(zstd_file const&) = delete;
    zstd_file& operator=(zstd_file const&) = delete;

    std::size_t read(char* to, std::size_t most) override
    {
        ZSTD_outBuffer out{to, most, 0};
        while (out.pos == 0) {
            if (in.pos == in.size && !full) {
                in = {packed.data(), from.read(packed.data(), packed.size()), 0};
                if (in.size == 0 && between) {
                    return 0;
                }
                if (in.size == 0) {
                    refuse(from.path(), "is cut off: its zstd data do not end");
                }
            }
            auto const answer = ZSTD_decompressStream(state, &out, &in);
            if (ZSTD_isError(answer) != 0) {
                refuse(from.path(), fmt::format("is damaged: its zstd data cannot be unpacked ({})", ZSTD_getErrorName(answer)));
            }
            between = answer == 0;
            full = out.pos == out.size && !between;
        }
        return out.pos;
    }
};
#endif

byte_stream::byte_stream(std::string const& path)
{
    file opened{path};
    std::string first(block, '\0');
    std::size_t size = 0;
    while (size < 4) {
        auto const count = opened.read(first.data() + size, first.size() - size);
        if (count == 0) {
            break;
        }
        size += count;
    }
    first.resize(size);
    std::string_view const magic = first;
    if (magic.starts_with("\x1f\x8b")) {
#ifdef RHEO_HAS_ZLIB
        source_ = std::make_unique<gzip_file>(std::move(opened), first);
        return;
#else
        refuse(path, "is packed by gzip, and this rheo was built without zlib: unpack it first");
#endif
    }
    if (magic.starts_with("\x28\xb5\x2f\xfd")) {
#ifdef RHEO_HAS_ZSTD
        source_ = std::make_unique<zstd_file>(std::move(opened), first);
        return;
#else
        refuse(path, "is packed by zstd, and this rheo was built without libzstd: unpack it first");
#endif
    }
    source_ = std::make_unique<plain_file>(std::move(opened), std::move(first));
}

byte_stream::~byte_stream() = default;
byte_stream::byte_stream(byte_stream&&) noexcept = default;
byte_stream& byte_stream::operator=(byte_stream&&) noexcept = default;

std::size_t byte_stream::read(std::string& to, std::size_t most)
{
    most = std::min(most, most_at_once);  // zlib counts in 32 bits, and what is not filled was made for nothing
    auto const before = to.size();
    to.resize(before + most);
    auto const count = source_->read(to.data() + before, most);
    to.resize(before + count);
    return count;
}

}  // namespace rheo::inline v0
