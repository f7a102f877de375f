#pragma once
// SPDX-License-Identifier: Apache-2.0

// Messages that take the times that were measured: where a level of the network has lines fitted to measured messages (fitted.hpp), a message takes the
// least of them from end to end, whatever its hops; in other levels latencies and rate of its links. Nobody shares links, for lines know nothing of others.

#include <algorithm>
#include <limits>
#include <vector>

#include "rheo/simulate/network/fitted.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct fitted_path {
    modelled_link link;                ///< where there are no lines
    std::vector<fitted_line> lines{};  ///< of a message from end to end

    friend bool operator==(fitted_path const&, fitted_path const&) = default;
};

inline bool is_usable_link(fitted_path const& path)
{
    constexpr auto most = std::numeric_limits<double>::max();
    return is_usable_link(path.link) && std::all_of(path.lines.begin(), path.lines.end(), [](fitted_line const& line) {
               return line.latency.count >= 0.0 && line.latency.count <= most && line.seconds_per_byte >= 0.0 && line.seconds_per_byte <= most;
           });
}

namespace detail {

/// @param link of both  Lines are of whole ways, so that two of them are the slower ones; where one end has none, there are none.
inline fitted_path both_ends(fitted_path const& a, fitted_path const& b, modelled_link link)
{
    constexpr auto large = gibibytes(1);
    bool const has_lines = !a.lines.empty() && !b.lines.empty();
    return {link, !has_lines ? std::vector<fitted_line>{} : fitted_time(a.lines, large) < fitted_time(b.lines, large) ? b.lines : a.lines};
}

}  // namespace detail

/// As in rank_links.hpp.
inline fitted_path slower_link(fitted_path const& a, fitted_path const& b) { return detail::both_ends(a, b, slower_link(a.link, b.link)); }
inline fitted_path joined_links(fitted_path const& a, fitted_path const& b) { return detail::both_ends(a, b, joined_links(a.link, b.link)); }

inline fitted_path slowed_link(fitted_path path, double factor)
{
    path.link = slowed_link(path.link, factor);
    for (auto& line : path.lines) {
        line.seconds_per_byte *= factor;
    }
    return path;
}

/// A model as those of network_model.hpp.
struct fitted_network : free_network {
    using link = fitted_path;

    static seconds way(fitted_path const& path, int hops, bytes size)
    {
        return path.lines.empty() ? free_network::way(path.link, hops, size) : fitted_time(path.lines, size);
    }
};

}  // namespace rheo::inline v0
