// SPDX-License-Identifier: Apache-2.0
// A GPT's state goes from 4 tensor and 2 pipeline parallel ranks to 2 and 4: the compiler makes the plan and replays it.
#include <algorithm>
#include <cstdio>

#include <rheo/model/model.hpp>
#include <rheo/reshard/layout_check.hpp>
#include <rheo/reshard/mesh.hpp>

using namespace rheo;

constexpr std::vector<mesh_tensor> state() { return mesh_tensors(gpt_model({.vocabulary = 512, .context = 16, .width = 16, .heads = 4, .blocks = 4})); }

struct before {
    static constexpr array_layout layout() { return mesh_layout(state(), {.tensor = 4, .pipeline = 2}, even_cuts(6, 2)); }
};
struct after {
    static constexpr array_layout layout() { return mesh_layout(state(), {.tensor = 2, .pipeline = 4}, even_cuts(6, 4)); }
};

static_assert(sound_layout<before>);
static_assert(sound_layout<after>);
static_assert(proved_reshard<before, after>);

int main()
{
    for (auto const ranks : {rank_choice::pinned, rank_choice::any}) {
        auto const plan = plan_reshard({.from = before::layout(), .to = after::layout(), .ranks = ranks, .round_budget = kibibytes(16)});
        if (!plan) {
            std::puts(plan.error().c_str());
            return 1;
        }
        auto const& is = plan->certificate;
        std::printf("%s: %lld bytes in %zu transfers and %lld rounds\n", ranks == rank_choice::pinned ? "pinned ranks" : "any ranks",
                    static_cast<long long>(is.moved.value.count), plan->transfers.size(), static_cast<long long>(is.rounds.value));
        std::printf("  largest send %lld (least possible %lld), largest receive %lld\n", static_cast<long long>(is.largest_send.value.count),
                    static_cast<long long>(is.largest_send.bound.count), static_cast<long long>(is.largest_receive.value.count));
        for (auto const& [place, rank] : plan->taken) {
            std::printf("%splace %d: rank %d%s", place.value == 0 ? "  " : ", ", place.value, rank.value, place.value == 7 ? "\n" : "");
        }
    }
}
