// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/part_files.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_entry.hpp"
#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/checkpoint_manifest.hpp"
#include "executor/checkpoint/huggingface.hpp"
#include "executor/checkpoint/safetensors.hpp"
#include "executor/config/strict_json.hpp"
#include "executor/os/background_thread.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t piece_bytes = std::size_t{4} << 20;

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

/// @param torn called when half of it is written  @param grown called with the bytes that are written
void write_tensors(output_file& out, checkpoint_part const& part, part_file_layout const& file, std::function<void()> const& torn,
                   std::function<void()> const& proceed, std::function<void(std::int64_t)> const& grown)
{
    auto const total = static_cast<std::size_t>(file.about.bytes);
    out.write(file.header);
    std::size_t done = file.header.size();
    bool half = false;
    std::vector<float> room;
    for (std::size_t e = 0; e < file.boxes.size(); ++e) {
        proceed();
        for (auto rest = std::as_bytes(values_of(part, *file.boxes[e], file.about.entries[e].role, room)); !rest.empty();) {
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

/// The digests of a part's values, made by threads while another one writes them: the manifest, which has them, comes last. One thread
/// digests slower than memory, and fast storage, are written.
class part_digests {
public:
    static constexpr int threads = 2;

    /// @param files gets them in its entries  @pre all outlive it
    part_digests(std::array<part_file_layout, 2>& files, checkpoint_part const& part, std::function<void()> const& proceed) : files_{files}
    {
        threads_.reserve(threads);
        for (int i = 0; i < threads; ++i) {
            try {
                threads_.push_back(background_thread([this, &part, &proceed] { make(part, proceed); }));
            } catch (std::system_error const&) {
                if (threads_.empty()) {
                    throw;
                }
            }
        }
    }
    ~part_digests()
    {
        stop_ = true;
        join();
    }
    part_digests(part_digests const&) = delete;
    part_digests& operator=(part_digests const&) = delete;

    /// Until all are there. @throws what proceed does
    void wait()
    {
        join();
        if (error_) {
            std::rethrow_exception(error_);
        }
    }

private:
    void join()
    {
        for (auto& thread : threads_) {
            if (thread.joinable()) {
                thread.join();
            }
        }
    }

    void make(checkpoint_part const& part, std::function<void()> const& proceed)
    {
        try {
            std::vector<float> room;
            auto const of_weights = files_[0].boxes.size();
            for (auto which = next_++; which < of_weights + files_[1].boxes.size() && !stop_; which = next_++) {
                proceed();
                auto& file = files_[which < of_weights ? 0 : 1];
                auto const e = which < of_weights ? which : which - of_weights;
                auto& entry = file.about.entries[e];
                entry.digest = digest_of_box(entry, file.boxes[e]->shape, values_of(part, *file.boxes[e], entry.role, room));
            }
        } catch (...) {
            std::lock_guard const lock{mutex_};
            error_ = std::current_exception();
            stop_ = true;
        }
    }

    std::array<part_file_layout, 2>& files_;
    std::atomic<std::size_t> next_{0};
    std::atomic<bool> stop_{false};
    std::mutex mutex_{};
    std::exception_ptr error_{};
    std::vector<std::thread> threads_{};
};

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

}  // namespace

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
    std::array files{weights_of(part), moments_of(part)};
    part_digests digests{files, part, on.proceed};
    std::int64_t before = 0;
    auto const write = [&](part_file_layout const& file, checkpoint_point torn, checkpoint_point done) {
        auto const out = open_in(folder, file.about.name);
        auto const half_done = [&] { on.at(torn); };
        auto const grown_by = [&](std::int64_t there) { grown(before + there); };
        write_tensors(*out, part, file, half_done, on.proceed, grown_by);
        on.at(done);
        out->sync_and_close();
        before += file.about.bytes;
        grown(before);
    };
    write(files[0], checkpoint_point::weights_torn, checkpoint_point::weights);
    write(files[1], checkpoint_point::state_torn, checkpoint_point::state);
    on.proceed();
    digests.wait();
    return {bytes{before}, format_part({part.rank, part.step, part.generation, {std::move(files[0].about), std::move(files[1].about)}})};
}

}  // namespace

bytes end_part(fs::path const& folder, rank_id rank, part_texts const& texts, part_progress const& on)
{
    if (!texts.about.empty()) {
        write_file(folder / about_file(rank), texts.about);
    }
    write_file(folder / part_file(rank), texts.manifest, [&] { on.at(checkpoint_point::part_torn); });
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

}  // namespace rheo::inline v0
