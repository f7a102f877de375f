#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a collective operation is asked to do on a network, and which forms there are of it. A form says which messages are sent
// (message_order.hpp); the network says when they arrive.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

enum class collective : unsigned char { all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, gather, scatter };

enum class collective_form : unsigned char {
    ring,              ///< to the next rank, again and again; a broadcast is a chain from rank 0
    direct,            ///< to all others at once
    halving_doubling,  ///< with partners at distances 1, 2, 4, ...: Thakur, Rabenseifner, Gropp 2005, section 4.3
    tree,              ///< up and down a binomial tree with root 0
    slice_owner,       ///< what the executor does: integers straight to the owner of each slice, floats back (all_reduce)
};

inline constexpr std::array<std::string_view, 8> collective_names{"all_reduce", "all_gather", "reduce_scatter", "all_to_all",
                                                                  "broadcast",  "reduce",     "gather",         "scatter"};
inline constexpr std::array<std::string_view, 5> collective_form_names{"ring", "direct", "halving_doubling", "tree", "slice_owner"};

constexpr std::string_view name_of(collective operation) { return collective_names[static_cast<std::size_t>(operation)]; }
constexpr std::string_view name_of(collective_form form) { return collective_form_names[static_cast<std::size_t>(form)]; }

enum class collective_scope : unsigned char {
    all_ranks,  ///< as one group
    by_level,   ///< an all_reduce is a reduce_scatter in each level from the inside out, an all_reduce in the last, and all_gathers back
};

/// All ranks of the network take part from time 0 on.
/// @tparam Model of the network (network_model.hpp)
template <class Model>
struct collective_request {
    collective operation = collective::all_reduce;
    collective_form form = collective_form::ring;
    collective_scope scope = collective_scope::by_level;
    bytes size{};  ///< of the buffer that is cut into chunks; of an all_gather or gather the part of one rank; of a slice_owner the integers
    int chunks = 1;
    int active_chunks = 1;                         ///< of a rank under way at once, in each level
    typename Model::time handover{};               ///< before each message that is sent and after the last that came
    std::optional<typename Model::rate> memory{};  ///< at which what came is added; none: in no time
    int sum_bytes = 8;                             ///< slice_owner: of one element on the way to the owner
    int value_bytes = 4;                           ///< and of one on the way back
};

}  // namespace rheo::inline v0
