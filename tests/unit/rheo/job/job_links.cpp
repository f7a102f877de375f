// SPDX-License-Identifier: Apache-2.0
// Jobs on links that differ: nodes that all have other links are another cluster, slow links of all ranks are slow levels, and links that are well again
// leave nothing behind.
#include <cstdint>
#include <vector>

#include "rheo/job/cluster_steps.hpp"
#include "rheo/job/sweep_step.hpp"
#include "rheo/model/grid.hpp"
#include "small_job.hpp"
#include "support/catch.hpp"

using namespace rheo;
using namespace test;

namespace {

constexpr modelled_link near{{1e-3}, {1e6}};
constexpr modelled_link far{{2e-3}, {2e5}};

/// Nodes of two devices.
job_description job_of_nodes(std::vector<int> pipelines, int nodes, modelled_link in_node = near, modelled_link between = far)
{
    auto job = small_job(2 * nodes, std::move(pipelines));
    job.cluster.levels = {{"node", {2, network_topology::full, in_node}}, {"rack", {nodes, network_topology::switched, between}}};
    job.request.node_size = 1;
    job.request = on_cluster(job.request, job.cluster);
    return job;
}

job_event event(job_event_kind kind, seconds at, int first, int last, double value = 1.0)
{
    return {{in_whole_nanoseconds(at)}, kind, rank_id{first}, rank_id{last}, value};
}

void check_alike(simulated_job const& a, simulated_job const& b)
{
    CHECK(in_s(a.account.end).count == Approx(in_s(b.account.end).count).epsilon(1e-9));
    CHECK(in_s(a.good.messages).count == Approx(in_s(b.good.messages).count).epsilon(1e-6));
    CHECK(in_s(a.account.recovery).count == Approx(in_s(b.account.recovery).count).epsilon(1e-9));
    CHECK(total_energy(a).count == Approx(total_energy(b).count).epsilon(1e-9));
}

}  // namespace

TEST_CASE("job_links: nodes that all differ are another cluster")
{
    for (auto const& sizes : {std::vector{2, 2, 2}, std::vector{3, 3}}) {
        auto other = job_of_nodes(sizes, 3, slowed_link(near, 3.0), slowed_link(far, 5.0));
        other.cluster.recovery->copy = {};
        auto different = job_of_nodes(sizes, 3);
        different.cluster.recovery->copy = {};
        different.cluster.different = {{0, 0, different.cluster.device, {slowed_link(near, 3.0), slowed_link(far, 5.0)}},
                                       {1, 2, different.cluster.device, {slowed_link(near, 3.0), slowed_link(far, 5.0)}}};
        different.request.machine = other.request.machine;  // the same plans
        auto const step = in_s(step_time(other));
        for (auto const policy : {job_policy::rheo, job_policy::replay}) {
            check_alike(simulated<contended_network>(different, policy, {lost(3, step * 2.5)}),
                        simulated<contended_network>(other, policy, {lost(3, step * 2.5)}));
            check_alike(simulated(different, policy, {lost(3, step * 2.5)}), simulated(other, policy, {lost(3, step * 2.5)}));
        }
        CHECK(sweep_step<contended_network>(different).played.time.count == Approx(sweep_step<contended_network>(other).played.time.count).epsilon(1e-9));
        CHECK(sweep_step<contended_network>(different).binds == sweep_step<contended_network>(other).binds);
    }
}

TEST_CASE("job_links: one slow node makes no step shorter")
{
    auto const job = job_of_nodes({2, 2, 2}, 3);
    auto const even = simulated(job);
    for (std::int32_t node = 0; node < 3; ++node) {
        auto slow = job;
        slow.cluster.different = {{node, node, job.cluster.device, {std::nullopt, slowed_link(far, 4.0)}}};
        auto const alone = simulated(slow);
        CHECK(alone.account.end > even.account.end);
        CHECK(simulated<contended_network>(slow).account.end >= alone.account.end);
    }
}

TEST_CASE("job_links: slow links of all ranks are slow levels")
{
    auto const job = job_of_nodes({2, 2, 2}, 3);
    auto slow = job_of_nodes({2, 2, 2}, 3, slowed_link(near, 4.0), slowed_link(far, 4.0));
    slow.request.machine = job.request.machine;
    check_alike(simulated<contended_network>(job, job_policy::rheo, {event(job_event_kind::link, {}, 0, 5, 4.0)}), simulated<contended_network>(slow));
    CHECK(simulated(job, job_policy::rheo, {event(job_event_kind::link, {}, 0, 5, 1.0)}) == simulated(job));
}

TEST_CASE("job_links: well links leave nothing behind")
{
    auto const job = job_of_nodes({2, 2, 2}, 3);
    auto const step = step_time(job);
    auto const at = in_s(step);
    auto const slow = event(job_event_kind::link, at * 1.5, 2, 3, 8.0);
    auto always = job;
    always.cluster.different = {{1, 1, job.cluster.device, {slowed_link(near, 8.0), slowed_link(far, 8.0)}}};
    auto const slow_step = step_time(always);
    CHECK(slow_step > step);
    auto const never_well = simulated(job, job_policy::rheo, {slow});
    CHECK(never_well.account.end.count == 2 * step.count + 4 * slow_step.count);  // from the next step on
    CHECK(never_well.plans == 2);
    auto const well = simulated(job, job_policy::rheo, {slow, event(job_event_kind::well, at * 2.0 + in_s(slow_step) * 0.5, 2, 3)});
    CHECK(well.account.end.count == 5 * step.count + slow_step.count);
    CHECK(well.plans == 2);
    // who returns is well: the last step is what it is where the links were never slow
    auto const last_step = [&](std::vector<job_event> events) {
        for (int const rank : {2, 3}) {
            events.push_back(lost(rank, at * 3.0));
        }
        events.push_back(back(2, at * 3.25));
        events.push_back(back(3, at * 3.25));
        auto longer = job;
        longer.steps = 30;
        auto const end = simulated(longer, job_policy::rheo, events).account.end;
        longer.steps = 29;
        return end - simulated(longer, job_policy::rheo, events).account.end;
    };
    CHECK(last_step({slow}) == last_step({}));
}

TEST_CASE("job_links: exchanges of a group take their links")
{
    auto job = job_of_nodes({2, 2}, 2);
    job.model = on_grid(job.model, 2);
    job.request.tensor.values = {2};
    job.request.node_size = 2;
    job.request = on_cluster(job.request, job.cluster);
    auto slow = job;
    slow.cluster.different = {{0, 1, job.cluster.device, {slowed_link(near, 6.0)}}};
    auto const even = simulated(job);
    CHECK(simulated(slow).good.computing > even.good.computing);
    check_alike(simulated(slow), [&] {
        auto all = job;
        all.cluster.levels[0].network.link = slowed_link(near, 6.0);
        all.request.machine.in_node = slowed_link(near, 6.0);
        return simulated(all);
    }());
    auto const by_event = simulated(job, job_policy::rheo, {event(job_event_kind::link, {}, 0, 0, 6.0)});
    CHECK(by_event.good.computing > even.good.computing);
    CHECK(by_event.good.computing < simulated(slow).good.computing);
}

TEST_CASE("job_links: quicker nodes are quicker than the others")
{
    auto job = small_job(4, {2, 2});
    job.cluster.different = {{0, 0, job.cluster.device, {}}};
    job.cluster.different[0].device.description.compute = job.cluster.device.description.compute * 2.0;
    auto all = job;
    all.cluster.different.clear();
    all.cluster.device = job.cluster.different[0].device;
    auto const machine = job.request.machine;
    CHECK(step_time(job) < step_time(small_job(4, {2, 2})));
    all.request.machine.device = all.cluster.device.description;
    job.request.machine = machine;
    CHECK(step_time(all) < step_time(small_job(4, {2, 2})));
}

TEST_CASE("job_links: a group updates as its slowest device does")
{
    auto job = job_of_nodes({2, 2}, 2);
    job.model = on_grid(job.model, 2);
    job.request.tensor.values = {2};
    job.request.node_size = 2;
    job.cluster.levels = {{"node", {1, network_topology::full, near}}, {"rack", {4, network_topology::switched, far}}};
    job.request = on_cluster(job.request, job.cluster);
    auto const p = make_plan(job.model, job.request, job.ranks)->plan;
    REQUIRE(largest_group(p) == 2);
    auto const update_on = [&](cluster_model const& cluster) { return cluster_steps<>{job.model, job.request, cluster}.step_of(p).update; };
    auto const even = update_on(job.cluster);
    for (int node = 0; node < 4; ++node) {  // of any member
        auto slow = job.cluster;
        slow.different = {{node, node, job.cluster.device, {}}};
        slow.different[0].device.description.traffic = job.cluster.device.description.traffic * 0.25;
        CHECK(update_on(slow) == even * 4.0);
    }
}
