#pragma once
// SPDX-License-Identifier: Apache-2.0

// Why a schedule cannot be made at a size: one list of mistakes with one sentence each, for the
// compiler (proved.hpp) and at run time.

#include <array>
#include <cstddef>
#include <cstdint>

namespace rheo::inline v0 {

enum class shape_fault : std::uint8_t {
    none,
    ranks,
    microbatches,
    chunks_not_taken,
    group_not_taken,
    slices_not_taken,
    counts,
    odd_ranks,
    odd_microbatches,
    odd_chunks,
    fewer_than_twice_the_ranks,
    fewer_than_twice_the_ranks_less_one,
    cyclic,
};

/// The sentence of a fault.
constexpr char const* sentence_of(shape_fault fault)
{
    constexpr std::array sentences{
        "the schedule can be made",
        "a schedule needs at least one rank",
        "a step has no negative number of microbatches",
        "this schedule has no choice of chunks per rank",
        "this schedule has no groups of microbatches",
        "this schedule does not cut sequences into slices",
        "chunks, group and slices count from one",
        "this schedule runs in two directions and needs an even number of ranks",
        "this schedule runs in two directions and needs an even number of microbatches",
        "a wave goes down the ranks and up again: it needs an even number of chunks per rank",
        "this schedule needs at least twice as many microbatches as ranks",
        "this schedule needs at least 2 p - 1 microbatches on p ranks",
        "with this group of microbatches the ranks would wait for each other in a circle",
    };
    return sentences[static_cast<std::size_t>(fault)];
}

}  // namespace rheo::inline v0
