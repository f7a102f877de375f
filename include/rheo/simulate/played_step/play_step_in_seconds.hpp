#pragma once
// SPDX-License-Identifier: Apache-2.0

// A step on a network of any model, with its times in seconds: what jobs and sweeps reckon with.

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/simulate/network/model_time.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/simulate/played_step/play_step.hpp"
#include "rheo/simulate/played_step/played_step.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

inline rank_step_times<> in_seconds(rank_step_times<whole_nanoseconds> const& times)
{
    rank_step_times<> converted;
    for (std::size_t k = 0; k < rank_step_parts<>.size(); ++k) {
        converted.*rank_step_parts<>[k] = in_seconds(times.*rank_step_parts<whole_nanoseconds>[k]);
    }
    return converted;
}

/// Hands what happens in whole nanoseconds on to an observer of seconds.
template <class Observer>
class observer_in_seconds {
public:
    static constexpr bool sees_messages = observes_messages<Observer>;

    explicit observer_in_seconds(Observer& observer) : observer_{&observer} {}

    void operator()(std::uint32_t row, std::size_t place, whole_nanoseconds begin, whole_nanoseconds end)
    {
        (*observer_)(row, place, in_seconds(begin), in_seconds(end));
    }

    void enters(std::size_t number, std::uint32_t from, std::uint32_t to, instruction send) { observer_->enters(number, from, to, send); }

    void arrives(std::size_t number, whole_nanoseconds entered, whole_nanoseconds arrived)
    {
        observer_->arrives(number, in_seconds(entered), in_seconds(arrived));
    }

private:
    Observer* observer_;
};

}  // namespace detail

/// As play_step.
template <class Model, class Observer>
result<played_step<>> play_step_in_seconds(modelled_step const& step, array_view<network_level<typename Model::link> const> levels,
                                           step_rules<Model> const& rules, step_losses const& losses, Observer&& observer)
{
    if constexpr (std::is_same_v<typename Model::time, seconds>) {
        return play_step<Model>(step, levels, rules, losses, observer);
    } else {
        detail::observer_in_seconds<std::remove_reference_t<Observer>> seen{observer};
        auto const played = play_step<Model>(step, levels, rules, losses, seen);
        if (!played) {
            return failure{played.error()};
        }
        played_step<> converted{{}, detail::in_seconds(played->end)};
        for (auto const& row : played->rows) {
            converted.rows.push_back({row.pipeline, row.position, row.rank, row.done, detail::in_seconds(row.end), detail::in_seconds(row.times)});
        }
        return converted;
    }
}

template <class Model>
result<played_step<>> play_step_in_seconds(modelled_step const& step, array_view<network_level<typename Model::link> const> levels,
                                           step_rules<Model> const& rules = {}, step_losses const& losses = {})
{
    return play_step_in_seconds<Model>(step, levels, rules, losses, no_step_observer{});
}

}  // namespace rheo::inline v0
