// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/checkpoint_config.hpp"

#include "executor/config/toml.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

run_config config_of(checkpoint const& from)
{
    try {
        return read_config(from.manifest().config, (from.folder() / "manifest.json").string() + ", config", {}, find_schedule_or_name).config;
    } catch (exit_error const& error) {
        throw exit_error{exit_code::bad_data, error.what()};
    }
}

}  // namespace rheo::inline v0
