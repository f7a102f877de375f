// SPDX-License-Identifier: Apache-2.0
#include "executor/faults/fence.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

class file_handle {
public:
    explicit file_handle(int descriptor) : descriptor_{descriptor} {}
    ~file_handle() { close(); }
    file_handle(file_handle const&) = delete;
    file_handle& operator=(file_handle const&) = delete;
    explicit operator bool() const { return descriptor_ >= 0; }
    int get() const { return descriptor_; }

    /// Some file systems say only here that there was no room.
    bool close() { return descriptor_ < 0 || ::close(std::exchange(descriptor_, -1)) == 0; }

private:
    int descriptor_;
};

std::string text_of(link_generation const& generation)
{
    std::ostringstream text;
    text << "rheo generation " << generation.ended.value + 1 << "\nlaunch " << generation.launch.value << "\nmembers";
    for (auto const member : generation.members) {
        text << ' ' << member.value;
    }
    text << '\n';
    return text.str();
}

/// What ranks left that died before they had linked: files of earlier generations, and the room of ranks that are no members any more.
void remove_unlinked(std::filesystem::path const& folder, link_generation const& now)
{
    std::vector<std::filesystem::path> old;
    std::error_code error;
    for (std::filesystem::directory_iterator entry{folder, error}; !error && entry != std::filesystem::directory_iterator{}; entry.increment(error)) {
        auto const name = entry->path().filename().string();
        auto const number_behind = [&](std::string_view prefix, std::int32_t& number, char end_is) {
            auto const [end, bad] = name.starts_with(prefix) ? std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number)
                                                             : std::from_chars_result{name.data(), std::errc::invalid_argument};
            return bad == std::errc{} && *end == end_is;
        };
        std::int32_t of = 0;
        std::int32_t rank = 0;
        if ((number_behind(".after-", of, '.') && of < now.ended.value) ||
            (number_behind(".after.", rank, '\0') && !std::binary_search(now.members.begin(), now.members.end(), rank_id{rank}))) {
            old.push_back(entry->path());
        }
    }
    for (auto const& file : old) {
        std::filesystem::remove(file, error);
    }
}

bool write_all(int descriptor, std::string const& text)
{
    std::size_t done = 0;
    while (done < text.size()) {
        auto const count = ::pwrite(descriptor, text.data() + done, text.size() - done, static_cast<off_t>(done));
        if (count < 0 && errno != EINTR) {
            return false;
        }
        done += count > 0 ? static_cast<std::size_t>(count) : 0;
    }
    return true;
}

[[noreturn]] void throw_write_error(std::filesystem::path const& path, int descriptor, int error)
{
    struct stat information{};
    if (error == ENOENT && ::fstat(descriptor, &information) == 0 && information.st_nlink == 0) {
        throw exit_error{exit_code::environment, "the run folder " + path.parent_path().string() + " was removed"};
    }
    throw folder_not_writable{"cannot write " + path.string() + ": " + std::strerror(error)};
}

}  // namespace

fence::fence(std::filesystem::path folder, rank_id self)
    : folder_{std::move(folder)},
      self_{self},
      room_{".after." + std::to_string(self.value)},
      descriptor_{::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)}
{
    if (descriptor_ < 0) {
        throw exit_error{exit_code::environment, "cannot open the run folder " + folder_.string() + ": " + std::strerror(errno)};
    }
}

fence::~fence()
{
    ::unlinkat(descriptor_, room_.c_str(), 0);
    ::close(descriptor_);
}

/// Whether the file that is there has this content.
bool fence::is_ours(std::string const& target, std::string const& text, bool& there) const
{
    file_handle const file{::openat(descriptor_, target.c_str(), O_RDONLY | O_CLOEXEC)};
    there = static_cast<bool>(file);
    std::string found;
    std::array<char, 4096> part{};
    for (ssize_t count = 1; there && count > 0;) {
        count = ::read(file.get(), part.data(), part.size());
        if (count < 0) {
            throw_write_error(folder_ / target, descriptor_, errno);
        }
        found.append(part.data(), static_cast<std::size_t>(count));
    }
    return there && found == text;
}

/// Writes this rank's file, over what is there: its blocks are its own, also where there are no others left. @param whole and nothing behind it
void fence::write(std::string const& text, bool whole) const
{
    file_handle file{::openat(descriptor_, room_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666)};
    if (!file || !write_all(file.get(), text) || (whole && ::ftruncate(file.get(), static_cast<off_t>(text.size())) != 0) || !file.close()) {
        throw_write_error(folder_ / room_, descriptor_, errno);
    }
}

bool fence::link(link_generation const& generation)
{
    auto const text = text_of(generation);
    auto const target = "after-" + std::to_string(generation.ended.value);
    bool there = false;
    bool const linked = is_ours(target, text, there);
    if (linked) {
        return linked_by_member(generation);
    }
    if (there) {
        return false;
    }
    write(text, true);
    int const code = ::linkat(descriptor_, room_.c_str(), descriptor_, target.c_str(), 0);
    int const error = errno;
    if (code != 0 && error != EEXIST) {
        throw_write_error(folder_ / target, descriptor_, error);
    }
    ::unlinkat(descriptor_, room_.c_str(), 0);
    return (code == 0 || is_ours(target, text, there)) && linked_by_member(generation);
}

/// The lowest member removes what dead ranks left. @returns true
bool fence::linked_by_member(link_generation const& generation) const
{
    if (self_ == generation.members.front()) {
        remove_unlinked(folder_, generation);
    }
    return true;
}

void fence::prepare(link_generation const& now) noexcept
{
    try {
        write(std::string(text_of(now).size() + 16, ' '), false);
    } catch (std::exception const&) {
    }
}

generation_id last_generation(std::filesystem::path const& folder)
{
    generation_id last{0};
    std::error_code error;
    for (auto const& entry : std::filesystem::directory_iterator{folder, error}) {
        auto const name = entry.path().filename().string();
        if (name.starts_with("after-")) {
            std::int32_t ended = 0;
            auto const [end, bad] = std::from_chars(name.data() + 6, name.data() + name.size(), ended);
            if (bad == std::errc{} && end == name.data() + name.size()) {
                last = std::max(last, generation_id{ended + 1});
            }
        }
    }
    return last;
}

bool link_generation_file(std::filesystem::path const& folder, link_generation const& generation, rank_id self) { return fence{folder, self}.link(generation); }

}  // namespace rheo::inline v0
