// SPDX-License-Identifier: Apache-2.0
// Accumulators between attempts: after clear_accumulators nothing of the last attempt is left, and each has its tensor's present scale.
#include "executor/state/resident_state.hpp"

#include <algorithm>

#include "executor/host/backend.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"
#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("resident_state: cleared accumulators equal new ones")
{
    auto const info = state_of(gpt_model({.vocabulary = 19, .context = 6, .width = 8, .heads = 2, .blocks = 1}));
    for (auto const& policy : {fp32, fp32_i32}) {
        host_backend backend{1, policy};
        resident_state state{info, backend};
        resident_state expected{info, backend};
        std::fill(state.scales.begin(), state.scales.end(), 11);
        for (use_id use{0}; at(use) < info.uses.size(); ++use) {
            auto& a = state.accumulator(use);
            std::fill(a.sums.begin(), a.sums.end(), 5);
            std::fill(a.sums_in_32.begin(), a.sums_in_32.end(), 6);
            std::fill(a.rows.begin(), a.rows.end(), row_sum_state{11, 7});
            a.state = {.scale_log2 = 11, .max_abs = 8, .overflow = true, .not_finite = true};
            a.not_finite_at = microbatch_id{3};
        }
        for (std::size_t i = 0; i < state.scales.size(); ++i) {
            state.scales[i] = expected.scales[i] = 20 + static_cast<int>(i % 3);
        }
        state.clear_accumulators();
        for (use_id use{0}; at(use) < info.uses.size(); ++use) {
            CAPTURE(use.value);
            auto const& a = state.accumulator(use);
            auto const& b = expected.accumulator(use);
            CHECK(a.sums == b.sums);
            CHECK(a.sums_in_32 == b.sums_in_32);
            CHECK(a.rows == b.rows);
            CHECK(a.state == b.state);
            CHECK(a.not_finite_at == b.not_finite_at);
            CHECK(std::all_of(a.sums.begin(), a.sums.end(), [](auto sum) { return sum == 0; }));
        }
    }
}
