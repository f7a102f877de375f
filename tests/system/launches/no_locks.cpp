// SPDX-License-Identifier: Apache-2.0
// A stand-in for a file system without locks, put in front of the C library (LD_PRELOAD): every call that would lock an open file
// ends with the error that RHEO_NO_LOCKS says by its number.
#include <cerrno>
#include <cstdarg>
#include <cstdlib>

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int fcntl(int descriptor, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    void* const argument = va_arg(arguments, void*);
    va_end(arguments);
    char const* const error = std::getenv("RHEO_NO_LOCKS");
    if (error != nullptr && (command == F_OFD_SETLK || command == F_OFD_SETLKW)) {
        errno = std::atoi(error);
        return -1;
    }
    return static_cast<int>(::syscall(SYS_fcntl, descriptor, command, argument));
}
