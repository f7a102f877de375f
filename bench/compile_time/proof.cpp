// SPDX-License-Identifier: Apache-2.0
// What compile_time.sh gives the compiler to plan and to prove for RANKS and MICROBATCHES: the 1F1B schedule of one pipeline
// over all ranks; and a whole plan, from the times of 24 layers to exact templates, their coverage, the sizes and shares of
// pipelines that survive a loss, and the end of the product of their programs with all reductions, a tied tensor among them.
#include <vector>

#include "rheo/pipeline/covers.hpp"
#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/plan_templates.hpp"
#include "rheo/schedule/check/activations.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/families/proved.hpp"
#include "rheo/schedule/transform/reductions.hpp"

constexpr bool planned_and_proved()
{
    constexpr int layers = 24;
    std::vector<rheo::seconds> times;
    for (int l = 0; l < layers; ++l) {
        times.push_back(rheo::microseconds(900 + 31 * (l % 7)));
    }
    auto const ready = rheo::plan_templates(times, {.from = 2, .to = RANKS});
    if (!rheo::covers(ready, {.from = 4, .to = RANKS, .failures = 1})) {
        return false;
    }
    auto const chosen = *rheo::instantiate(ready, {.ranks = RANKS, .failures = 1, .microbatches = MICROBATCHES});
    std::vector<rheo::program> programs;
    for (std::size_t p = 0; p < chosen.sizes.size(); ++p) {
        auto const& cuts = rheo::template_of_size(ready, chosen.sizes[p]).cuts;
        rheo::units_by_stage units;
        for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
            units.emplace_back();
            for (int l = cuts[s].value; l < cuts[s + 1].value; ++l) {
                units.back().push_back(rheo::reduction_id{l});
            }
            if (s == 0 || s + 2 == cuts.size()) {
                units.back().push_back(rheo::reduction_id{layers});
            }
        }
        auto const compute = rheo::one_f_one_b::program({.ranks = chosen.sizes[p], .microbatches = chosen.shares[p]});
        if (!rheo::complete(compute, chosen.shares[p]).ok) {
            return false;
        }
        programs.push_back(rheo::with_reductions(rheo::lower(compute), units, layers));
        if (!rheo::reductions_in_place(programs.back(), units, layers).ok) {
            return false;
        }
    }
    return programs.size() >= 2 && rheo::deadlock_free<rheo::rendezvous>(rheo::array_view<rheo::program const>{programs}).ok;
}

static_assert(rheo::proved<rheo::one_f_one_b, rheo::schedule_shape{.ranks = RANKS, .microbatches = MICROBATCHES}>);
static_assert(rheo::peak_activations(rheo::one_f_one_b::program({.ranks = RANKS, .microbatches = MICROBATCHES})) <= RANKS);
static_assert(planned_and_proved());

int main() {}
