// SPDX-License-Identifier: Apache-2.0
// `rheo trace check`: whether a set of Chakra traces is one that every consumer takes and that does not hang.

#include "executor/cli/trace/traces.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "executor/records/chakra/chakra_traces.hpp"
#include "rheo/trace/chakra/check_traces.hpp"
#include "rheo/trace/chakra/play.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

int check_traces(std::string const& prefix)
{
    auto const traces = read_chakra_traces(prefix);
    for (auto const& wrong : {check_messages(traces), check_collectives(traces)}) {
        if (!wrong.empty()) {
            throw exit_error{exit_code::bad_data, fmt::format("{}: {}", prefix, wrong)};
        }
    }
    auto const ends = play(traces);
    if (!ends) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: {}", prefix, ends.error())};
    }
    std::size_t nodes = 0;
    for (auto const& rank : traces.ranks) {
        nodes += rank.steps.size();
    }
    auto const last = std::max_element(ends->begin(), ends->end());
    fmt::print("{}: {} {}, {} nodes, {} {}: keeps the contract of consumers and ends\n", prefix, traces.ranks.size(),
               traces.ranks.size() == 1 ? "rank" : "ranks", nodes, traces.groups.size() - 1, traces.groups.size() == 2 ? "group" : "groups");
    fmt::print("without time for messages and collectives rank {} ends last, after {:.6g} s\n", last - ends->begin(), static_cast<double>(*last) * 1e-9);
    return 0;
}

}  // namespace rheo::cli
