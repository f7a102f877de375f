// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/manage/copy.hpp"

#include <algorithm>
#include <span>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/manage/verify.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t piece_bytes = 4 << 20;

std::int64_t copy_bytes(fs::path const& from, fs::path const& to)
{
    input_file const source{from};
    output_file target{to};
    std::vector<std::byte> piece;
    for (std::int64_t at = 0; at < source.bytes(); at += piece_bytes) {
        piece.resize(static_cast<std::size_t>(std::min(piece_bytes, source.bytes() - at)));
        source.read(at, piece);
        target.write(std::span<std::byte const>{piece});
    }
    target.sync_and_close();
    return source.bytes();
}

/// A folder that is gone unless it is kept.
struct unfinished_copy {
    fs::path folder;
    ~unfinished_copy()
    {
        std::error_code ignored;
        fs::remove_all(folder, ignored);
    }
};

}  // namespace

copied_checkpoint copy_checkpoint(fs::path const& from, fs::path const& run_folder, int threads)
{
    checkpoint const source{from};
    auto const target = checkpoint_folder(run_folder, source.step());
    std::error_code error;
    if (fs::exists(target, error)) {
        throw exit_error{exit_code::environment, fmt::format("'{}' is there already; remove it, or name another run folder", target.string())};
    }
    fs::create_directories(run_folder, error);
    if (error) {
        throw exit_error{exit_code::environment, fmt::format("'{}' cannot be made: {}", run_folder.string(), error.message())};
    }
    unfinished_copy const copy{run_folder / fmt::format(".step-{}.copy-{}", source.step().value, ::getpid())};
    make_folder(copy.folder);
    copied_checkpoint done{target, {}};
    for (auto const& file : source.manifest().files) {
        done.size += bytes{copy_bytes(from / file.name, copy.folder / file.name)};
    }
    done.size += bytes{copy_bytes(from / "manifest.json", copy.folder / "manifest.json")};
    sync_folder(copy.folder);
    if (auto const bad = verify_checkpoint(copy.folder, threads).found; !bad.empty()) {
        auto const& first = bad.front();
        throw exit_error{exit_code::bad_data, fmt::format("'{}' is not copied: bytes {} to {} of '{}' ({}) are not what its manifest says", from.string(),
                                                          first.begin, first.end, first.file.filename().string(), first.what)};
    }
    rename_file(copy.folder, target);
    sync_folder(run_folder);
    return done;
}

}  // namespace rheo::inline v0
