// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/checkpoint_publish.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_entry.hpp"
#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/checkpoint_manifest.hpp"
#include "executor/checkpoint/part_files.hpp"
#include "executor/config/strict_json.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/version.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_part_bytes = std::int64_t{1} << 30;

/// What the parts on disk say, as one manifest; reading it back proves that they make a whole.
std::string make_manifest(fs::path const& folder, checkpoint_publication const& publication)
{
    checkpoint_manifest manifest{
        RHEO_VERSION, publication.step, publication.generation, publication.tensors, publication.fingerprint, publication.config, publication.data_digest, {}};
    for (auto const rank : publication.parts) {
        auto const path = folder / part_file(rank);
        auto part = parse_part(read_file(path, most_part_bytes), path.string());
        if (part.rank != rank || part.step != publication.step || part.generation != publication.generation) {
            throw exit_error{exit_code::bad_data,
                             fmt::format("'{}' is of rank {}, step {}, generation {}", path.string(), part.rank.value, part.step.value, part.generation.value)};
        }
        for (auto& file : part.files) {
            manifest.files.push_back(std::move(file));
        }
    }
    auto text = format_manifest(manifest);
    (void)parse_manifest(text, (folder / "manifest.json").string());
    return text;
}

/// A checkpoint of the same step that is there already: kept when it is the same and right, else set aside. Bytes that cannot be read here
/// may be right elsewhere: a newer version's, or those behind a disk that failed for a moment. @returns it stays
bool same_is_there(fs::path const& run_folder, fs::path const& target, step_id step, fs::path const& made)
{
    std::error_code error;
    if (!fs::exists(target, error)) {
        return false;
    }
    checkpoint const written{made};
    try {
        checkpoint const there{target};
        there.verify();
        if (there.manifest().digest() == written.manifest().digest()) {
            return true;
        }
    } catch (exit_error const&) {
    }
    set_checkpoint_aside(run_folder, step);
    return false;
}

/// Keeps `keep` checkpoints up to this step. @returns why one could not be removed
std::string remove_older(fs::path const& run_folder, step_id newest, int keep, std::function<void(checkpoint_point)> const& at)
{
    std::vector<step_id> steps;
    try {
        steps = checkpoint_steps(run_folder);
    } catch (exit_error const& error) {
        return error.what();
    }
    std::erase_if(steps, [&](step_id s) {
        std::error_code error;
        return s > newest || !fs::exists(checkpoint_folder(run_folder, s) / "manifest.json", error);
    });
    std::string failed;
    for (std::size_t i = 0; keep > 0 && i + static_cast<std::size_t>(keep) < steps.size(); ++i) {
        try {
            remove_checkpoint(run_folder, steps[i], [&] { at(checkpoint_point::removing); });
        } catch (exit_error const& error) {
            failed = error.what();
        }
    }
    return failed;
}

}  // namespace

fs::path unfinished_folder(fs::path const& run_folder, step_id step, generation_id generation)
{
    return run_folder / fmt::format(".step-{}.{}", step.value, generation.value);
}

void remove_unfinished(fs::path const& run_folder, step_id step, generation_id generation)
{
    std::error_code ignored;
    fs::remove_all(unfinished_folder(run_folder, step, generation), ignored);
}

std::string publish_parts(fs::path const& run_folder, checkpoint_publication const& publication, std::function<void(checkpoint_point)> const& at)
{
    auto const folder = unfinished_folder(run_folder, publication.step, publication.generation);
    auto const target = checkpoint_folder(run_folder, publication.step);
    write_file(folder / "manifest.json", make_manifest(folder, publication), [&] { at(checkpoint_point::manifest_torn); });
    for (auto const rank : publication.parts) {
        std::error_code ignored;
        fs::remove(folder / part_file(rank), ignored);
    }
    sync_folder(folder);
    at(checkpoint_point::manifest);
    std::error_code ignored;
    if (same_is_there(run_folder, target, publication.step, folder)) {
        fs::remove_all(folder, ignored);
    } else {
        rename_file(folder, target);
    }
    at(checkpoint_point::renamed);
    sync_folder(run_folder);
    at(checkpoint_point::published);
    drop_unfinished_checkpoints(run_folder, publication.generation);
    return remove_older(run_folder, publication.step, publication.keep_last, at);
}

void remove_checkpoint(fs::path const& run_folder, step_id step, std::function<void()> const& hidden)
{
    auto const folder = run_folder / fmt::format(".step-{}.removed", step.value);
    std::error_code error;
    fs::remove_all(folder, error);
    rename_file(checkpoint_folder(run_folder, step), folder);
    if (hidden) {
        hidden();
    }
    fs::remove_all(folder, error);
}

void drop_unfinished_checkpoints(fs::path const& run_folder, generation_id before)
{
    std::vector<fs::path> old;
    std::error_code error;
    for (fs::directory_iterator entry{run_folder, error}; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
        auto const name = entry->path().filename().string();
        auto const dot = name.rfind('.');
        if (!name.starts_with(".step-") || dot == 0) {
            continue;
        }
        generation_id generation;
        auto const [end, bad] = std::from_chars(name.data() + dot + 1, name.data() + name.size(), generation.value);
        if (bad != std::errc{} || end != name.data() + name.size() || generation < before) {  // no number: it was being removed
            old.push_back(entry->path());
        }
    }
    for (auto const& folder : old) {
        fs::remove_all(folder, error);
    }
}

}  // namespace rheo::inline v0
