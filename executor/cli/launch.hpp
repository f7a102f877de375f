#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the launcher's environment says before MPI is started, so that a mistake in a config is found by all
// ranks alike, reported by one of them, and nothing has to be taken down.

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

namespace rheo::cli {

/// A number from the first of these environment variables that has one.
template <class... Names>
std::optional<int> number_from_environment(Names... names)
{
    for (char const* name : {names...}) {
        if (char const* const text = std::getenv(name); text != nullptr) {
            std::string_view const view{text};
            int value = 0;
            if (std::from_chars(view.data(), view.data() + view.size(), value).ec == std::errc{}) {
                return value;
            }
        }
    }
    return std::nullopt;
}

/// This process's rank; none when no launcher has started it.
inline std::optional<int> launched_rank() { return number_from_environment("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"); }

/// How many ranks were started: 1 without a launcher, none when the launcher does not say.
inline std::optional<int> launched_ranks()
{
    if (!launched_rank()) {
        return 1;
    }
    return number_from_environment("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
}

/// True for the one process that talks to people before there is anything to agree on.
inline bool is_lowest_rank() { return launched_rank().value_or(0) == 0; }

}  // namespace rheo::cli
