// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/manage/list.hpp"

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/levels/local_folder.hpp"
#include "executor/config/toml.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view unfinished_prefix = ".step-";
constexpr std::string_view aside_prefix = "before-";

bytes size_of_folder(fs::path const& folder)
{
    bytes sum;
    std::error_code error;
    for (fs::recursive_directory_iterator entry{folder, error}; !error && entry != fs::recursive_directory_iterator{}; entry.increment(error)) {
        std::error_code gone;
        auto const size = entry->is_regular_file(gone) ? entry->file_size(gone) : 0;
        sum += bytes{gone ? 0 : static_cast<std::int64_t>(size)};
    }
    return sum;
}

listed_checkpoint look_at(fs::path const& folder, checkpoint_place place)
{
    listed_checkpoint one{.folder = folder, .place = place, .step = step_of(folder), .size = size_of_folder(folder)};
    std::error_code ignored;
    one.written = fs::last_write_time(place == checkpoint_place::unfinished ? folder : folder / "manifest.json", ignored);
    try {
        if (place != checkpoint_place::unfinished) {
            checkpoint const opened{folder};
            one.files = static_cast<int>(opened.manifest().files.size());
            one.digest = opened.manifest().digest();
            one.version = opened.manifest().version;
        }
    } catch (exit_error const& error) {
        one.problem = error.what();
    }
    return one;
}

/// The step of `.step-N.G`.
std::optional<step_id> unfinished_step(std::string_view name)
{
    step_id step;
    name.remove_prefix(unfinished_prefix.size());
    auto const [end, bad] = std::from_chars(name.data(), name.data() + name.size(), step.value);
    return bad == std::errc{} ? std::optional{step} : std::nullopt;
}

void add_checkpoints(fs::path const& folder, checkpoint_place place, std::vector<listed_checkpoint>& all)
{
    std::error_code error;
    for (fs::directory_iterator entry{folder, error}; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
        auto const name = entry->path().filename().string();
        std::error_code gone;
        if (!entry->is_directory(gone)) {
            continue;
        }
        if (step_of(entry->path())) {
            all.push_back(look_at(entry->path(), place));
        } else if (place == checkpoint_place::published && name.starts_with(unfinished_prefix)) {
            all.push_back(look_at(entry->path(), checkpoint_place::unfinished));
            all.back().step = unfinished_step(name);
        } else if (place == checkpoint_place::published && name.starts_with(aside_prefix)) {
            add_checkpoints(entry->path(), checkpoint_place::set_aside, all);
        }
    }
    if (error) {
        throw exit_error{exit_code::bad_data, fmt::format("run folder '{}': its checkpoints cannot be listed: {}", folder.string(), error.message())};
    }
}

}  // namespace

std::vector<listed_checkpoint> list_checkpoints(fs::path const& run_folder)
{
    std::vector<listed_checkpoint> all;
    add_checkpoints(run_folder, checkpoint_place::published, all);
    std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return std::tie(a.place, a.step, a.folder) < std::tie(b.place, b.step, b.folder); });
    return all;
}

std::vector<listed_local> list_local_checkpoints(fs::path const& run_folder)
{
    std::vector<listed_local> all;
    std::error_code none;
    auto const run = identity_of(run_folder);
    if (run == run_identity{} || !fs::exists(run_folder / "config.toml", none)) {
        return all;
    }
    auto const config = read_config_file((run_folder / "config.toml").string()).config;
    auto const& pattern = config.checkpoint.local;
    std::set<fs::path> folders;  // one for all nodes, or each with its own
    for (int rank = 0; !pattern.empty() && fs::exists(run_folder / "ranks" / fmt::format("{}.json", rank), none); ++rank) {
        folders.insert(local_folder(pattern, rank / config.plan.node_size, run));
    }
    for (auto const& local : folders) {
        for (auto const& part : local_parts(local)) {
            auto const folder = local_step_folder(local, part.step, part.generation);
            if (all.empty() || all.back().folder != folder) {
                all.push_back({folder, part.step, part.generation, {}, size_of_folder(folder)});
            }
            all.back().parts.push_back(part.origin);
        }
    }
    return all;
}

}  // namespace rheo::inline v0
