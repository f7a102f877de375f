#pragma once
// SPDX-License-Identifier: Apache-2.0

// PyTorch's distributed checkpoints in the form of torch.distributed.checkpoint.HuggingFaceStorageWriter and -Reader: safetensors files in one folder,
// each with at most one shard of a tensor. The text `DCP_SHARDING_INFO` in a file's metadata is JSON and says at which offsets of the whole
// tensor each shard begins; a tensor's shape is what its shards span. There is no step, config, scale or digest: `rheo.json` keeps
// those beside the shards, and PyTorch does not look at it. The pickled form (`.metadata`, `*.distcp`) is not read.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/checkpoint_manifest.hpp"
#include "executor/checkpoint/convert/stored_state.hpp"
#include "executor/checkpoint/safetensors.hpp"

namespace rheo::inline v0 {

inline constexpr std::string_view state_file_name = "rheo.json";

struct shard_header {
    std::filesystem::path path;
    safetensors_header header;
};

/// What the shards make up: each key is a tensor in the role of a parameter. Checked: offsets, dtypes, each element in exactly one shard. @throws exit_error
stored_state assemble_shards(std::filesystem::path const& folder, std::vector<shard_header> const& shards);

/// Whether a folder has files in this form, or in the pickled one, which reading refuses.
bool looks_distributed(std::filesystem::path const& folder);

/// Reads the headers of all shards of a folder. @throws exit_error
stored_state read_distributed_checkpoint(std::filesystem::path const& folder);

/// `rheo.json` of the folder, where there is one. @throws exit_error
std::optional<state_manifest> read_state_manifest(std::filesystem::path const& folder);

/// The key of a tensor's role: "w", "state.w.exp_avg", "state.w.exp_avg_sq", as PyTorch's flattened state of an Adam optimizer has them.
std::string distributed_key(std::string_view tensor, tensor_role role);

/// Keys become the tensors and roles of a checkpoint. Names may have Hugging Face's "transformer." before them; the optimizer's step counts are left out.
/// @throws exit_error: a tensor is missing, unknown, or of another shape or dtype
stored_state named_like(stored_state const& keys, checkpoint_manifest const& about);

/// The metadata of a shard's file. @param offsets by key
std::map<std::string, std::string> sharding_metadata(std::map<std::string, std::vector<std::int64_t>> const& offsets);

}  // namespace rheo::inline v0
