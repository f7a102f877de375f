// SPDX-License-Identifier: Apache-2.0
#include "executor/mpi/segment_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <mpi.h>

#include "rheo/tensor/digest.hpp"

namespace rheo::inline v0::mpi {

namespace {

namespace fs = std::filesystem;

constexpr char const* setting = "OMPI_MCA_btl_sm_backing_directory";

struct locked_folder {
    fs::path path;
    int descriptor = -1;

    ~locked_folder() { leave_segment_folder(); }
};

locked_folder& own_folder()
{
    static locked_folder folder;
    return folder;
}

std::string from_environment(char const* name)
{
    char const* const value = std::getenv(name);
    return value == nullptr ? std::string{} : value;
}

/// Folders of this user begin with it.
std::string prefix() { return fmt::format("rheo-segments-{}-", ::geteuid()); }

/// Names this job on this host: its name, the address of the daemon that started the rank and the namespace of process
/// numbers. A process without a launcher is a job of its own.
std::string job_name()
{
    std::error_code unknown;
    auto key = fs::read_symlink("/proc/self/ns/pid", unknown).string() + ' ' + from_environment("PMIX_NAMESPACE") + ' ' + from_environment("PMIX_SERVER_URI41");
    if (from_environment("PMIX_NAMESPACE").empty()) {
        struct stat self{};
        ::stat("/proc/self", &self);  // as old as the process: with its number it names one for ever
        key += fmt::format("{} {}.{}", ::getpid(), self.st_ctim.tv_sec, self.st_ctim.tv_nsec);
    }
    return fmt::format("{:016x}", hash_text(key));
}

bool is_same_file(struct stat const& a, struct stat const& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// Makes the folder, or takes the one that another rank has made, and locks it with the others. A descriptor, or -1.
int join(fs::path const& folder)
{
    for (int tries = 0; tries < 100; ++tries) {
        ::mkdir(folder.c_str(), 0700);
        int const descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (descriptor < 0) {
            if (errno == ENOENT) {
                continue;  // it was removed in between
            }
            return -1;
        }
        struct stat opened{};
        struct stat named{};
        if (::flock(descriptor, LOCK_SH) == 0 && ::fstat(descriptor, &opened) == 0 && opened.st_uid == ::geteuid() && ::stat(folder.c_str(), &named) == 0 &&
            is_same_file(opened, named)) {
            return descriptor;
        }
        ::close(descriptor);
        if (opened.st_uid != ::geteuid()) {
            return -1;
        }
    }
    return -1;
}

/// Removes the folder when no other process has locked it. @param descriptor of it; closed
void remove_if_last(fs::path const& folder, int descriptor) noexcept
{
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {  // when it is rejected, this process's own lock is gone as well
        std::error_code ignored;
        fs::remove_all(folder, ignored);
    }
    ::close(descriptor);
}

void remove_left_behind(fs::path const& below)
{
    std::error_code error;
    for (fs::directory_iterator entry{below, error}; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
        if (!entry->path().filename().native().starts_with(prefix())) {
            continue;
        }
        if (int const descriptor = ::open(entry->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); descriptor >= 0) {
            remove_if_last(entry->path(), descriptor);
        }
    }
}

}  // namespace

void use_own_segment_folder()
{
#if defined(OPEN_MPI)
    auto& own = own_folder();
    if (own.descriptor >= 0) {
        return;
    }
    auto const given = from_environment(setting);
    fs::path const below = given.empty() ? "/dev/shm" : given;
    if (auto const local = from_environment("OMPI_COMM_WORLD_LOCAL_RANK"); local.empty() || local == "0") {
        remove_left_behind(below);
    }
    own.path = below / (prefix() + job_name());
    own.descriptor = join(own.path);
    if (own.descriptor >= 0) {
        ::setenv(setting, own.path.c_str(), 1);
    }
#endif
}

void leave_segment_folder() noexcept
{
    if (auto& own = own_folder(); own.descriptor >= 0) {
        remove_if_last(own.path, std::exchange(own.descriptor, -1));
    }
}

}  // namespace rheo::inline v0::mpi
