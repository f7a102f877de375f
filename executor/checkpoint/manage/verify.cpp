// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/manage/verify.hpp"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/checkpoint_entry.hpp"
#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/config/strict_json.hpp"
#include "executor/os/background_thread.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t piece_elements = 1 << 20;
constexpr std::int64_t element_size = sizeof(float);

/// A stretch of a file with a digest of its own.
struct stretch {
    std::size_t file;
    checkpoint_entry const* entry;  ///< null: the header
    std::int64_t begin;
    std::int64_t end;
};

/// A file that could be opened, and where it ends.
struct opened_file {
    std::unique_ptr<input_file> file{};
    std::int64_t bytes = 0;
};

class verification {
public:
    verification(fs::path folder, checkpoint_manifest manifest) : folder_{std::move(folder)}, manifest_{std::move(manifest)}
    {
        for (std::size_t f = 0; f < manifest_.files.size(); ++f) {
            open(f);
        }
    }

    verified_checkpoint run(int threads)
    {
        std::vector<std::thread> all;
        for (int i = 1; i < threads; ++i) {
            all.push_back(background_thread([this] { work(); }));
        }
        work();
        for (auto& one : all) {
            one.join();
        }
        std::sort(found_.begin(), found_.end(),
                  [](auto const& a, auto const& b) { return std::tie(a.first, a.second.begin) < std::tie(b.first, b.second.begin); });
        verified_checkpoint result{.size = size_};
        for (auto& [file, bad] : found_) {
            result.found.push_back(std::move(bad));
        }
        return result;
    }

private:
    fs::path folder_;
    checkpoint_manifest manifest_;
    std::vector<opened_file> files_{};
    std::vector<stretch> stretches_{};
    bytes size_{};
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_{};
    std::vector<std::pair<std::size_t, bad_bytes>> found_{};

    void add(std::size_t file, std::int64_t begin, std::int64_t end, std::string what)
    {
        std::lock_guard const lock{mutex_};
        found_.emplace_back(file, bad_bytes{folder_ / manifest_.files[file].name, begin, end, std::move(what)});
    }

    void open(std::size_t f)
    {
        auto const& about = manifest_.files[f];
        auto& opened = files_.emplace_back();
        try {
            opened.file = std::make_unique<input_file>(folder_ / about.name);
        } catch (exit_error const& error) {
            add(f, 0, about.bytes, error.what());
            return;
        }
        opened.bytes = opened.file->bytes();
        size_ += bytes{opened.bytes};
        if (opened.bytes < about.bytes) {
            add(f, opened.bytes, about.bytes, fmt::format("missing: the file has {} bytes, the manifest says {}", opened.bytes, about.bytes));
        } else if (opened.bytes > about.bytes) {
            add(f, about.bytes, opened.bytes, fmt::format("more than the {} bytes that the manifest says", about.bytes));
        }
        std::int64_t data = 0;
        for (auto const& entry : about.entries) {
            data += element_size * elements(entry.box);
        }
        auto place = about.bytes - data;
        if (place < 0) {
            add(f, 0, about.bytes, fmt::format("the manifest says {} bytes, but what it lists in the file has {}", about.bytes, data));
            return;
        }
        stretches_.push_back({f, nullptr, 0, place});
        for (auto const& entry : about.entries) {
            stretches_.push_back({f, &entry, place, place + element_size * elements(entry.box)});
            place = stretches_.back().end;
        }
    }

    void work()
    {
        std::vector<float> values;
        for (auto i = next_++; i < stretches_.size(); i = next_++) {
            auto const& one = stretches_[i];
            if (one.end > files_[one.file].bytes) {
                continue;  // it is missing
            }
            try {
                if (!is_right(one, values)) {
                    add(one.file, one.begin, one.end, one.entry == nullptr ? "the header" : entry_name(*one.entry, shape_of(manifest_, one.entry->tensor)));
                }
            } catch (exit_error const& error) {
                add(one.file, one.begin, one.end, error.what());
            }
        }
    }

    bool is_right(stretch const& one, std::vector<float>& values) const
    {
        auto const& from = *files_[one.file].file;
        if (one.entry == nullptr) {
            return digest_of_bytes(from.read(0, one.end)) == manifest_.files[one.file].header;
        }
        auto const& box = one.entry->box;
        auto const width = std::max<std::int64_t>(box.column_end - box.column_begin, 1);
        auto const rows = std::max<std::int64_t>(piece_elements / width, 1);
        auto const shape = shape_of(manifest_, one.entry->tensor);
        state_digest sum;
        for (auto row = box.row_begin; row < box.row_end; row += rows) {
            auto piece = *one.entry;
            piece.box.row_begin = row;
            piece.box.row_end = std::min(row + rows, box.row_end);
            values.resize(static_cast<std::size_t>(elements(piece.box)));
            from.read(one.begin + (row - box.row_begin) * width * element_size, std::as_writable_bytes(std::span{values}));
            sum += digest_of_box(piece, shape, values);
        }
        return sum == one.entry->digest;
    }
};

}  // namespace

verified_checkpoint verify_checkpoint(fs::path const& folder, int threads) { return verification{folder, read_checkpoint_manifest(folder)}.run(threads); }

verified_checkpoint verify_files(fs::path const& folder, checkpoint_manifest const& manifest, int threads)
{
    return verification{folder, manifest}.run(threads);
}

}  // namespace rheo::inline v0
