// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/checkpoint_publish.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_entry.hpp"
#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/checkpoint_manifest.hpp"
#include "executor/checkpoint/huggingface.hpp"
#include "executor/checkpoint/safetensors.hpp"
#include "executor/config/strict_json.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/version.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t piece_bytes = std::size_t{4} << 20;
constexpr std::int64_t most_part_bytes = std::int64_t{1} << 30;

std::vector<float> const& values_of(tensor_snapshot const& tensor, tensor_role role)
{
    return role == tensor_role::parameter      ? tensor.values.parameter
           : role == tensor_role::first_moment ? tensor.values.first_moment
                                               : tensor.values.second_moment;
}

/// The values of a box, row by row. @param room for what does not lie so
std::span<float const> values_of(checkpoint_part const& part, tensor_snapshot const& tensor, tensor_role role, std::vector<float>& room)
{
    if (!tensor.beside) {
        return values_of(tensor, role);
    }
    auto const& place = *tensor.beside;
    auto const moment = role == tensor_role::parameter ? 0U : role == tensor_role::first_moment ? 1U : 2U;
    auto const all = part.copies->array(place.array + moment);
    auto const width = tensor.box.column_end - tensor.box.column_begin;
    if (width == place.row) {
        return all.subspan(static_cast<std::size_t>(place.first), static_cast<std::size_t>(elements(tensor.box)));
    }
    room.clear();
    room.reserve(static_cast<std::size_t>(elements(tensor.box)));
    for (std::int64_t row = 0; row < tensor.box.row_end - tensor.box.row_begin; ++row) {
        auto const from = all.begin() + place.first + row * place.row;
        room.insert(room.end(), from, from + width);
    }
    return room;
}

/// One file with these roles of all tensors of the part.
struct part_file_layout {
    checkpoint_file about;
    std::vector<tensor_snapshot const*> boxes;  ///< of each entry
    std::string header;
};

part_file_layout layout_of(std::string name, checkpoint_part const& part, std::vector<tensor_role> const& roles)
{
    part_file_layout file{{std::move(name), 0, {}, {}}, {}, {}};
    std::vector<safetensors_entry> entries;
    for (auto const role : roles) {
        for (auto const& tensor : part.tensors) {
            checkpoint_entry entry{tensor.name, role, tensor.box, {}};
            tensor_shape const of_box{tensor.box.row_end - tensor.box.row_begin, tensor.box.column_end - tensor.box.column_begin};
            entries.push_back({entry_name(entry, tensor.shape), "F32", huggingface_shape(tensor.name, of_box), 0, 0});
            file.boxes.push_back(&tensor);
            file.about.entries.push_back(std::move(entry));
            file.about.bytes += elements(tensor.box) * std::int64_t{sizeof(float)};
        }
    }
    file.header = format_safetensors(entries);
    file.about.header = digest_of_bytes(file.header);
    file.about.bytes += std::ssize(file.header);
    return file;
}

part_file_layout weights_of(checkpoint_part const& part) { return layout_of(model_file(part.rank), part, {tensor_role::parameter}); }
part_file_layout moments_of(checkpoint_part const& part)
{
    return layout_of(state_file(part.rank), part, {tensor_role::first_moment, tensor_role::second_moment});
}

/// Digests are made on the way, tensor by tensor. @param torn called when half of it is written  @param grown called with the bytes that are written
void write_tensors(output_file& out, checkpoint_part const& part, part_file_layout& file, std::function<void()> const& torn,
                   std::function<void()> const& proceed, std::function<void(std::int64_t)> const& grown)
{
    auto const total = static_cast<std::size_t>(file.about.bytes);
    out.write(file.header);
    std::size_t done = file.header.size();
    bool half = false;
    std::vector<float> room;
    for (std::size_t e = 0; e < file.boxes.size(); ++e) {
        proceed();
        auto& entry = file.about.entries[e];
        auto const values = values_of(part, *file.boxes[e], entry.role, room);
        entry.digest = digest_of_box(entry, file.boxes[e]->shape, values);
        for (auto rest = std::as_bytes(values); !rest.empty();) {
            if (!half && done >= total / 2) {
                half = true;
                torn();
            }
            auto const until_half = half || total / 2 <= done ? piece_bytes : total / 2 - done;
            auto const count = std::min({rest.size(), piece_bytes, until_half});
            proceed();
            out.write(rest.first(count));
            rest = rest.subspan(count);
            done += count;
            grown(static_cast<std::int64_t>(done));
        }
    }
}

/// Opens a file in the folder, which another rank that gives up may just have removed, empty as it was.
std::unique_ptr<output_file> open_in(fs::path const& folder, std::string const& name)
{
    for (int tries = 0;; ++tries) {
        make_folder(folder);
        try {
            return std::make_unique<output_file>(folder / name);
        } catch (exit_error const&) {
            std::error_code error;
            if (tries == 100 || fs::exists(folder, error)) {
                throw;
            }
        }
    }
}

void write_text(fs::path const& path, std::string const& text, std::function<void()> const& torn)
{
    output_file out{path};
    out.write(std::string_view{text}.substr(0, text.size() / 2));
    torn();
    out.write(std::string_view{text}.substr(text.size() / 2));
    out.sync_and_close();
}

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

std::string model_file(rank_id rank) { return fmt::format("model-{}.safetensors", rank.value); }
std::string state_file(rank_id rank) { return fmt::format("state-{}.safetensors", rank.value); }
std::string part_file(rank_id rank) { return fmt::format("part-{}.json", rank.value); }
std::string about_file(rank_id rank) { return fmt::format("about-{}.json", rank.value); }

growing_part::file_sizes sizes_of(checkpoint_part const& part) { return {weights_of(part).about.bytes, moments_of(part).about.bytes}; }

namespace {

struct written_part {
    bytes size;
    std::string manifest;
};

/// @param grown called with the bytes of both files that are written
written_part write_files(fs::path const& folder, checkpoint_part const& part, part_progress const& on, std::function<void(std::int64_t)> const& grown)
{
    on.proceed();
    make_folder(folder);
    on.at(checkpoint_point::folder);
    part_manifest manifest{part.rank, part.step, part.generation, {}};
    std::int64_t before = 0;
    auto const write = [&](part_file_layout file, checkpoint_point torn, checkpoint_point done) {
        auto const out = open_in(folder, file.about.name);
        auto const half_done = [&] { on.at(torn); };
        auto const grown_by = [&](std::int64_t there) { grown(before + there); };
        write_tensors(*out, part, file, half_done, on.proceed, grown_by);
        on.at(done);
        out->sync_and_close();
        before += file.about.bytes;
        grown(before);
        manifest.files.push_back(std::move(file.about));
    };
    write(weights_of(part), checkpoint_point::weights_torn, checkpoint_point::weights);
    write(moments_of(part), checkpoint_point::state_torn, checkpoint_point::state);
    on.proceed();
    return {bytes{before}, format_part(manifest)};
}

}  // namespace

bytes end_part(fs::path const& folder, rank_id rank, part_texts const& texts, part_progress const& on)
{
    if (!texts.about.empty()) {
        write_text(folder / about_file(rank), texts.about, [] {});
    }
    write_text(folder / part_file(rank), texts.manifest, [&] { on.at(checkpoint_point::part_torn); });
    sync_folder(folder);
    on.at(checkpoint_point::part);
    return bytes{std::ssize(texts.about) + std::ssize(texts.manifest)};
}

bytes write_part(fs::path const& folder, checkpoint_part const& part, part_progress const& on)
{
    auto written = write_files(folder, part, on, [](std::int64_t) {});
    return written.size + end_part(folder, part.rank, {{}, std::move(written.manifest)}, on);
}

bytes write_part(growing_part& into, checkpoint_part const& part, std::string const& about, part_progress const& on)
{
    try {
        auto const grown = [&](std::int64_t there) { into.grown(there); };
        auto written = write_files(into.folder(), part, on, grown);
        part_texts texts{about, std::move(written.manifest)};
        auto const size = written.size + end_part(into.folder(), part.rank, texts, on);
        into.finished(std::move(texts));
        return size;
    } catch (...) {
        into.failed();
        throw;
    }
}

bytes copy_part(growing_part const& from, fs::path const& folder, part_progress const& on)
{
    on.proceed();
    make_folder(folder);
    on.at(checkpoint_point::folder);
    std::vector<std::byte> piece(piece_bytes);
    std::int64_t done = 0;
    auto const wait_for = [&](std::int64_t there, bool whole) {
        auto now = from.wait_for(there, std::chrono::milliseconds{100});
        while (!now.failed && (whole ? !now.finished : now.there < there)) {
            on.proceed();
            now = from.wait_for(whole ? INT64_MAX : there, std::chrono::milliseconds{100});
        }
        if (now.failed) {
            throw exit_error{exit_code::environment,
                             fmt::format("'{}' was not finished, so it was not copied to '{}'", from.folder().string(), folder.string())};
        }
    };
    auto const copy = [&](std::size_t file, std::string const& name, checkpoint_point torn, checkpoint_point ended) {
        auto const out = open_in(folder, name);
        auto const end = done + from.sizes()[file];
        auto const half = done + from.sizes()[file] / 2;
        while (done < end) {
            auto const until = done < half ? half : end;
            auto const count = std::min<std::int64_t>(static_cast<std::int64_t>(piece.size()), until - done);
            on.proceed();
            wait_for(done + count, false);
            auto const bytes_of_piece = std::span{piece}.first(static_cast<std::size_t>(count));
            from.read(done, bytes_of_piece);
            out->write(bytes_of_piece);
            done += count;
            if (done == half) {
                on.at(torn);
            }
        }
        on.at(ended);
        out->sync_and_close();
    };
    copy(0, model_file(from.origin()), checkpoint_point::weights_torn, checkpoint_point::weights);
    copy(1, state_file(from.origin()), checkpoint_point::state_torn, checkpoint_point::state);
    wait_for(INT64_MAX, true);
    return bytes{done} + end_part(folder, from.origin(), {{}, from.texts().manifest}, on);
}

void remove_part(fs::path const& folder, rank_id rank)
{
    std::error_code ignored;
    for (auto const& name : {part_file(rank), about_file(rank), model_file(rank), state_file(rank)}) {
        fs::remove(folder / name, ignored);
    }
    fs::remove(folder, ignored);  // fails while others have files in it
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
    write_text(folder / "manifest.json", make_manifest(folder, publication), [&] { at(checkpoint_point::manifest_torn); });
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
