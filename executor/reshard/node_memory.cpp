// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/node_memory.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rheo::inline v0::detail {

namespace {

/// What others need to find the memory of a rank. The mark is behind the memory, too: another process of that number would not have it.
struct lent {
    std::int64_t rank = -1;
    std::int64_t process = -1;
    std::int64_t file = -1;
    std::int64_t bytes = 0;
    std::int64_t mark = 0;
};
constexpr int lent_words = sizeof(lent) / sizeof(std::int64_t);

using file_status = struct stat;

struct open_file {
    explicit open_file(int opened) : number{opened} {}
    open_file(open_file const&) = delete;
    open_file& operator=(open_file const&) = delete;
    ~open_file()
    {
        if (number >= 0) {
            ::close(number);
        }
    }
    int number;
};

std::byte* map(int file, std::size_t bytes, int protection)
{
    auto* const data = ::mmap(nullptr, bytes, protection, MAP_SHARED, file, 0);
    return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

std::size_t with_mark(std::size_t bytes) { return bytes + sizeof(std::int64_t); }

/// Null: it is not the memory of that rank, or not to be had.
std::byte* map_other(lent const& other)
{
    open_file const file{::open(("/proc/" + std::to_string(other.process) + "/fd/" + std::to_string(other.file)).c_str(), O_RDONLY | O_CLOEXEC)};
    auto const all = with_mark(static_cast<std::size_t>(other.bytes));
    file_status about{};
    if (file.number < 0 || ::fstat(file.number, &about) != 0 || about.st_size != static_cast<off_t>(all)) {
        return nullptr;
    }
    auto* const data = map(file.number, all, PROT_READ);
    std::int64_t mark = 0;
    if (data != nullptr) {
        std::memcpy(&mark, data + other.bytes, sizeof mark);
        if (mark != other.mark) {
            ::munmap(data, all);
            return nullptr;
        }
    }
    return data;
}

}  // namespace

node_memory::node_memory(mpi::communicator const& comm, std::size_t bytes)
    : bytes_{bytes}, mapped_(static_cast<std::size_t>(comm.size())), readers_(mapped_.size())
{
    MPI_Comm split = MPI_COMM_NULL;
    mpi::check(MPI_Comm_split_type(comm.handle(), MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &split), "MPI_Comm_split_type");
    mpi::communicator const node{split};

    open_file const file{bytes == 0 ? -1 : ::memfd_create("rheo::reshard", MFD_CLOEXEC)};
    lent own{.rank = comm.rank(), .process = ::getpid(), .file = file.number, .bytes = static_cast<std::int64_t>(bytes)};
    if (file.number >= 0 && ::ftruncate(file.number, static_cast<off_t>(with_mark(bytes))) == 0) {
        mine_ = map(file.number, with_mark(bytes), PROT_READ | PROT_WRITE);
    }
    if (mine_ != nullptr) {
        own.mark = static_cast<std::int64_t>(std::random_device{}()) << 31U | 1;
        std::memcpy(mine_ + bytes, &own.mark, sizeof own.mark);
    }
    std::vector<lent> all(static_cast<std::size_t>(node.size()));
    mpi::check(MPI_Allgather(&own, lent_words, MPI_INT64_T, all.data(), lent_words, MPI_INT64_T, node.handle()), "MPI_Allgather");
    bool works = bytes == 0 || mine_ != nullptr;
    for (auto const& other : all) {
        readers_[static_cast<std::size_t>(other.rank)] = other.rank != own.rank;
        if (other.rank != own.rank && other.bytes > 0) {
            auto& there = mapped_[static_cast<std::size_t>(other.rank)];
            there = {other.mark == 0 ? nullptr : map_other(other), with_mark(static_cast<std::size_t>(other.bytes))};
            works = works && there.data != nullptr;
        }
    }
    int const mine = works ? 1 : 0;
    int everyone = 0;
    mpi::check(MPI_Allreduce(&mine, &everyone, 1, MPI_INT, MPI_MIN, node.handle()), "MPI_Allreduce");
    if (everyone == 0) {  // one that cannot reach another one's would wait for messages that are not sent
        unmap();
    }
}

node_memory::~node_memory() { unmap(); }

void node_memory::unmap()
{
    if (mine_ != nullptr) {
        ::munmap(std::exchange(mine_, nullptr), with_mark(bytes_));
    }
    for (auto& each : mapped_) {
        if (each.data != nullptr) {
            ::munmap(std::exchange(each.data, nullptr), each.bytes);
        }
    }
}

}  // namespace rheo::inline v0::detail
