// SPDX-License-Identifier: Apache-2.0
// The events of a played step: where nobody shares links, its computations, votes and updates are those of a rehearsal; each message has both ends.
#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "execution_plans.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/plan_step.hpp"
#include "rheo/simulate/played_step/play_step.hpp"
#include "rheo/simulate/played_step/step_recorder.hpp"
#include "rheo/trace/chrome.hpp"
#include "steps.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr modelled_link wire{{0.125}, {4096.0}};

/// Those that an executor times, in an order of their own.
std::vector<trace_event> timed(std::vector<trace_event> events)
{
    std::erase_if(events, [](auto const& e) { return is_instruction(e.activity) && !is_compute(static_cast<instruction_kind>(e.activity)); });
    auto const key = [](trace_event const& e) { return std::tuple{e.rank, e.activity, e.stage, e.item}; };
    std::sort(events.begin(), events.end(), [&](auto const& a, auto const& b) { return key(a) < key(b); });
    return events;
}

}  // namespace

TEST_CASE("step_recorder: on free links events are those rehearsed")
{
    auto const model = test::deep_gpt();
    int plans = 0;
    for (auto const family : schedule_families()) {
        auto const p = test::plan_on(family, {4, 2}, {8, 8}, static_cast<int>(model.layers.size()));
        if (!p) {
            continue;
        }
        INFO(name_of(family));
        auto step = step_of(*p, model, test::small_shape, {{1e6}, {1e6}, wire, {0.25}});
        step.sums = {};
        for (auto& reduction : step.reductions) {
            reduction = reduction > seconds{} ? wire.latency * 2.0 : seconds{};
        }
        auto const rehearsed = timed(rehearse_step(step).events);
        step_recorder recorder{step};
        std::vector<network_level<>> const levels{{7, network_topology::full, wire}};
        auto const played = play_step<free_network>(step, array_view{levels}, {}, {}, recorder);
        REQUIRE(played.error() == "");
        recorder.end(*played);
        auto const events = recorder.take();
        auto const recorded = timed(events);
        REQUIRE(recorded.size() == rehearsed.size());
        for (std::size_t k = 0; k < recorded.size(); ++k) {
            INFO("rank " << recorded[k].rank.value << ' ' << label_of(recorded[k]));
            CHECK(label_of(recorded[k]) == label_of(rehearsed[k]));
            CHECK(recorded[k].peer == rehearsed[k].peer);
            if (recorded[k].activity != activity::decide) {  // a holder of a sum is through when its own messages have come
                CHECK(recorded[k].start.count == Approx(rehearsed[k].start.count).margin(1e-9));
            }
            CHECK(recorded[k].end.count == Approx(rehearsed[k].end.count).margin(1e-9));
        }
        std::map<std::tuple<rank_id, rank_id, bool>, int> messages;  // sends are counted up, receives down
        for (auto const& e : events) {
            auto const s = stream_of(e.activity);
            if (s == trace_stream::send) {
                ++messages[{e.rank, e.peer, e.activity == activity::send_activation}];
                CHECK((e.end - e.start).count == Approx((wire.latency + e.size / wire.bandwidth).count));
            } else if (s == trace_stream::receive) {
                --messages[{e.peer, e.rank, e.activity == activity::receive_activation}];
            }
        }
        CHECK(!messages.empty());
        CHECK(std::all_of(messages.begin(), messages.end(), [](auto const& m) { return m.second == 0; }));
        ++plans;
    }
    CHECK(plans > 10);
}
