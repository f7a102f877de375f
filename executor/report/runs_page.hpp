#pragma once
// SPDX-License-Identifier: Apache-2.0

// Several runs on one page that compares them: how each ended, its figures, curves over each other, and what differs between their configs. Traces are not
// read, so that a folder of many runs is a page within a second. A run that cannot be read is left out with its sentence: the others are compared all the same.

#include <span>
#include <string>
#include <vector>

#include "executor/report/blocks.hpp"

namespace rheo::inline v0 {

/// The folders of runs that these are or directly hold, in their order, without repetition; one that is neither stays, and cannot be read later.
std::vector<std::string> runs_in(std::span<std::string const> folders);

/// Whether a folder has what every run folder has.
bool is_run_folder(std::string const& folder);

struct runs_page_result {
    page_block data;                  ///< for page_of
    std::vector<std::string> errors;  ///< one for each run that was left out
    std::size_t compared = 0;
};

/// @param page where the page will be: links to the pages of runs are relative to its folder
runs_page_result runs_page(std::span<std::string const> folders, std::string const& page);

}  // namespace rheo::inline v0
