// SPDX-License-Identifier: Apache-2.0
#include "room.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "modes.hpp"

namespace standin {

namespace {

/// What a unique id holds.
struct address {
    std::uint64_t id;
    char path[sizeof(ncclUniqueId) - sizeof(std::uint64_t)];
};
static_assert(sizeof(address) == sizeof(ncclUniqueId));

/// The files behind ids made here, open until all have joined.
std::map<std::uint64_t, int>& made_here()
{
    static std::map<std::uint64_t, int> files;
    return files;
}

}  // namespace

char const* name_of(kind of)
{
    switch (of) {
    case kind::message: return "message";
    case kind::all_reduce: return "all_reduce";
    case kind::reduce_scatter: return "reduce_scatter";
    case kind::all_gather: return "all_gather";
    case kind::broadcast: return "broadcast";
    }
    return "unknown";
}

std::string sentence_of(description const& d)
{
    return std::string{name_of(d.what)} + " of " + std::to_string(d.bytes) + " bytes, type " + std::to_string(d.type) + ", reduction " +
           std::to_string(d.reduction) + ", root " + std::to_string(d.root);
}

ncclUniqueId room::new_id()
{
    address made{};
    auto const file = ::memfd_create("rheo-standin-nccl", MFD_CLOEXEC);
    if (file < 0 || ::getrandom(&made.id, sizeof made.id, 0) != sizeof made.id || ::pwrite(file, &made.id, sizeof made.id, 0) != sizeof made.id) {
        end_loudly(std::string{"no shared memory: "} + std::strerror(errno));
    }
    std::snprintf(made.path, sizeof made.path, "/proc/%d/fd/%d", static_cast<int>(::getpid()), file);
    made_here()[made.id] = file;
    ncclUniqueId id;
    std::memcpy(&id, &made, sizeof id);
    return id;
}

room::room(ncclUniqueId const& id, int ranks, int rank) : ranks_{ranks}, rank_{rank}
{
    address where;
    std::memcpy(&where, &id, sizeof where);
    id_ = where.id;
    auto const file = ::open(where.path, O_RDWR | O_CLOEXEC);
    std::uint64_t found = 0;
    if (file < 0 || ::pread(file, &found, sizeof found, 0) != sizeof found || found != id_) {
        if (file >= 0) {
            ::close(file);
        }
        return;
    }
    void* const mapped =
        ::ftruncate(file, static_cast<off_t>(bytes())) == 0 ? ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    ::close(file);
    if (mapped == MAP_FAILED) {
        end_loudly(std::string{"no shared memory: "} + std::strerror(errno));
    }
    door_ = static_cast<door*>(mapped);
    int others = 0;
    if (!door_->ranks.compare_exchange_strong(others, ranks) && others != ranks) {
        end_loudly("a communicator of " + std::to_string(ranks) + " ranks for one, of " + std::to_string(others) + " for another");
    }
    if (door_->pids[static_cast<std::size_t>(rank)].exchange(::getpid()) != 0) {
        end_loudly("two are rank " + std::to_string(rank) + " of a communicator");
    }
    ++door_->joined;
}

room::~room()
{
    if (door_ != nullptr) {
        ::munmap(door_, bytes());
    }
}

bool room::all_have_joined()
{
    if (door_ == nullptr || door_->joined != ranks_) {
        return false;
    }
    if (auto const mine = made_here().find(id_); mine != made_here().end()) {
        ::close(mine->second);
        made_here().erase(mine);
    }
    return true;
}

bool room::one_is_gone() const
{
    for (std::size_t k = 0; door_ != nullptr && k < static_cast<std::size_t>(ranks_); ++k) {
        if (pid_t const pid = door_->pids[k]; pid != 0 && ::kill(pid, 0) != 0 && errno == ESRCH) {
            return true;
        }
    }
    return false;
}

channel& room::between(int from, int to) const
{
    auto* const first = reinterpret_cast<channel*>(reinterpret_cast<std::byte*>(door_) + door_bytes);
    return first[from * ranks_ + to];
}

}  // namespace standin
