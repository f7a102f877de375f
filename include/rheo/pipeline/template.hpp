#pragma once
// SPDX-License-Identifier: Apache-2.0

// A pipeline template (Oobleck, SOSP'23): how a pipeline of a certain size cuts the model. It
// is prepared before anything fails; a loss only chooses among templates. As a type it names model, cuts
// and schedule; as a value it has the cuts and what planning compares it by: its cost.

#include <utility>
#include <vector>

#include "rheo/model/model.hpp"
#include "rheo/partition/cuts.hpp"
#include "rheo/pipeline/cost.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/schedule/core/schedule.hpp"
#include "rheo/schedule/core/stage_placement.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct template_value {
    std::vector<layer_id> cuts;
    pipeline_cost cost;
    stage_placement where{};  ///< of the stages; empty: a position for each

    friend constexpr bool operator==(template_value const&, template_value const&) = default;
};

/// The number of ranks that an instance of the template takes: one per position.
template <class OnlyWhenCalled = void>
constexpr int size(template_value const& shape)
{
    return shape.where.positions.empty() ? stage_count(shape.cuts) : position_count(shape.where);
}

/// Where its stages live.
template <class OnlyWhenCalled = void>
constexpr stage_placement placement_of(template_value const& shape)
{
    auto where = shape.where;
    if (where.positions.empty()) {
        where.positions = loop_placement(stage_count(shape.cuts), 1);
    }
    return where;
}

/// The layers of each position, ascending.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<layer_span>> layers_by_position(template_value const& shape)
{
    auto const where = placement_of(shape);
    std::vector<std::vector<layer_span>> layers;
    for (int position = 0; position < size(shape); ++position) {
        layers.push_back(layers_at(shape.cuts, where, position));
    }
    return layers;
}

/// The pipeline of these ranks. @param by_position as many as the template takes
template <class OnlyWhenCalled = void>
constexpr pipeline_instance make_instance(template_value const& shape, array_view<rank_id const> by_position)
{
    expects(by_position.size() == static_cast<std::size_t>(size(shape)), "a pipeline takes as many ranks as its template has positions");
    pipeline_instance pipeline{shape.cuts, {}};
    for (auto const position : placement_of(shape).positions) {
        pipeline.stages.push_back({by_position[static_cast<std::size_t>(position)]});
    }
    return pipeline;
}

/// The template with these cuts, its cost estimated from forward and backward times per layer.
/// @pre the cuts end with the number of layers
template <class OnlyWhenCalled = void>
constexpr template_value make_template(std::vector<layer_id> bounds, array_view<seconds const> layer_times)
{
    expects(are_cuts(bounds) && at(bounds.back()) == layer_times.size(), "a template's cuts must ascend from layer 0 to the number of layers");
    std::vector<seconds> stage_times;
    for (int s = 0; s < stage_count(bounds); ++s) {
        auto const span = layers_of(bounds, stage_id{s});
        seconds time;
        for (auto l = span.begin; l < span.end; ++l) {
            time += layer_times[at(l)];
        }
        stage_times.push_back(time);
    }
    return {std::move(bounds), cost_of_stages(stage_times)};
}

namespace detail {

// Functions, because clang 16 does not end the life of a temporary container that stands in a template argument itself.
template <class Cuts>
constexpr int last_cut()
{
    return Cuts::describe().back().value;
}

template <class Model>
constexpr int layer_count()
{
    return static_cast<int>(Model::describe().layers.size());
}

template <int LastCut, int LayersOfTheModel>
struct cuts_of_model_check {
    static_assert(LastCut == LayersOfTheModel, "rheo: a template's cuts must end with the number of layers of its model");
    static constexpr bool passed = true;
};

}  // namespace detail

/// A template as a type. Cuts that are not the model's do not compile.
template <described_model Model, class Cuts, Schedule ScheduleType>
struct pipeline_template {
    using model_type = Model;
    using cuts_type = Cuts;
    using schedule_type = ScheduleType;

    static constexpr int size = Cuts::stages;

    static_assert(detail::cuts_of_model_check<detail::last_cut<Cuts>(), detail::layer_count<Model>()>::passed);

    /// Its value, given forward and backward times per layer. @pre one time per layer
    static constexpr template_value describe(array_view<seconds const> layer_times) { return make_template(Cuts::describe(), layer_times); }
};

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template std::vector<std::vector<layer_span>> layers_by_position<>(template_value const&);
#endif

}  // namespace rheo::inline v0
