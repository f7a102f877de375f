// SPDX-License-Identifier: Apache-2.0
// A user's schedule that forgets the backward of its last microbatch.
// expect: rheo: this schedule leaves out an instruction, repeats one or puts it on a wrong rank
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/proved.hpp"

struct forgetful {
    static constexpr std::string_view name = "forgetful";
    static constexpr rheo::program program(rheo::schedule_shape shape) { return program(shape.ranks, rheo::whole_step(shape.microbatches)); }
    static constexpr rheo::program program(int ranks, rheo::array_view<rheo::stage_work const> work)
    {
        auto result = rheo::gpipe::program(ranks, work);
#ifdef RHEO_MISTAKE
        result.rows.back().pop_back();
#endif
        return result;
    }
};

static_assert(rheo::proved<forgetful, rheo::schedule_shape{.ranks = 3, .microbatches = 4}>);
