// SPDX-License-Identifier: Apache-2.0
// A user's schedule whose first rank wants the gradient of a microbatch that it has not sent on its way.
// expect: rheo: in this schedule ranks wait for each other in a circle: its compute order is cyclic
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/families/proved.hpp"

struct eager_backward {
    static constexpr std::string_view name = "eager-backward";
    static constexpr rheo::program program(rheo::schedule_shape shape) { return program(shape.ranks, rheo::whole_step(shape.microbatches)); }
    static constexpr rheo::program program(int ranks, rheo::array_view<rheo::stage_work const> work)
    {
        auto result = rheo::one_f_one_b::program(ranks, work);
#ifdef RHEO_MISTAKE
        for (auto& row : result.rows) {  // 1F1B without its forwards ahead, and the later microbatch first on the others
            auto const other = row.front();
            row.front() = row.back();
            row.back() = other;
        }
#endif
        return result;
    }
};

static_assert(rheo::proved<eager_backward, rheo::schedule_shape{.ranks = 3, .microbatches = 4}>);
