#pragma once
// SPDX-License-Identifier: Apache-2.0

// The rule by which pipelines are chosen when members change. Copies of state cost time once; a longer step costs time until the next loss.
// With n ranks whose mean time between losses is T, the next loss is expected after T / n. In that time the quickest choice, with steps
// of t*, would make T / n / t* steps; a choice with steps of t takes T / n x (t / t* - 1) longer for them. So a choice that copies b bytes over a link of
// rate r costs
//
//     b / r  +  t, where a step is redone  +  T / n x (t / t* - 1)
//
// and the cheapest is taken. Of the step only the ratio t / t* matters in the last term, so modelled times serve where only their
// ratios are right. All copies are counted over one link, as if they met in one switch or one memory: that is what an assignment
// makes least, and never too little. Whole nanoseconds and bytes enter, and the operations on them have one order, so every rank finds the same price.

#include <algorithm>
#include <cstdint>

#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What planning knows of losses and of copies.
struct loss_model {
    seconds mtbf{10'000 * 3600.0};    ///< mean time between losses of one rank
    bytes_per_second copy_rate{5e9};  ///< of the link that all copies share

    friend constexpr bool operator==(loss_model, loss_model) = default;
};

/// The mean time until one of so many ranks is lost. @pre ranks >= 1
constexpr seconds time_to_next_loss(loss_model losses, int ranks)
{
    expects(ranks >= 1, "no ranks cannot be lost");
    return losses.mtbf / static_cast<double>(ranks);
}

/// The price of choices, as above.
struct recovery_price {
    seconds until_next_loss;  ///< T / n
    bytes_per_second copy_rate;
    seconds quickest;  ///< t*: the shortest step of all choices
    bool redo_step;    ///< a step is redone

    /// @pre quickest > 0, copy_rate > 0
    constexpr seconds operator()(seconds step, bytes moved) const
    {
        auto const longer =
            static_cast<double>(in_whole_nanoseconds(step) - in_whole_nanoseconds(quickest)) / static_cast<double>(in_whole_nanoseconds(quickest));
        return moved / copy_rate + (redo_step ? step : seconds{}) + until_next_loss * longer;
    }

    /// The longest step, in whole nanoseconds and at most `longest`, that may cost less than `price` though it moves so few bytes; one that is
    /// a nanosecond too long is possible, none too short.
    constexpr std::int64_t longest_step_below(seconds price, bytes moved, std::int64_t longest) const
    {
        auto const each = until_next_loss.count / quickest.count + (redo_step ? 1.0 : 0.0);  // a second of a step
        auto const count = (price - moved / copy_rate + until_next_loss).count / each * 1e9;
        return count >= static_cast<double>(longest) ? longest : std::max(in_whole_nanoseconds(quickest), static_cast<std::int64_t>(count) + 1);
    }
};

}  // namespace rheo::inline v0
