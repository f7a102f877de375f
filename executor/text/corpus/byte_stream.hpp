#pragma once
// SPDX-License-Identifier: Apache-2.0

// The bytes of a file from its beginning to its end, unpacked where gzip or zstd has packed it: that is seen by its first bytes, not by its name.

#include <cstddef>
#include <memory>
#include <string>

namespace rheo::inline v0 {

class byte_stream {
public:
    /// @throws exit_error naming the file
    explicit byte_stream(std::string const& path);
    ~byte_stream();
    byte_stream(byte_stream&&) noexcept;
    byte_stream& operator=(byte_stream&&) noexcept;

    /// Appends up to `most` bytes. Returns how many; 0 at the end. @throws exit_error naming the file: it cannot be read, is damaged or cut off
    std::size_t read(std::string& to, std::size_t most);

private:
    struct source;
    struct plain_file;
    struct gzip_file;
    struct zstd_file;
    std::unique_ptr<source> source_;
};

}  // namespace rheo::inline v0
