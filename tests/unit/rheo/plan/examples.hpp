#pragma once
// SPDX-License-Identifier: Apache-2.0

// Plans to test with: one written by hand, and random ones of every form that planning and recovery can make.

#include <algorithm>
#include <random>
#include <vector>

#include "rheo/pipeline/template.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/families/schedule_form.hpp"

namespace test {

using namespace rheo;

/// Six layers, 1F1B: ranks 2, 0 as two stages and 5, 1, 4 as three; rank 3 spare; microbatch 4 is partly done.
constexpr plan example()
{
    auto const cuts = [](std::initializer_list<int> values) {
        std::vector<layer_id> result;
        for (auto const v : values) {
            result.push_back(layer_id{v});
        }
        return result;
    };
    plan p;
    p.schedule = one_f_one_b{};
    p.pipelines.push_back({cuts({0, 3, 6}), {{rank_id{2}}, {rank_id{0}}}});
    p.pipelines.push_back({cuts({0, 1, 3, 6}), {{rank_id{5}}, {rank_id{1}}, {rank_id{4}}}});
    p.work.push_back({{microbatch_id{0}}, {microbatch_id{1}}});
    p.work.push_back({{microbatch_id{2}}, {microbatch_id{3}}, {microbatch_id{4}, layer_id{2}}});
    p.spares = {rank_id{3}};
    return p;
}

inline std::vector<layer_id> random_cuts(std::mt19937& draw, int layers, int stages)
{
    std::vector<int> inner;
    for (int l = 1; l < layers; ++l) {
        inner.push_back(l);
    }
    std::shuffle(inner.begin(), inner.end(), draw);
    inner.resize(static_cast<std::size_t>(stages - 1));
    inner.push_back(0);
    inner.push_back(layers);
    std::sort(inner.begin(), inner.end());
    std::vector<layer_id> cuts;
    for (auto const l : inner) {
        cuts.push_back(layer_id{l});
    }
    return cuts;
}

/// A pipeline of so many ranks, from `first` on, cut and placed for the family where it can be.
inline pipeline_instance instance_for(std::mt19937& draw, any_schedule family, int layers, int ranks, int first)
{
    auto const form = form_of(family, ranks);
    bool const fits = form && stages_per_copy(form->where) <= layers;
    template_value const shape{random_cuts(draw, layers, fits ? stages_per_copy(form->where) : ranks), {}, fits ? form->where : stage_placement{}};
    std::vector<rank_id> by_position;
    for (int position = 0; position < ranks; ++position) {
        by_position.push_back(rank_id{first + position});
    }
    return make_instance(shape, by_position);
}

/// Some pipelines over a model of `layers` layers; microbatches dealt at random (a pipeline may get none), and in a partial plan
/// each done down to some layer, to none, or left out.
inline plan random_plan(std::mt19937& draw, any_schedule schedule, int layers, int microbatches, bool partial)
{
    auto const below = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
    plan p;
    p.schedule = schedule;
    int rank = 0;
    for (int pipelines = 1 + below(4); pipelines > 0; --pipelines) {
        int const ranks = 1 + below(std::min(layers, 5));
        p.pipelines.push_back(instance_for(draw, p.schedule, layers, ranks, rank));
        rank += ranks;
        p.work.emplace_back();
    }
    for (int m = 0; m < microbatches; ++m) {
        auto& list = p.work[static_cast<std::size_t>(below(static_cast<int>(p.work.size())))];
        int const deepest = partial ? below(layers + 2) : 0;
        if (deepest <= layers) {
            list.push_back({microbatch_id{m}, deepest == layers ? no_backward : layer_id{deepest}});
        }
    }
    return p;
}

}  // namespace test
