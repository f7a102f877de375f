// SPDX-License-Identifier: Apache-2.0
#include "executor/data/file_list.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse(std::string const& message) { throw exit_error{exit_code::bad_data, "data: " + message}; }

/// The files below a folder in the order of their paths, hidden ones left out.
void list_folder(fs::path const& folder, std::vector<std::string>& out)
{
    std::error_code error;
    auto const before = out.size();
    auto entry = fs::recursive_directory_iterator(folder, error);
    while (!error && entry != fs::recursive_directory_iterator()) {
        auto const hidden = entry->path().filename().native().starts_with('.');
        auto const status = entry->status(error);
        if (error && error != std::errc::no_such_file_or_directory) {
            break;
        }
        error.clear();  // a link that leads nowhere is no file
        if (hidden && fs::is_directory(status)) {
            entry.disable_recursion_pending();
        } else if (!hidden && fs::is_regular_file(status)) {
            out.push_back(entry->path().string());
        }
        entry.increment(error);
    }
    if (error) {
        refuse(fmt::format("the folder '{}' cannot be read: {}", folder.string(), error.message()));
    }
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(before), out.end());
}

}  // namespace

std::vector<std::string> list_files(std::vector<std::string> const& paths)
{
    std::vector<std::string> files;
    for (auto const& path : paths) {
        std::error_code error;
        auto const status = fs::status(path, error);
        if (!fs::exists(status)) {
            refuse(fmt::format("'{}' does not exist", path));
        }
        if (!fs::is_directory(status)) {
            files.push_back(path);
            continue;
        }
        auto const before = files.size();
        list_folder(path, files);
        if (files.size() == before) {
            refuse(fmt::format("the folder '{}' holds no files", path));
        }
    }
    return files;
}

}  // namespace rheo::inline v0
