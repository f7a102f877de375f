#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a rank keeps of a parameter tensor under a dtype policy, part by part. Three parts are committed state: the optimizer's copy and its two
// moments; the others belong to the step in progress. Accumulators count once per use on the rank; sums in 32 bits have a scale
// and a maximum per row of the tensor. The reduced gradient is a buffer of its own wherever sums must be joined before the update can
// read them, with a smaller one in which they are joined; the host executor always has it.

#include <algorithm>
#include <cstdint>

#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/shape.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Committed state per parameter in float: master and two moments.
inline constexpr std::int64_t committed_bytes_per_parameter = 12;

/// While a step runs on host ranks: an int64 accumulator and the reduced float gradient.
inline constexpr std::int64_t working_bytes_per_parameter = 12;

/// Where the update finds the gradient.
enum class gradient_buffer : std::uint8_t {
    joined,   ///< in a buffer, with another in which sums are joined: several ranks hold the tensor, or the rank has several uses of it
    reduced,  ///< in a buffer: host ranks
    none,     ///< in the one accumulator there is
};

/// What a rank keeps to join the exact sums of a tensor, of its uses and of other ranks: an eighth of them, from 8 KiB to 4 MiB. Pieces of the sums go through it.
constexpr bytes reduction_buffer_bytes(std::int64_t elements, dtype accumulate)
{
    constexpr bytes least = kibibytes(8);
    constexpr bytes most = mebibytes(4);
    return std::clamp(bytes{elements * size_of(accumulate) / 8}, least, most);
}

/// The parts of what a rank keeps of parameters.
struct parameter_bytes {
    bytes master;        ///< the optimizer's copy
    bytes moments;       ///< two of that size
    bytes stored;        ///< the copy that is computed with, where it is of another type than the master
    bytes accumulators;  ///< exact sums, with scale and maximum of each row where these are per row
    bytes reduced;       ///< the gradient as the update reads it, of the type that is computed in, and what sums are joined in

    constexpr parameter_bytes& operator+=(parameter_bytes const& other)
    {
        master += other.master;
        moments += other.moments;
        stored += other.stored;
        accumulators += other.accumulators;
        reduced += other.reduced;
        return *this;
    }
    friend constexpr bool operator==(parameter_bytes const&, parameter_bytes const&) = default;
};

constexpr bytes total(parameter_bytes const& parts) { return parts.master + parts.moments + parts.stored + parts.accumulators + parts.reduced; }

/// What a rank has of the parts if it keeps a share of those that optimizer shards divide (plan/optimizer_shards.hpp).
constexpr parameter_bytes with_optimizer_share(parameter_bytes parts, double share)
{
    auto const of = [share](bytes whole) { return share < 1.0 ? bytes{static_cast<std::int64_t>(static_cast<double>(whole.count) * share)} : whole; };
    parts.moments = of(parts.moments);
    parts.master = parts.stored > bytes{} ? of(parts.master) : parts.master;
    return parts;
}

/// A scale (int) and a maximum (float).
inline constexpr std::int64_t scale_bytes_per_row = 8;

/// The parts for a tensor. @param uses of it on the rank, each with an accumulator
constexpr parameter_bytes parameter_bytes_of(tensor_shape shape, dtype_policy const& policy = fp32, gradient_buffer buffer = gradient_buffer::reduced,
                                             int uses = 1)
{
    auto const count = elements(shape);
    auto const master = count * size_of(policy.master);
    auto const sums = count * size_of(policy.accumulate) + (policy.accumulate == dtype::i32 ? shape.rows * scale_bytes_per_row : 0);
    return {.master = {master},
            .moments = {2 * master},
            .stored = {policy.stores_apart() ? count * size_of(policy.storage) : 0},
            .accumulators = {uses * sums},
            .reduced = bytes{buffer == gradient_buffer::none ? 0 : count * size_of(policy.compute)} +
                       (buffer == gradient_buffer::joined ? reduction_buffer_bytes(count, policy.accumulate) : bytes{})};
}

}  // namespace rheo::inline v0
