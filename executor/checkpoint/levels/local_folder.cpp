// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/levels/local_folder.hpp"

#include <algorithm>
#include <charconv>
#include <random>
#include <string_view>
#include <system_error>

#include <sys/vfs.h>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/part_files.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr char const* identity_file = "run-id";
constexpr std::int64_t most_text_bytes = std::int64_t{1} << 30;

/// What begins and ends with these, as a number between; none: it is called otherwise.
template <class Number>
std::optional<Number> number_between(std::string_view name, std::string_view before, std::string_view after, int base = 10)
{
    Number number{};
    if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after)) {
        return std::nullopt;
    }
    auto const text = name.substr(before.size(), name.size() - before.size() - after.size());
    auto const [end, bad] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    return bad == std::errc{} && end == text.data() + text.size() ? std::optional{number} : std::nullopt;
}

struct step_folder_name {
    step_id step;
    generation_id generation;
};

std::optional<step_folder_name> step_folder_of(std::string const& name)
{
    auto const dot = name.rfind('.');
    if (dot == std::string::npos) {
        return std::nullopt;
    }
    auto const step = number_between<std::int64_t>(std::string_view{name}.substr(0, dot), "step-", "");
    auto const generation = number_between<std::int32_t>(std::string_view{name}.substr(dot), ".", "");
    return step && generation ? std::optional{step_folder_name{{*step}, {*generation}}} : std::nullopt;
}

/// Of what is in a folder, if it is there.
std::vector<std::string> names_in(fs::path const& folder)
{
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry{folder, error}; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
        names.push_back(entry->path().filename().string());
    }
    return names;
}

/// File systems that all nodes share, by the number that statfs(2) gives.
struct shared_file_system {
    std::int64_t number;
    std::string_view name;
};
constexpr shared_file_system shared_file_systems[] = {{0x6969, "NFS"},        {0x0BD00BD0, "Lustre"},  {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"},
                                                      {0x00C36400, "CephFS"}, {0xFF534D42, "CIFS"},    {0xFE534D42, "SMB"},  {0x517B, "SMB"},
                                                      {0xAAD7AAEA, "PanFS"},  {0x20030528, "OrangeFS"}};

}  // namespace

run_identity identity_of(fs::path const& run_folder)
{
    std::error_code error;
    if (!fs::exists(run_folder / identity_file, error)) {
        return {};
    }
    auto const text = read_file(run_folder / identity_file, 64);
    return {number_between<std::uint64_t>(text, "", "\n", 16).value_or(0)};
}

run_identity give_identity(fs::path const& run_folder)
{
    std::random_device random;
    run_identity const made{(std::uint64_t{random()} << 32) | random() | 1U};
    write_file(run_folder / identity_file, fmt::format("{:016x}\n", made.value));
    sync_folder(run_folder);
    return made;
}

fs::path local_folder(std::string const& pattern, int node, run_identity run)
{
    constexpr std::string_view place = "{node}";
    auto path = pattern;
    for (auto at = path.find(place); at != std::string::npos; at = path.find(place)) {
        path.replace(at, place.size(), fmt::format("{}", node));
    }
    return fs::path{path} / fmt::format("{:016x}", run.value);
}

fs::path local_step_folder(fs::path const& local, step_id step, generation_id generation)
{
    return local / fmt::format("step-{}.{}", step.value, generation.value);
}

std::vector<local_part> local_parts(fs::path const& local)
{
    std::vector<local_part> parts;
    for (auto const& name : names_in(local)) {
        auto const folder = step_folder_of(name);
        for (auto const& file : folder ? names_in(local / name) : std::vector<std::string>{}) {
            if (auto const origin = number_between<std::int32_t>(file, "part-", ".json")) {
                parts.push_back({folder->step, folder->generation, {*origin}});
            }
        }
    }
    std::sort(parts.begin(), parts.end());
    return parts;
}

growing_part::file_sizes sizes_in(fs::path const& step_folder, rank_id origin)
{
    return {input_file{step_folder / model_file(origin)}.bytes(), input_file{step_folder / state_file(origin)}.bytes()};
}

part_texts texts_in(fs::path const& step_folder, rank_id origin)
{
    return {read_file(step_folder / about_file(origin), most_text_bytes), read_file(step_folder / part_file(origin), most_text_bytes)};
}

void drop_local_before(fs::path const& local, step_id step)
{
    for (auto const& name : names_in(local)) {
        if (auto const folder = step_folder_of(name); folder && folder->step < step) {
            std::error_code ignored;
            for (auto const& file : names_in(local / name)) {  // a part whose manifest is gone is none
                if (file.starts_with("part-")) {
                    fs::remove(local / name / file, ignored);
                }
            }
            fs::remove_all(local / name, ignored);
        }
    }
}

std::string no_local_folder(fs::path const& local, std::int64_t needed)
{
    using file_system = struct statfs;
    file_system about{};
    if (::statfs(local.c_str(), &about) != 0) {
        return fmt::format("'{}' cannot be looked at", local.string());
    }
    for (auto const& shared : shared_file_systems) {
        if (static_cast<std::int64_t>(about.f_type) == shared.number) {
            return fmt::format("'{}' is on {}, which nodes share: expected a file system of the node's own", local.string(), shared.name);
        }
    }
    auto const free = static_cast<std::int64_t>(about.f_bavail) * static_cast<std::int64_t>(about.f_bsize);
    if (free < needed) {
        return fmt::format("'{}' has {} MiB free: expected {} MiB, for two checkpoints of this node's ranks and the copies that it keeps", local.string(),
                           free >> 20, (needed + (1 << 20) - 1) >> 20);
    }
    return {};
}

}  // namespace rheo::inline v0
