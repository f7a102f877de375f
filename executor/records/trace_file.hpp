#pragma once
// SPDX-License-Identifier: Apache-2.0

// A trace as a file, plain or packed by gzip, in the form in which readers take its bytes.

#include <cstddef>
#include <memory>
#include <string>

namespace rheo::inline v0 {

/// Bytes of a file, unpacked where it begins as gzip does. Without zlib in the build, such a file is refused.
class trace_file {
public:
    /// @throws exit_error (bad data) when the file cannot be opened
    explicit trace_file(std::string path);

    /// Puts the next bytes there. @returns how many; 0 at the end  @throws exit_error (bad data) when the file cannot be read or is torn
    std::size_t operator()(char* to, std::size_t room);

    struct handle;

private:
    std::string path_;
    std::shared_ptr<handle> file_;
};

}  // namespace rheo::inline v0
