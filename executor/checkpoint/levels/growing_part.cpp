// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/levels/growing_part.hpp"

#include <algorithm>
#include <utility>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/part_files.hpp"

namespace rheo::inline v0 {

growing_part::growing_part(std::filesystem::path folder, rank_id origin, file_sizes sizes) : folder_{std::move(folder)}, origin_{origin}, sizes_{sizes} {}

std::filesystem::path growing_part::path(std::size_t file) const { return folder_ / (file == 0 ? model_file(origin_) : state_file(origin_)); }

void growing_part::grown(std::int64_t there)
{
    std::lock_guard const lock{mutex_};
    state_.there = there;
    changed_.notify_all();
}

void growing_part::finished(part_texts texts)
{
    std::lock_guard const lock{mutex_};
    texts_ = std::move(texts);
    state_.there = bytes();
    state_.finished = true;
    changed_.notify_all();
}

void growing_part::failed()
{
    std::lock_guard const lock{mutex_};
    state_.failed = !state_.finished;
    changed_.notify_all();
}

growing_part::state growing_part::look() const
{
    std::lock_guard const lock{mutex_};
    return state_;
}

growing_part::state growing_part::wait_for(std::int64_t there, std::chrono::milliseconds most) const
{
    std::unique_lock lock{mutex_};
    changed_.wait_for(lock, most, [&] { return state_.there >= there || state_.finished || state_.failed; });
    return state_;
}

void growing_part::read(std::int64_t first, std::span<std::byte> into) const
{
    for (std::size_t file = 0; file < sizes_.size() && !into.empty(); ++file) {
        auto const of_file = std::min(std::max<std::int64_t>(0, sizes_[file] - first), std::ssize(into));
        if (of_file > 0) {
            input_file const source{path(file)};
            source.read(first, into.first(static_cast<std::size_t>(of_file)));
            into = into.subspan(static_cast<std::size_t>(of_file));
            first += of_file;
        }
        first -= sizes_[file];
    }
}

}  // namespace rheo::inline v0
