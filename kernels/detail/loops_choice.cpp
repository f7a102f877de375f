// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "kernels/detail/loops.hpp"

namespace rheo::inline v0::detail {

extern loop_table const loops_baseline;
#ifdef RHEO_LOOP_LEVELS_X86
extern loop_table const loops_v3;
extern loop_table const loops_v4;

namespace {

bool runs_v3() { return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("bmi2") != 0; }

bool runs_v4()
{
    return runs_v3() && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
           __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512cd") != 0;
}

}  // namespace
#endif

loop_table const* loops_of_level(char const* level)
{
    std::string_view const name{level};
#ifdef RHEO_LOOP_LEVELS_X86
    if (name == "v4") {
        return runs_v4() ? &loops_v4 : nullptr;
    }
    if (name == "v3") {
        return runs_v3() ? &loops_v3 : nullptr;
    }
#endif
    return name == "baseline" ? &loops_baseline : nullptr;
}

loop_table const& loops()
{
    static loop_table const& chosen = []() -> loop_table const& {
        for (char const* level : {"v4", "v3"}) {
            if (auto const* table = loops_of_level(level)) {
                return *table;
            }
        }
        return loops_baseline;
    }();
    return chosen;
}

}  // namespace rheo::inline v0::detail
