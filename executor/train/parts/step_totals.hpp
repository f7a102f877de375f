#pragma once
// SPDX-License-Identifier: Apache-2.0

// What all members reduce when their section is done, as one struct. Each field says how the values of two ranks become one: the largest, any, the
// first, the fewest, the sum. These are maxima of doubles and sums of integers, so the order of the members cannot matter. One list of the fields
// packs them for the reduction and unpacks its result.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "executor/state/collectives.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Where a loss or a gradient is not finite. The first one is that of the lowest microbatch, and of the lowest layer in it.
struct not_finite_place {
    microbatch_id microbatch;
    layer_id layer;

    friend bool operator==(not_finite_place, not_finite_place) = default;
};

struct step_totals {
    /// How many values the fields have that stand for several things.
    struct sizes {
        std::size_t tensors = 0;
        std::size_t scales = 0;
        std::size_t members = 0;
        std::size_t metered = 0;  ///< ranks whose energy is counted
    };

    step_totals() = default;
    explicit step_totals(sizes of)
        : squares(of.tensors), magnitudes(of.scales), slowness(of.members), meter_known(of.metered), meter_count(of.metered), leaving(of.members)
    {
    }

    // the largest of each
    std::vector<double> squares;                ///< tensor -> sum of squares of its reduced gradient, finite
    std::vector<float> magnitudes;              ///< scale -> the largest |g| of all contributions, finite
    std::vector<double> slowness;               ///< member -> how many times as long as by the profile it took; 0: not known
    std::vector<double> meter_known;            ///< metered rank -> 1 when any rank knows its count
    std::vector<double> meter_count;            ///< metered rank -> joules that its device has counted
    std::optional<std::size_t> changed_file{};  ///< number of a data file that was changed in place

    // any
    bool overflow = false;  ///< a contribution overflowed its scale
    bool stop_requested = false;
    bool checkpoint_wanted = false;
    bool reshape_requested = false;   ///< `rheo reshape` has requested a change of the plan
    bool transport_comes_up = false;  ///< communicators of NCCL
    bool transport_failed = false;    ///< NCCL, for good
    std::vector<bool> leaving;        ///< member -> it asks to leave after the step

    std::optional<not_finite_place> not_finite{};  ///< the first
    std::size_t device_clocks = 0;                 ///< that the device with the fewest has

    // sums
    loss_sum loss{};
    std::int64_t contributions = 0;  ///< (use, item) pairs of the section
    nanojoules computing{};          ///< what computations drew

    /// Targets of the step, at least one.
    double targets() const;

    /// Of the sum of gradients divided by the targets; NaN when something is not finite.
    double gradient_norm() const;

    friend bool operator==(step_totals const&, step_totals const&) = default;
};

step_scalars packed(step_totals const& totals);

/// @param totals in: of the sizes that were packed; out: the values
void unpack(step_scalars const& scalars, step_totals& totals);

/// In place on every member. @pre same sizes on all of them. @throws mpi::peer_lost
void all_reduce(mpi::messenger& messages, step_totals& totals);

}  // namespace rheo::inline v0
