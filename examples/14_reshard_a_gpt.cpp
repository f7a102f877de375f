// SPDX-License-Identifier: Apache-2.0
// A GPT's state goes from 4 tensor and 2 pipeline parallel ranks to 2 and 4: the compiler makes the plans and replays one.
#include <array>
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

struct summary {
    reshard_certificate certificate;
    std::size_t transfers;
    std::array<rank_id, 8> taken;  ///< by place
};

constexpr summary summary_of(rank_choice ranks)
{
    auto const [plan, fault] = try_reshard({.from = before::layout(), .to = after::layout(), .ranks = ranks, .round_budget = kibibytes(16)});
    summary made{plan.certificate, plan.transfers.size(), {}};
    for (auto const& [place, rank] : plan.taken) {
        made.taken[at(place)] = rank;
    }
    return made;
}

constexpr auto pinned = summary_of(rank_choice::pinned);
constexpr auto any = summary_of(rank_choice::any);

void print(char const* ranks, summary const& made)
{
    auto const& is = made.certificate;
    std::printf("%s: %lld bytes in %zu transfers and %lld rounds\n", ranks, static_cast<long long>(is.moved.value.count), made.transfers,
                static_cast<long long>(is.rounds.value));
    std::printf("  largest send %lld (least possible %lld), largest receive %lld\n", static_cast<long long>(is.largest_send.value.count),
                static_cast<long long>(is.largest_send.bound.count), static_cast<long long>(is.largest_receive.value.count));
}

int main()
{
    print("pinned ranks", pinned);
    print("any ranks", any);
    for (std::size_t place = 0; place < any.taken.size(); ++place) {
        std::printf("%splace %zu: rank %d%s", place == 0 ? "  " : ", ", place, any.taken[place].value, place == 7 ? "\n" : "");
    }
}
