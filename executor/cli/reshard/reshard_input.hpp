#pragma once
// SPDX-License-Identifier: Apache-2.0

// What `rheo reshard` is given, read and checked: two files with layouts, or a model and its degrees of tensor, pipeline and data parallelism.

#include <optional>
#include <string>

#include "executor/cli/commands.hpp"
#include "rheo/model/model.hpp"
#include "rheo/reshard/mesh.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::cli {

/// "4,2,1"; nothing when the text has another form, such as the name of a file. @throws exit_error for three numbers that are no degrees
std::optional<mesh_shape> degrees_in(std::string const& option, std::string const& text);

/// The layout of a model's parameters and moments. @throws exit_error when the model has too few heads or blocks for the degrees
array_layout mesh_layout_of(model_description const& model, mesh_shape mesh, std::string const& option);

struct reshard_input {
    reshard_request request;
    std::string title;  ///< "gpt3-1.3b, 24 blocks: 4,2,1 on 8 ranks to 4,2,2 on 16 ranks"
};

/// @throws exit_error
reshard_input read_reshard(reshard_command_options const& options);

/// The picture for --svg: a matrix of senders and receivers for each round, nodes instead of ranks where there are many.
std::string picture_of(reshard_plan const& plan, std::string const& title, int node_size);

}  // namespace rheo::cli
