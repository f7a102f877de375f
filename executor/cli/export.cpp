// SPDX-License-Identifier: Apache-2.0
// `rheo export`: the weights of a checkpoint in Hugging Face's form.

#include "executor/cli/commands.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/huggingface/export.hpp"
#include "executor/cli/amount_checks.hpp"

namespace rheo::cli {

namespace {

/// The checkpoint that a path means: itself, or the newest of a run folder.
checkpoint open(std::filesystem::path const& path)
{
    auto found = find_checkpoint(path);
    for (auto const& message : found.skipped) {
        fmt::print(stderr, "rheo: skipped: {}\n", message);
    }
    return *std::move(found.newest);
}

}  // namespace

int export_weights(export_options const& options)
{
    auto const from = open(options.from);
    export_huggingface(from, options.folder,
                       {.dtype = options.dtype == "fp16"   ? "F16"
                                 : options.dtype == "bf16" ? "BF16"
                                                           : "F32",
                        .shard = bytes_of_mebibytes(options.shard_mib).value()});
    fmt::print("{}: the weights of step {} of '{}'\n", options.folder, from.step().value, from.folder().string());
    return 0;
}

}  // namespace rheo::cli
