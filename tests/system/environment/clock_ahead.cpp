// SPDX-License-Identifier: Apache-2.0
// A host whose time of day is ahead, put in front of the C library (LD_PRELOAD): in the rank that RHEO_CLOCK_AHEAD names, the time
// of day is a day later than it is. The steady clock is as it is.
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

constexpr long ahead_s = 24L * 60 * 60;

bool is_ahead()
{
    char const* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    char const* const wanted = std::getenv("RHEO_CLOCK_AHEAD");
    return rank != nullptr && wanted != nullptr && std::strcmp(rank, wanted) == 0;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, struct timespec* time)
{
    auto const code = ::syscall(SYS_clock_gettime, clock, time);
    if (code == 0 && clock == CLOCK_REALTIME && is_ahead()) {
        time->tv_sec += ahead_s;
    }
    return static_cast<int>(code);
}

extern "C" int gettimeofday(struct timeval* time, void*)
{
    struct timespec now{};
    auto const code = clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return code;
}

extern "C" time_t time(time_t* where)
{
    struct timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (where != nullptr) {
        *where = now.tv_sec;
    }
    return now.tv_sec;
}
