#pragma once
// SPDX-License-Identifier: Apache-2.0

// The execution traces of all ranks of a job, as far as playing them needs: what kind a node is, what it moves and whom it meets, what it
// waits for. Names stay in the files. 64 bytes a node and 4 a dependency, so that a step of 10,000 ranks fits in memory.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rheo/trace/chakra/node.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

/// Ranks that meet in collectives; a rank's place in the list is its place in the ring.
struct chakra_group {
    std::uint64_t name = 0;  ///< the key in the groups file, above 0; 0: all ranks
    std::vector<std::int32_t> ranks;

    friend bool operator==(chakra_group const&, chakra_group const&) = default;
};

/// A node without its name. Which fields mean something follows from the type.
struct chakra_step {
    std::uint64_t id = 0;
    std::uint64_t duration_micros = 0;
    std::int64_t bytes = 0;       ///< of a message or collective; of a computation what it moves (tensor_size)
    std::int64_t operations = 0;  ///< of a computation (num_ops)
    std::int64_t exact_ns = 0;    ///< duration where rheo measured it (rheo_duration_ns); 0: not known
    std::uint64_t group = 0;      ///< the name of a collective's group
    std::int32_t peer = 0;        ///< the other rank of a message
    std::int32_t tag = 0;
    chakra_node_type type = chakra_node_type::invalid;
    chakra_collective collective = chakra_collective::all_reduce;
    bool on_host = false;  ///< is_cpu_op

    friend constexpr bool operator==(chakra_step const&, chakra_step const&) = default;
};

/// The file of one rank; ids ascend.
struct chakra_rank_trace {
    std::vector<chakra_step> steps;
    std::vector<std::uint32_t> dependencies;  ///< places in `steps`, those of a step behind those of the step before it
    std::vector<std::size_t> ends;            ///< step -> where its dependencies end

    /// The places of the steps that a step waits for.
    array_view<std::uint32_t const> waits_for(std::size_t step) const
    {
        auto const begin = step == 0 ? 0 : ends[step - 1];
        return array_view<std::uint32_t const>{dependencies}.subspan(begin, ends[step] - begin);
    }
};

struct chakra_trace_set {
    std::vector<chakra_rank_trace> ranks;
    std::vector<chakra_group> groups;  ///< the first one is that of all ranks; names ascend
};

/// The groups of a job: those of its file behind that of all ranks, by their names.
template <class OnlyWhenCalled = void>
std::vector<chakra_group> with_all_ranks(std::vector<chakra_group> groups, std::int32_t ranks)
{
    chakra_group all;
    for (std::int32_t r = 0; r < ranks; ++r) {
        all.ranks.push_back(r);
    }
    groups.push_back(all);
    std::sort(groups.begin(), groups.end(), [](auto const& a, auto const& b) { return a.name < b.name; });
    return groups;
}

/// The group of that name; none: null.
template <class OnlyWhenCalled = void>
chakra_group const* find_group(array_view<chakra_group const> groups, std::uint64_t name)
{
    auto const* const found = std::lower_bound(groups.begin(), groups.end(), name, [](auto const& g, std::uint64_t n) { return g.name < n; });
    return found != groups.end() && found->name == name ? found : nullptr;
}

/// "COMM_SEND node 7 of rank 2"
template <class OnlyWhenCalled = void>
std::string label_of(chakra_step const& step, std::size_t rank)
{
    return std::string{name_of(step.type)} + " node " + std::to_string(step.id) + " of rank " + std::to_string(rank);
}

}  // namespace rheo::inline v0
