#pragma once
// SPDX-License-Identifier: Apache-2.0

// Checkpoints as they lie in the run folder, and how they are read. A checkpoint is a folder `step-N`:
//   manifest.json              step, scales, fingerprint, config, data digest; every file with its size and digests
//   model-<rank>.safetensors   parameters under Hugging Face's names, of the tensors which that rank wrote
//   state-<rank>.safetensors   their moments, by role, tensor and box
// No manifest, no checkpoint: it is the last file to be written, and the folder has its name only then. The
// digests of the entries and of the scales add up to the digest of the state that the run prints, so a checkpoint
// can be told from a run's record alone. It can be loaded at any number of ranks, in any plan.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/fingerprint_line.hpp"
#include "executor/checkpoint/safetensors.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/tensor/box.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

inline constexpr int checkpoint_schema = 2;
inline constexpr int oldest_checkpoint_schema = 1;  ///< that is read: its state_digest leaves out the scales

/// One box of one tensor's role in a file.
struct checkpoint_entry {
    std::string tensor;
    tensor_role role = tensor_role::parameter;  ///< never accumulator
    index_box box;
    state_digest digest;  ///< law 1's: of (tensor, role, index in the tensor, bits)

    friend bool operator==(checkpoint_entry const&, checkpoint_entry const&) = default;
};

struct checkpoint_file {
    std::string name;
    std::int64_t bytes = 0;
    state_digest header;                    ///< of the bytes before the data; the entries cover the rest
    std::vector<checkpoint_entry> entries;  ///< in the order of the file

    friend bool operator==(checkpoint_file const&, checkpoint_file const&) = default;
};

struct checkpoint_tensor {
    std::string name;
    tensor_shape shape;
    bool is_parameter = true;            ///< false for the loss, which has a scale and no file
    std::optional<int> scale_log2;       ///< none before the first step, for example after an import
    std::vector<int> row_scales_log2{};  ///< of each row instead, where sums have 32 bits
    std::string of{};  ///< a part of that parameter on a grid of shards: it has a scale, as the loss, and its values lie in the parameter's files

    friend bool operator==(checkpoint_tensor const&, checkpoint_tensor const&) = default;
};

struct checkpoint_manifest {
    std::string version;  ///< of rheo, that wrote it
    step_id step;         ///< committed steps: the next one to run
    generation_id generation;
    std::vector<checkpoint_tensor> tensors;     ///< of the collection, in its order: whole parameters, and after each its parts
    std::vector<fingerprint_line> fingerprint;  ///< empty: any run may begin with it (an import)
    std::string config;                         ///< TOML, effective
    std::string data_digest;                    ///< empty: any
    std::vector<checkpoint_file> files;

    /// Of all parameters, moments and scales: what the run prints after the same step.
    state_digest digest() const;

    friend bool operator==(checkpoint_manifest const&, checkpoint_manifest const&) = default;
};

/// Reads and checks a manifest: schema, its own digest, each box of each tensor there exactly once.
/// @param name what the sentence calls the file  @throws exit_error
checkpoint_manifest parse_manifest(std::string_view text, std::string const& name);
std::string format_manifest(checkpoint_manifest const& manifest);
/// That of a folder; its step is the one that the folder's name says, if that is called like a checkpoint. @throws exit_error
checkpoint_manifest read_checkpoint_manifest(std::filesystem::path const& folder);

/// An opened checkpoint. Reading does not change it, and ranks may read different tensors of it at once.
class checkpoint {
public:
    /// Opens a folder `step-N`: its manifest, sizes and headers of all files agree. @throws exit_error
    explicit checkpoint(std::filesystem::path folder);

    std::filesystem::path const& folder() const { return folder_; }
    checkpoint_manifest const& manifest() const& { return manifest_; }
    checkpoint_manifest const& manifest() && = delete;  // it would outlive what it is part of
    step_id step() const { return manifest_.step; }
    std::vector<safetensors_file> const& files() const& { return files_; }  ///< as in the manifest
    std::vector<safetensors_file> const& files() && = delete;

    /// A box of a tensor, row-major; it is put together from the boxes in the files that meet it, and no others are read. Their digests are checked.
    /// @throws exit_error naming the file; also for a box that leaves the tensor
    std::vector<float> read(std::string_view tensor, tensor_role role, index_box const& box) const;
    /// The whole tensor. @throws exit_error
    std::vector<float> read(std::string_view tensor, tensor_role role) const;
    /// Parameter and moments. @throws exit_error
    tensor_values read(std::string_view tensor) const;
    /// The same of a tensor of a collection: of a part of a parameter on a grid of shards, whichever grid wrote it. @throws exit_error
    tensor_values read(tensor_info const& tensor) const;
    std::vector<float> read(tensor_info const& tensor, tensor_role role) const;
    /// Reads every byte. @throws exit_error naming the first bad file
    void verify() const;

    /// Why a model with this collection cannot resume from it (another tensor, another shape); else empty.
    std::string load_error(collection const& state) const;
    /// The scales of `state` become those of the checkpoint; where it has none they stay. One that was written with sums of the other kind gives rows the scale of
    /// their tensor, or a tensor the least of its rows, moved by the bits that 64 have more. @pre why_not of the state's collection is empty
    void read_scales(resident_state& state, int microbatches) const;

private:
    checkpoint_tensor scales_of(tensor_info const& tensor) const;

    std::filesystem::path folder_;
    checkpoint_manifest manifest_;
    std::vector<safetensors_file> files_;  ///< as in the manifest
};

struct found_checkpoint {
    std::optional<checkpoint> newest{};
    std::vector<std::string> skipped{};  ///< a sentence for each newer one that cannot be taken
};

/// The newest checkpoint of a run folder all of whose bytes are right. One rank calls it and tells the others the step; they
/// open `checkpoint_folder(run, step)`. Cost: reads the checkpoint once.
found_checkpoint find_newest_checkpoint(std::filesystem::path const& run_folder);

/// The checkpoint that a path means: itself, or the newest of a run folder. All of its bytes are right. @throws exit_error when there is none
found_checkpoint find_checkpoint(std::filesystem::path const& path);

/// The step that a folder's name says; none when it is not called like a checkpoint.
std::optional<step_id> step_of(std::filesystem::path const& folder);

/// `<run>/step-N`.
std::filesystem::path checkpoint_folder(std::filesystem::path const& run_folder, step_id step);

/// The steps of all folders that are called like checkpoints, ascending; nothing in them was looked at. @throws exit_error where
/// there is a run folder that cannot be listed
std::vector<step_id> checkpoint_steps(std::filesystem::path const& run_folder);

/// Moves a checkpoint into the first free `before-<k>` of its run folder. @returns that folder. @throws exit_error
std::filesystem::path set_checkpoint_aside(std::filesystem::path const& run_folder, step_id step);

}  // namespace rheo::inline v0
