#pragma once
// SPDX-License-Identifier: Apache-2.0

// The config keys as rows for people: name, type, default, range, meaning. They come from the one list of keys
// (config_fields.hpp), so the reference page, the man page and shell completion know every key.

#include <string>
#include <vector>

namespace rheo::inline v0 {

struct config_row {
    std::string key;      ///< as in TOML: "train.steps"
    std::string type;     ///< integer, number, boolean, text, or a list of them
    std::string value;    ///< the default, as TOML
    std::string range;    ///< of numbers, or the words that a text may be; empty: any
    std::string meaning;  ///< one line
};

/// A row per key, in the order of the list, without `schema`.
std::vector<config_row> config_rows();

}  // namespace rheo::inline v0
