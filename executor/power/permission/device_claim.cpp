// SPDX-License-Identifier: Apache-2.0
#include "executor/power/permission/device_claim.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rheo::inline v0::power {

namespace {

constexpr double nothing_set = 0.0;
constexpr double not_known = -1.0;  ///< a change was begun, and perhaps never ended

/// What the file holds; behind it, at text_at, how clocks are restored.
struct page {
    std::uint64_t form = 0x726865'6f2d'636c31u;  ///< another form would have another number
    double set = nothing_set;
    std::int64_t text_size = 0;
    std::array<double, device_claim::most_ranks> requests{};
};
constexpr off_t text_at = 4096;
constexpr off_t lock_of_all = off_t{1} << 20;  ///< bytes that are only ever locked, far behind what is written
constexpr off_t lock_of_place = lock_of_all + 1;

/// A lock of this open file on one byte. @return 0 or an errno
int lock_byte(int file, off_t byte, short kind)
{
    struct flock lock{};
    lock.l_type = kind;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    return ::fcntl(file, F_OFD_SETLK, &lock) == 0 ? 0 : errno;
}

bool locked_by_another(int file, off_t byte)
{
    struct flock lock{};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = byte;
    lock.l_len = 1;
    return ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

device_error refused(std::string const& path, char const* lock, int error)
{
    return {error == EACCES || error == EPERM ? device_error_code::no_permission : device_error_code::failed, path + " " + lock + ": " + std::strerror(error)};
}

/// Holds the file while it lives; no process holds it for longer than a change of the clock takes.
class hold {
public:
    explicit hold(int file) : file_{file}
    {
        using clock = std::chrono::steady_clock;
        for (auto const begun = clock::now(); (error_ = lock_byte(file_, lock_of_all, F_WRLCK)) == EAGAIN && clock::now() - begun < std::chrono::seconds{15};) {
            std::this_thread::sleep_for(std::chrono::microseconds{200});
        }
    }
    ~hold()
    {
        if (error_ == 0) {
            lock_byte(file_, lock_of_all, F_UNLCK);
        }
    }
    hold(hold const&) = delete;
    hold& operator=(hold const&) = delete;

    int error() const { return error_; }

private:
    int file_;
    int error_ = 0;
};

page read_page(int file)
{
    page now;
    page const fresh;
    bool const good = ::pread(file, &now, sizeof now, 0) == static_cast<ssize_t>(sizeof now) && now.form == fresh.form;
    return good ? now : fresh;
}

bool write_page(int file, page const& now) { return ::pwrite(file, &now, sizeof now, 0) == static_cast<ssize_t>(sizeof now); }

int living(int file)
{
    int count = 0;
    for (int k = 0; k < device_claim::most_ranks; ++k) {
        count += locked_by_another(file, lock_of_place + k) ? 1 : 0;
    }
    return count;
}

bool still_named(int file, std::string const& path)
{
    struct stat opened{};
    struct stat named{};
    return ::fstat(file, &opened) == 0 && ::stat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/// Lines are performed as this user, so no other user may have written them.
bool ours_alone(int file)
{
    struct stat there{};
    return ::fstat(file, &there) == 0 && S_ISREG(there.st_mode) && there.st_uid == ::geteuid() && (there.st_mode & 077) == 0;
}

restoration text_in(int file, page const& now)
{
    std::string text(static_cast<std::size_t>(std::clamp<std::int64_t>(now.text_size, 0, 1 << 19)), '\0');
    if (::pread(file, text.data(), text.size(), text_at) != static_cast<ssize_t>(text.size())) {
        return {};
    }
    return restoration_of(text).value_or(restoration{});
}

/// What was there before goes first; other ways of this rank after it, but for those that write what it read when another user's
/// clock was set already.
restoration joined(restoration first, restoration const& own)
{
    for (auto const& way : own.ways) {
        bool const writes = std::any_of(way.begin(), way.end(), [](restoration_step const& step) { return step.kind == restoration_kind::write; });
        if (!writes && std::find(first.ways.begin(), first.ways.end(), way) == first.ways.end()) {
            first.ways.push_back(way);
        }
    }
    return first;
}

}  // namespace

std::filesystem::path default_claims()
{
    std::error_code error;
    std::filesystem::path const memory = "/dev/shm";
    return std::filesystem::is_directory(memory, error) && ::access(memory.c_str(), W_OK) == 0 ? memory : std::filesystem::temp_directory_path(error);
}

device_result<device_claim> device_claim::join(std::filesystem::path const& folder, std::string const& key)
{
    device_claim claim;
    auto name = "rheo-clock-" + std::to_string(::geteuid()) + "-" + key;
    std::replace(name.begin(), name.end(), '/', '_');
    claim.path_ = (folder / name).string();
    for (int tries = 0; tries < 100; ++tries) {
        claim.file_ = descriptor{::open(claim.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)};
        if (!claim.file_) {
            return refused(claim.path_, "cannot be opened", errno);
        }
        if (!ours_alone(claim.file_.get())) {
            return device_error{device_error_code::no_permission, claim.path_ + " belongs to another user, or others may write it"};
        }
        hold const held{claim.file_.get()};
        if (held.error() != 0) {
            return refused(claim.path_, "is held by another process", held.error());
        }
        if (!still_named(claim.file_.get(), claim.path_)) {
            continue;  // the last rank has just removed it
        }
        for (int k = 0; k < most_ranks && claim.place_ < 0; ++k) {
            claim.place_ = lock_byte(claim.file_.get(), lock_of_place + k, F_WRLCK) == 0 ? k : -1;
        }
        if (claim.place_ < 0) {
            return device_error{device_error_code::not_supported, claim.path_ + " has no place for another rank"};
        }
        auto now = read_page(claim.file_.get());
        now.requests[static_cast<std::size_t>(claim.place_)] = 0.0;
        if (!write_page(claim.file_.get(), now)) {
            return refused(claim.path_, "cannot be written", errno);
        }
        return claim;
    }
    return device_error{device_error_code::failed, claim.path_ + " is removed again and again"};
}

device_result<restoration> device_claim::begin(std::function<restoration(bool untouched)> const& choose)
{
    hold const held{file_.get()};
    if (held.error() != 0) {
        return refused(path_, "is held by another process", held.error());
    }
    auto now = read_page(file_.get());
    bool const untouched = now.set == nothing_set && living(file_.get()) == 0;
    auto const own = choose(untouched);
    // Where a clock was set and no process lives, all were killed at once: what was there before is still known.
    auto const how = now.text_size == 0 || untouched ? own : joined(text_in(file_.get(), now), own);
    auto const text = to_text(how);
    now.text_size = static_cast<std::int64_t>(text.size());
    if (::pwrite(file_.get(), text.data(), text.size(), text_at) != static_cast<ssize_t>(text.size()) || !write_page(file_.get(), now)) {
        return refused(path_, "cannot be written", errno);
    }
    return how;
}

device_result<device_claim::outcome> device_claim::request(megahertz clock, std::function<device_result<done>(megahertz)> const& set)
{
    hold const held{file_.get()};
    if (held.error() != 0) {
        return refused(path_, "is held by another process", held.error());
    }
    auto now = read_page(file_.get());
    now.requests[static_cast<std::size_t>(place_)] = clock.count;
    double highest = clock.count;
    for (int k = 0; k < most_ranks; ++k) {
        if (locked_by_another(file_.get(), lock_of_place + k)) {
            highest = std::max(highest, now.requests[static_cast<std::size_t>(k)]);
        }
    }
    if (now.set == highest) {
        write_page(file_.get(), now);
        return outcome{{highest}, false};
    }
    now.set = not_known;
    write_page(file_.get(), now);
    if (auto const result = set({highest}); !result) {
        return result.error();
    }
    now.set = highest;
    write_page(file_.get(), now);
    return outcome{{highest}, true};
}

device_result<done> device_claim::leave(std::function<device_result<done>()> const& restore)
{
    hold const held{file_.get()};
    if (held.error() != 0) {
        return refused(path_, "is held by another process", held.error());
    }
    auto now = read_page(file_.get());
    now.requests[static_cast<std::size_t>(place_)] = 0.0;
    write_page(file_.get(), now);
    device_result<done> result{done{}};
    if (living(file_.get()) == 0) {
        result = now.set == nothing_set ? device_result<done>{done{}} : restore();
        if (result) {
            ::unlink(path_.c_str());
        }
    }
    lock_byte(file_.get(), lock_of_place + place_, F_UNLCK);
    return result;
}

int device_claim::others() const { return living(file_.get()); }

device_result<bool> restore_if_last(std::string const& path, restoration const& how)
{
    descriptor const file{::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW)};
    if (!file && errno == ENOENT) {
        return false;  // the last one has left in order
    }
    if (!file || !ours_alone(file.get())) {
        return refused(path, "cannot be opened", file ? EPERM : errno);
    }
    hold const held{file.get()};
    if (held.error() != 0) {
        return refused(path, "is held by another process", held.error());
    }
    if (!still_named(file.get(), path) || living(file.get()) > 0) {
        return false;
    }
    if (read_page(file.get()).set != nothing_set) {
        if (auto const result = perform(how); !result) {
            return result.error();
        }
    }
    ::unlink(path.c_str());
    return true;
}

}  // namespace rheo::inline v0::power
