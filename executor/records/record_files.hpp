#pragma once
// SPDX-License-Identifier: Apache-2.0

// How the files of a run folder are written: appended to in whole blocks, or replaced as a whole.

#include <ios>
#include <string>
#include <string_view>
#include <utility>

namespace rheo::inline v0 {

/// A file that is only appended to, a whole block at a time; several processes may do so one after the other.
class appended_file {
public:
    appended_file() = default;
    /// @throws exit_error
    explicit appended_file(std::string path);
    appended_file(appended_file&& other) noexcept : path_{std::move(other.path_)}, descriptor_{std::exchange(other.descriptor_, -1)} {}
    appended_file& operator=(appended_file&& other) noexcept
    {
        std::swap(path_, other.path_);
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }
    ~appended_file() { close(); }

    explicit operator bool() const { return descriptor_ >= 0; }

    /// What cannot be written is reported once and given up: a full disk is no reason to end a training.
    void append(std::string_view block);

private:
    void close();

    std::string path_;
    int descriptor_ = -1;
};

/// The file's last bytes, from the beginning of a line on; empty when there is none.
std::string end_of_file(std::string const& path, std::streamoff most);

/// Makes a folder with those above it, if it is not there. @throws exit_error
void make_record_folder(std::string const& path);

}  // namespace rheo::inline v0
