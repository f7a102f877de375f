#pragma once
// SPDX-License-Identifier: Apache-2.0

// State as it lies in safetensors files, whatever wrote them: tensors of up to eight dimensions, their roles, and for each box of one the file and
// the place in it. A checkpoint of rheo and PyTorch's distributed checkpoints are both read into this form, and a conversion goes from one to
// another: it is the re-sharding whose ranks are files.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.hpp"
#include "rheo/reshard/array_layout.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/tensor/nd_box.hpp"

namespace rheo::inline v0 {

struct stored_tensor {
    layout_tensor about;                            ///< name, shape, bytes of an element by role
    std::array<std::string, tensor_roles> dtype{};  ///< as safetensors calls them; empty: no such role
    int dimensions = 0;                             ///< that it has in files: 0 for a scalar, 1 for a vector, which may be a matrix of one row here

    friend bool operator==(stored_tensor const&, stored_tensor const&) = default;
};

/// A box of a tensor's role in a file.
struct stored_piece {
    std::size_t file = 0;
    tensor_id tensor;
    tensor_role role = tensor_role::parameter;
    nd_box box;
    std::int64_t begin = 0;                ///< of its first byte in the file
    std::optional<state_digest> digest{};  ///< where the files say it

    friend bool operator==(stored_piece const&, stored_piece const&) = default;
};

struct stored_state {
    std::filesystem::path folder;
    std::vector<std::filesystem::path> files;
    std::vector<stored_tensor> tensors;
    std::vector<stored_piece> pieces;            ///< ascending by file
    std::optional<checkpoint_manifest> about{};  ///< what else belongs to the state, without its files; none: it is arrays only
};

/// What a checkpoint of rheo holds. @throws exit_error for a name that a layout has no room for
stored_state stored_in(checkpoint const& from);

/// The layout whose ranks are the files.
array_layout layout_of(stored_state const& state);

/// A box as tensors of two dimensions have it.
nd_box to_nd(index_box const& box);
index_box to_index_box(nd_box const& box);

/// The name of a tensor's role in messages: "w" or "first_moment/w".
std::string name_of(stored_state const& state, tensor_id tensor, tensor_role role);

/// @throws exit_error bad data: the name is too long for a layout
tensor_name name_in_layout(std::string const& name, std::filesystem::path const& where);

/// Digest of consecutive elements of any size; elements of four bytes have the digest that training prints. Elements of 8 bytes count as two
/// patterns of 32 bits, smaller ones as one. @param first index of the first element in its tensor  @pre elements of 4 bytes are aligned
state_digest digest_of_elements(std::string_view tensor, tensor_role role, std::int64_t first, std::span<std::byte const> values, std::int64_t element);

}  // namespace rheo::inline v0
