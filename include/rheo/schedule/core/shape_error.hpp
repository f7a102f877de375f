#pragma once
// SPDX-License-Identifier: Apache-2.0

// Why a schedule cannot be made at a size: one list of mistakes with one sentence each, for the
// compiler (proved.hpp) and at run time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "rheo/units/expects.hpp"
#include "rheo/units/fixed_text.hpp"

namespace rheo::inline v0 {

enum class shape_error : std::uint8_t {
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
    cyclic,
    written_for_another_size,
    unknown,
};

namespace detail {

inline constexpr std::array error_messages{
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
    "with this group of microbatches the ranks would wait for each other in a circle",
    "this schedule was written down for another number of ranks or microbatches",
    "nothing is known of this schedule but its name",
};

template <std::size_t Fault>
constexpr auto stated_fault()
{
    constexpr std::string_view message = error_messages[Fault];
    return stated<message.size()>{message.data()};
}

template <stated Sentence>
constexpr void refuse_if(bool is_so, std::string_view message)
{
    expects(!is_so, message.data());
}

template <std::size_t... Faults>
constexpr void expect_none(std::size_t fault, std::index_sequence<Faults...>)
{
    (refuse_if<stated_fault<Faults + 1>()>(fault == Faults + 1, error_messages[Faults + 1]), ...);
}

/// Throws the sentence of a fault; in a constant expression the compiler shows its words.
template <class OnlyWhenCalled = void>
constexpr void expect_none(shape_error fault)
{
    expect_none(static_cast<std::size_t>(fault), std::make_index_sequence<error_messages.size() - 1>{});
}

}  // namespace detail

/// The sentence of a fault.
constexpr char const* message_of(shape_error fault) { return detail::error_messages[static_cast<std::size_t>(fault)]; }

}  // namespace rheo::inline v0
