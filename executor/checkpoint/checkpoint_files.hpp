#pragma once
// SPDX-License-Identifier: Apache-2.0

// Files whose every failure is seen: short reads and writes, full disks, missing permissions, errors that come only with fsync or
// close. What std::fstream reports of these is too little for checkpoints.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace rheo::inline v0 {

/// A regular file that is open for reading.
class input_file {
public:
    explicit input_file(std::filesystem::path path);  ///< @throws exit_error
    ~input_file();
    input_file(input_file const&) = delete;
    input_file& operator=(input_file const&) = delete;

    std::int64_t bytes() const { return bytes_; }
    /// All of the bytes from `first` on, or else exit_error.
    void read(std::int64_t first, std::span<std::byte> into) const;
    std::string read(std::int64_t first, std::int64_t count) const;

private:
    std::filesystem::path path_;
    int descriptor_ = -1;
    std::int64_t bytes_ = 0;
};

/// A file that is created or replaced. What was not synced and closed is no file that one can count on.
class output_file {
public:
    explicit output_file(std::filesystem::path path);  ///< @throws exit_error
    ~output_file();
    output_file(output_file const&) = delete;
    output_file& operator=(output_file const&) = delete;

    void write(std::span<std::byte const> bytes);  ///< @throws exit_error
    void write(std::string_view text);
    void sync_and_close();  ///< @throws exit_error

private:
    std::filesystem::path path_;
    int descriptor_ = -1;
};

/// The whole file. @throws exit_error: also when it has more bytes than `most`
std::string read_file(std::filesystem::path const& path, std::int64_t most);

/// Replaces the whole file, on disk when it returns. @param half called when half of it is written  @throws exit_error
void write_file(std::filesystem::path const& path, std::string_view text, std::function<void()> const& half = {});

/// What is in the folder under which name is on disk when it returns. @throws exit_error
void sync_folder(std::filesystem::path const& folder);

/// @throws exit_error
void rename_file(std::filesystem::path const& from, std::filesystem::path const& to);

/// Makes a folder whose parent is there; one that exists is fine. @throws exit_error
void make_folder(std::filesystem::path const& folder);

/// Makes the first free `before-<k>` of a run folder, for what is set aside. @returns it. @throws exit_error
std::filesystem::path make_aside(std::filesystem::path const& run_folder);

}  // namespace rheo::inline v0
