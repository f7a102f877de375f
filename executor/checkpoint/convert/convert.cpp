// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/convert/convert.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include <sys/stat.h>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/checkpoint_manifest.hpp"
#include "executor/checkpoint/convert/distributed_checkpoint.hpp"
#include "executor/checkpoint/convert/file_layout.hpp"
#include "executor/checkpoint/convert/target_files.hpp"
#include "executor/checkpoint/convert/value_reader.hpp"
#include "executor/config/strict_json.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/verify_reshard.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/version.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_boxes = 4096;  ///< of one tensor's role, that a manifest has

[[noreturn]] void refuse(std::string const& reason) { throw exit_error{exit_code::usage, reason}; }

/// A folder under a name that no reader takes for a checkpoint, gone unless it got its own name.
class unfinished_folder {
public:
    explicit unfinished_folder(fs::path const& out)
    {
        std::error_code error;
        auto const parent = out.has_parent_path() ? out.parent_path() : fs::path{"."};
        fs::create_directories(parent, error);
        for (int k = 1;; ++k) {  // another conversion may be at work, or have been interrupted
            path_ = parent / fmt::format(".{}.convert-{}", out.filename().string(), k);
            if (::mkdir(path_.c_str(), 0777) == 0) {
                return;
            }
            if (errno != EEXIST) {
                throw exit_error{exit_code::environment, fmt::format("'{}' cannot be made: {}", path_.string(), std::strerror(errno))};
            }
        }
    }
    ~unfinished_folder()
    {
        std::error_code ignored;
        if (!path_.empty()) {
            fs::remove_all(path_, ignored);
        }
    }
    unfinished_folder(unfinished_folder const&) = delete;
    unfinished_folder& operator=(unfinished_folder const&) = delete;

    fs::path const& path() const { return path_; }
    void publish(fs::path const& out)
    {
        sync_folder(path_);
        rename_file(path_, out);
        path_.clear();
        sync_folder(out.has_parent_path() ? out.parent_path() : fs::path{"."});
    }

private:
    fs::path path_;
};

/// A folder's path without what is behind its name.
fs::path name_of_folder(fs::path const& path) { return path.has_filename() ? path : path.parent_path(); }

void check_name(conversion const& request, fs::path const& out)
{
    std::error_code error;
    if (fs::exists(fs::symlink_status(out, error))) {
        refuse(fmt::format("'{}' is there already; name a folder that is not", out.string()));
    }
    auto const step = step_of(out);
    if (request.form == stored_form::checkpoint && step && *step != request.from.about->step) {
        refuse(fmt::format("'{}' is the name of step {}, but the state is of step {}", out.string(), step->value, request.from.about->step.value));
    }
}

void check_sizes(array_layout const& dealt, conversion const& request)
{
    if (auto const least = std::max(longest_row(dealt), longest_row(layout_of(request.from))); request.memory < least) {
        refuse(fmt::format("the memory limit is {} bytes, but the longest row that is copied has {}; allow that much", request.memory.count, least.count));
    }
    std::map<std::pair<tensor_id, tensor_role>, std::size_t> boxes;
    for (auto const& file : target_files(dealt, request.form)) {
        for (auto const& entry : file.entries) {
            if (++boxes[{entry.tensor, entry.role}] > most_boxes && request.form == stored_form::checkpoint) {
                refuse(fmt::format("the layout cuts tensor \"{}\" into more than {} boxes, the most that a manifest has of one",
                                   dealt.tensors[at(entry.tensor)].name.view(), most_boxes));
            }
        }
    }
}

/// From files to files. @param to its ranks come behind those of `from`
reshard_plan plan_between(array_layout const& from, array_layout const& to)
{
    auto const plan = plan_reshard({.from = from, .to = to});
    if (!plan) {
        throw exit_error{exit_code::bad_data, fmt::format("the state cannot be written in this layout: {}", plan.error())};
    }
    if (auto const found = verify(*plan, from, to)) {
        throw exit_error{exit_code::environment, fmt::format("the plan of the conversion is wrong: {}", describe(found).view())};
    }
    return *plan;
}

array_layout with_ranks_behind(array_layout layout, std::size_t files)
{
    for (auto& place : layout.places) {
        place.ranks.front().value += static_cast<std::int32_t>(files);
    }
    return layout;
}

/// Ranks numbered from zero: those of a layout may be any, and files come before them.
array_layout with_places_as_ranks(array_layout layout)
{
    for (std::size_t p = 0; p < layout.places.size(); ++p) {
        layout.places[p].ranks.front() = rank_id{static_cast<std::int32_t>(p)};
    }
    return layout;
}

/// Writes one file. @param rank of the plan  @returns what a manifest says about it
checkpoint_file write_file(fs::path const& folder, target_file const& file, rank_id rank, conversion const& request, value_reader& reader)
{
    std::vector<safetensors_entry> entries;
    auto const header = header_of(file, request.from, request.form, entries);
    output_file out{folder / file.name};
    out.write(header);
    checkpoint_file about{file.name, static_cast<std::int64_t>(header.size()) + (entries.empty() ? 0 : entries.back().end), digest_of_bytes(header), {}};
    for (auto const& entry : file.entries) {
        auto const digest = reader.read(rank, entry.tensor, entry.role, entry.box, [&](std::span<std::byte const> values) { out.write(values); });
        auto const box = request.form == stored_form::checkpoint ? to_index_box(entry.box) : index_box{};
        about.entries.push_back({std::string{request.from.tensors[at(entry.tensor)].about.name.view()}, entry.role, box, digest});
    }
    out.sync_and_close();
    return about;
}

std::vector<checkpoint_file> write_files(fs::path const& folder, array_layout const& dealt, conversion const& request)
{
    auto const from = layout_of(request.from);
    auto const plan = plan_between(from, with_ranks_behind(with_places_as_ranks(dealt), request.from.files.size()));
    value_reader reader{request.from, plan, request.memory};
    std::map<rank_id, rank_id> in_plan;
    for (auto const& place : dealt.places) {
        in_plan.emplace(place.ranks.front(), rank_id{static_cast<std::int32_t>(request.from.files.size() + in_plan.size())});
    }
    std::vector<checkpoint_file> files;
    for (auto const& file : target_files(dealt, request.form)) {
        files.push_back(write_file(folder, file, in_plan.at(file.rank), request, reader));
    }
    reader.check_digests();
    return files;
}

void write_text(fs::path const& path, std::string const& text)
{
    output_file out{path};
    out.write(text);
    out.sync_and_close();
}

/// The digest of the values in a folder, every byte read from there.
state_digest digest_on_disk(fs::path const& folder, conversion const& request)
{
    auto state = request.form == stored_form::checkpoint ? stored_in(checkpoint{folder}) : read_distributed_checkpoint(folder);
    if (request.form == stored_form::distributed && request.from.about) {
        state = named_like(state, *request.from.about);
    }
    auto const there = layout_of(state);
    auto const plan = plan_between(there, with_ranks_behind(there, state.files.size()));
    value_reader reader{state, plan, request.memory};
    state_digest sum;
    for (auto const& piece : state.pieces) {
        rank_id const rank{static_cast<std::int32_t>(state.files.size() + piece.file)};
        sum += reader.read(rank, piece.tensor, piece.role, piece.box, [](std::span<std::byte const>) {});
    }
    reader.check_digests();
    return sum;
}

}  // namespace

converted convert(conversion const& request)
{
    auto const out = name_of_folder(request.out);
    check_name(request, out);
    auto const dealt = deal_parts(request.layout);
    check_sizes(dealt, request);
    unfinished_folder folder{out};
    auto files = write_files(folder.path(), dealt, request);
    converted done{.files = files.size(), .boxes = 0, .size = {0}, .digest = {}};
    state_digest values;
    for (auto const& file : files) {
        done.boxes += file.entries.size();
        done.size += bytes{file.bytes};
        for (auto const& entry : file.entries) {
            values += entry.digest;
        }
    }
    done.digest = values;
    if (request.from.about) {
        auto about = *request.from.about;
        done.digest += about.digest();  // without files: of the scales
        done.is_as_said = !request.said || *request.said == done.digest;
        about.version = RHEO_VERSION;
        if (!done.is_as_said) {
            about.fingerprint.clear();
        }
        if (request.form == stored_form::checkpoint) {
            about.files = std::move(files);
            write_text(folder.path() / "manifest.json", format_manifest(about));
        } else {
            write_text(folder.path() / state_file_name, format_state({about, done.digest}));
        }
    }
    if (digest_on_disk(folder.path(), request) != values) {
        throw exit_error{exit_code::environment, fmt::format("'{}' reads otherwise than it was written: its disk is not sound", folder.path().string())};
    }
    folder.publish(out);
    return done;
}

}  // namespace rheo::inline v0
