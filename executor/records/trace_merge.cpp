// SPDX-License-Identifier: Apache-2.0
#include "executor/records/trace_merge.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <queue>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <range/v3/algorithm/sort.hpp>

#include "rheo/trace/chrome.hpp"
#include "rheo/trace/json_lines.hpp"

namespace rheo::inline v0 {

namespace fs = std::filesystem;

namespace {

constexpr std::streamoff merged_bytes_per_rank = std::streamoff{64} << 20;

/// A rank writes an event when it ends, so a long one stands behind shorter ones that began after it; never behind so many.
constexpr std::size_t reordered = 1000;

struct later {
    bool operator()(trace_event const& a, trace_event const& b) const { return a.start > b.start; }
};

/// trace/rank-<r>.jsonl of all ranks that have one, by rank.
std::vector<std::pair<int, fs::path>> files_of(fs::path const& folder)
{
    std::vector<std::pair<int, fs::path>> files;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator(); entry.increment(error)) {
        auto const name = entry->path().filename().string();
        constexpr std::string_view before = "rank-";
        int rank = 0;
        if (entry->path().extension() == ".jsonl" && name.starts_with(before) &&
            std::from_chars(name.data() + before.size(), name.data() + name.size(), rank).ec == std::errc{}) {
            files.emplace_back(rank, entry->path());
        }
    }
    ranges::sort(files);
    return files;
}

/// Adds the events of one file. @returns an error that names the events left out; empty when there are none
std::string add(chrome_trace_writer<>& trace, fs::path const& path)
{
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    auto const size = static_cast<std::streamoff>(file.tellg());
    auto const from = std::max<std::streamoff>(0, size - merged_bytes_per_rank);
    file.seekg(from);
    std::string line;
    if (from > 0) {
        std::getline(file, line);  // torn
    }
    std::string missing = from > 0 ? "trace.json holds the end of the run only, trace/ all of it" : "";
    std::priority_queue<trace_event, std::vector<trace_event>, later> waiting;
    auto const write_first = [&] {
        trace.add(waiting.top());
        waiting.pop();
    };
    for (int number = 1; std::getline(file, line) && !file.eof(); ++number) {  // a last line without an end is torn
        trace_event e{};
        if (auto const wrong = read_json_line(line, e); !wrong.empty()) {
            missing = fmt::format("trace.json lacks a part of '{}': line {}, {}", path.string(), number, wrong);
            break;
        }
        waiting.push(e);
        if (waiting.size() > reordered) {
            write_first();
        }
    }
    while (!waiting.empty()) {
        write_first();
    }
    return missing;
}

}  // namespace

std::string merge_traces(std::string const& folder)
{
    auto const path = folder + "/trace.json";
    auto const partial = path + ".partial";
    std::string missing;
    std::ofstream out{partial, std::ios::binary};
    chrome_trace_writer<> trace{out};
    for (auto const& [rank, file] : files_of(fs::path{folder} / "trace")) {
        if (auto message = add(trace, file); !message.empty()) {
            missing = std::move(message);
        }
    }
    trace.finish();
    out.close();
    std::error_code error;
    if (!out) {
        missing = fmt::format("'{}' cannot be written: {}", path, std::strerror(errno));
        fs::remove(partial, error);
        return missing;
    }
    fs::rename(partial, path, error);
    return error ? fmt::format("'{}' cannot be written: {}", path, error.message()) : missing;
}

}  // namespace rheo::inline v0
