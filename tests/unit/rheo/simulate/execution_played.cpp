// SPDX-License-Identifier: Apache-2.0
// A plan that is exported and played takes the time of its rehearsal where no links are shared, for all families; and, shared or not, that of its step
// when that is played without traces.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "execution_plans.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/simulate/chakra/play_traces.hpp"
#include "rheo/simulate/collectives/collective_time.hpp"
#include "rheo/simulate/played_step/play_step.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/topology/cluster.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/trace/chakra/lenient.hpp"

using namespace rheo;
using namespace test;

namespace {

constexpr device_description device{{1e9}, {1e8}, {}};
constexpr modelled_link link_of_all{microseconds(3.0), {1e7}};

seconds time_of(work_size const& work) { return std::max(flops{std::max<std::int64_t>(1, work.computed.count)} / device.compute, work.moved / device.traffic); }

/// A ring, in which each rank has a whole number of bytes.
seconds ring_time(bytes size, int ranks)
{
    std::vector<network_level<>> const levels{{ranks, network_topology::full, link_of_all}};
    return ranks < 2 ? seconds{} : *collective_time<free_network>(array_view<network_level<> const>{levels}, {.size = size});
}

/// The rehearsal of what is exported: operations by the roofline of the device, messages and rings on links that nobody shares.
modelled_step rehearsed(step_programs const& step, step_sizes const& sizes, int voters)
{
    modelled_step modelled{};
    for (std::size_t i = 0; i < step.programs.size(); ++i) {
        stage_costs costs;
        for (auto const& stage : sizes.pipelines[i].stages) {
            auto const time = [&](instruction_kind kind) { return time_of(work_of(stage, kind)); };
            costs.push_back({time(instruction_kind::forward), time(instruction_kind::backward), time(instruction_kind::input_gradient),
                             time(instruction_kind::weight_gradient), transfer_time(link_of_all, stage.activation),
                             transfer_time(link_of_all, stage.gradient)});
        }
        std::vector<bytes> boundary;
        for (auto const& stage : sizes.pipelines[i].stages) {
            boundary.push_back(stage.activation);
        }
        modelled.pipelines.push_back({step.programs[i], step.ranks[i], costs, boundary});
    }
    for (std::size_t u = 0; u < sizes.units.size(); ++u) {
        auto const holders = holders_of(array_view<program const>{step.programs}, reduction_id{static_cast<int>(u)}).size();
        modelled.reductions.push_back(ring_time(sizes.units[u], static_cast<int>(holders)));
    }
    modelled.sums = sizes.units;
    modelled.decide = ring_time(vote_bytes, voters);
    return modelled;
}

template <class Model>
seconds played(step_programs const& step, step_sizes const& sizes, int ranks)
{
    auto const files = files_of(step, sizes, ranks);
    chakra_trace_set traces{{}, with_all_ranks(order_execution(step, ranks).groups, ranks)};
    std::vector<std::string> texts;
    for (auto const& group : traces.groups) {
        texts.push_back(std::to_string(group.name));
    }
    std::vector<chakra_group_name> names;
    for (std::size_t g = 0; g < texts.size(); ++g) {
        names.push_back({texts[g], traces.groups[g].name});
    }
    for (std::int32_t r = 0; r < ranks; ++r) {
        auto read = read_leniently(chakra_bytes{files[static_cast<std::size_t>(r)]}, {{r, ranks, traces.groups}, names, false});
        REQUIRE(read.error() == "");
        traces.ranks.push_back(read->trace);
    }
    std::vector<network_level<>> const levels{{ranks, network_topology::full, link_of_all}};
    chakra_play_rules<Model> rules{};
    rules.devices.assign(static_cast<std::size_t>(ranks), device);
    auto const result = play_traces<Model>(traces, levels, rules);
    REQUIRE(result.error() == "");
    return result->end;
}

}  // namespace

TEST_CASE("execution_played: an export takes the rehearsal's time")
{
    auto const model = deep_gpt();
    auto const layers = static_cast<int>(model.layers.size());
    int tried = 0;
    for (auto const family : schedule_families()) {
        for (auto const& pipelines : {std::vector{4}, std::vector{2, 4}, std::vector{3, 2}, std::vector{4, 4}}) {
            std::vector<int> microbatches;
            int ranks = 0;
            for (auto const count : pipelines) {
                microbatches.push_back(2 * count);
                ranks += count;
            }
            auto const p = plan_on(family, pipelines, microbatches, layers);
            if (!p) {
                continue;
            }
            auto const step = *step_programs_of(*p, reduction_units(state_of(model), layers), layers);
            auto sizes = sizes_of(*p, model, small_shape, fp32);
            auto update = seconds{};
            for (auto& pipeline : sizes.pipelines) {
                std::fill(pipeline.updates.begin(), pipeline.updates.end(), work_size{flops{1000}, bytes{1000}});
                update = time_of(pipeline.updates.front());
            }
            auto modelled = rehearsed(step, sizes, ranks);
            modelled.update = update;
            auto const rehearsal = rehearse_step(modelled);
            REQUIRE(rehearsal.sound.ok);
            INFO(name_of(family) << " on " << pipelines.size() << " pipelines, the first of " << pipelines.front());
            auto const free = played<free_network>(step, sizes, ranks);
            CHECK(std::abs(free.count - rehearsal.end.count) <= 1e-9 * rehearsal.end.count);
            auto const shared = played<contended_network>(step, sizes, ranks);
            CHECK(shared.count >= free.count * (1 - 1e-9));
            std::vector<network_level<>> const levels{{ranks, network_topology::full, link_of_all}};
            auto const directly = play_step<free_network>(modelled, array_view<network_level<> const>{levels}, {.reduction = step_reduction::ring});
            REQUIRE(directly.error() == "");
            CHECK(std::abs(directly->end.count - free.count) <= 1e-9 * free.count);
            auto const contended = play_step<contended_network>(modelled, array_view<network_level<> const>{levels}, {.reduction = step_reduction::ring});
            REQUIRE(contended.error() == "");
            CHECK(std::abs(contended->end.count - shared.count) <= 1e-9 * shared.count);
            ++tried;
        }
    }
    CHECK(tried > 30);
}
