// SPDX-License-Identifier: Apache-2.0
#include "executor/os/mapped_copy.hpp"

#include <csetjmp>
#include <csignal>
#include <cstring>

#include <signal.h>

namespace rheo::inline v0 {

namespace {

thread_local sigjmp_buf before_the_copy;
thread_local volatile std::sig_atomic_t copies = 0;
struct sigaction others{};  // what was there before: the signal is theirs when no copy runs

void on_bus_error(int)
{
    if (copies != 0) {
        copies = 0;
        siglongjmp(before_the_copy, 1);
    }
    ::sigaction(SIGBUS, &others, nullptr);  // the access is tried again when this returns, and ends there
}

bool take_signal()
{
    struct sigaction ours{};
    ours.sa_handler = on_bus_error;
    ours.sa_flags = SA_NODEFER;  // it is left by a jump
    sigemptyset(&ours.sa_mask);
    return ::sigaction(SIGBUS, &ours, &others) == 0;
}

}  // namespace

bool copy_mapped(void* to, void const* from, std::size_t count) noexcept
{
    static bool const taken = take_signal();
    static_cast<void>(taken);
    if (sigsetjmp(before_the_copy, 0) != 0) {
        return false;
    }
    copies = 1;
    std::memcpy(to, from, count);
    copies = 0;
    return true;
}

}  // namespace rheo::inline v0
