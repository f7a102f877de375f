// SPDX-License-Identifier: Apache-2.0
// `rheo import`: weights in Hugging Face's form as the checkpoint with which a run begins.

#include "executor/cli/commands.hpp"

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/huggingface/import.hpp"

namespace rheo::cli {

int import_weights(import_options const& options)
{
    auto const made = import_huggingface(options.from, options.run);
    checkpoint const imported{made.checkpoint};
    fmt::print("{}: step 0 with these weights\n", made.checkpoint.string());
    fmt::print("{}: trains on from it, with [data] to be filled in\n", made.config.string());
    fmt::print("digest of the state {}\n", to_string(imported.manifest().digest()));
    return 0;
}

}  // namespace rheo::cli
