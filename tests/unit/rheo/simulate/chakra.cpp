// SPDX-License-Identifier: Apache-2.0
// Execution traces played on networks: what each rule means, laws on traces drawn at random, and what cannot be played.
#include "rheo/simulate/chakra/play_traces.hpp"

#include <random>
#include <string>
#include <vector>

#include "rheo/simulate/network/network_model.hpp"
#include "support/catch.hpp"
#include "traced_job.hpp"

using namespace rheo;

namespace {

constexpr network_topology topologies[] = {network_topology::ring, network_topology::switched, network_topology::full};

/// 1 us, 1000 bytes per us.
std::vector<network_level<>> links(int members, network_topology topology = network_topology::full)
{
    return {{members, topology, {microseconds(1.0), {1e9}}}};
}

std::vector<network_level<integer_link>> whole_links(int members, network_topology topology = network_topology::full)
{
    return {{members, topology, {1000.0, {1.0}}}};
}

template <class Model>
played_traces<typename Model::time> played(test::traced_job const& job, std::vector<network_level<typename Model::link>> const& levels,
                                           chakra_play_rules<Model> const& rules = {})
{
    auto const result = play_traces<Model>(job.traces, levels, rules);
    INFO(result.error());
    REQUIRE(result);
    return *result;
}

template <class Time>
std::vector<double> ends_in_micros(played_traces<Time> const& played)
{
    std::vector<double> ends;
    for (auto const& rank : played.ranks) {
        ends.push_back(std::is_same_v<Time, seconds> ? static_cast<double>(rank.end.count) * 1e6 : static_cast<double>(rank.end.count) / 1000.0);
    }
    return ends;
}

template <class Model>
std::string refused(test::traced_job const& job, std::vector<network_level<typename Model::link>> const& levels, chakra_play_rules<Model> const& rules = {})
{
    auto const result = play_traces<Model>(job.traces, levels, rules);
    CHECK_FALSE(result);
    return result.error();
}

chakra_play_rules<integer_contended_network> consumers() { return {.of_consumers = true, .chunks = 4, .handover = {10}, .group_handover = {10}}; }

}  // namespace

TEST_CASE("chakra: a message enters when both ends have begun")
{
    test::traced_job job{2};
    job.send(0, 1, 4000);
    job.receive(1, 0, 4000, 0, {job.compute(1, 10)});
    auto const times = played<free_network>(job, links(2));
    CHECK(times.ranks[0].end.count == Approx(15e-6));  // 10, then 1 + 4
    CHECK(times.ranks[0].exposed.count == Approx(5e-6));
    CHECK(times.ranks[0].busy.count == 0.0);
    CHECK(idle_time(times, 0).count == Approx(10e-6));
    CHECK(times.ranks[1].busy.count == Approx(10e-6));
    CHECK(times.ranks[1].exposed.count == Approx(5e-6));
    auto const eager = played<integer_contended_network>(job, whole_links(2), consumers());
    CHECK(ends_in_micros(eager) == std::vector{5.0, 10.0});  // it has come when its receive begins
    CHECK(eager.ranks[0].exposed == whole_nanoseconds{5000});
    CHECK(eager.ranks[1].exposed == whole_nanoseconds{0});
}

TEST_CASE("chakra: consumers have one message under way at once")
{
    test::traced_job job{3};
    for (int const to : {1, 2}) {
        job.send(0, to, 2000, to);
        job.receive(static_cast<std::size_t>(to), 0, 2000, to);
    }
    CHECK(ends_in_micros(played<integer_contended_network>(job, whole_links(3), consumers())) == std::vector{6.0, 3.0, 6.0});
    auto const both = played<contended_network>(job, links(3));
    CHECK(both.end.count == Approx(3e-6));
    auto const shared = played<contended_network>(job, links(3, network_topology::switched));  // the link to the switch carries both: 2 + 2 + 2 x 1
    CHECK(shared.end.count == Approx(6e-6));
    CHECK(played<free_network>(job, links(3, network_topology::switched)).end.count == Approx(4e-6));
}

TEST_CASE("chakra: computations take their duration or a roofline")
{
    test::traced_job job{2};
    chakra_step work{.duration_micros = 0, .bytes = 3000, .operations = 4'000'000, .type = chakra_node_type::comp};
    job.add(0, work);
    job.add(1, work);
    work.duration_micros = 7;
    job.add(0, work);  // a device computes one after the other
    work.on_host = true;
    job.add(1, work);  // beside the host
    chakra_play_rules<free_network> rules;
    CHECK(ends_in_micros(played<free_network>(job, links(2), rules))[0] == Approx(7.0));
    rules.devices = {{{1e12}, {1e9}, {1}}, {{1e12}, {1e8}, {1}}};
    auto const times = played<free_network>(job, links(2), rules);
    CHECK(times.ranks[0].end.count == Approx(11e-6));  // 4 us of operations
    CHECK(times.ranks[1].end.count == Approx(30e-6));  // 30 us of bytes
    CHECK(times.ranks[1].busy.count == Approx(30e-6));
    CHECK(played<integer_contended_network>(job, whole_links(2), consumers()).ranks[0].end == whole_nanoseconds{7001});
}

TEST_CASE("chakra: every collective ends, at all members")
{
    for (int what = 0; what < chakra_collective_count; ++what) {
        for (auto const form : {std::optional<collective_form>{}, std::optional{collective_form::ring}, std::optional{collective_form::direct},
                                std::optional{collective_form::halving_doubling}, std::optional{collective_form::tree}}) {
            for (std::uint64_t const group : {0U, 1U, 2U}) {
                test::traced_job job{8, {{1, {6, 2, 0, 4}}, {2, {3}}}};
                for (auto const member : find_group(job.traces.groups, group)->ranks) {
                    auto const rank = static_cast<std::size_t>(member);
                    job.collective(rank, group, static_cast<chakra_collective>(what), 8000, {job.compute(rank, rank)});
                }
                chakra_play_rules<contended_network> rules;
                rules.form = form;
                CAPTURE(what, group);
                auto const times = played<contended_network>(job, links(8, network_topology::ring), rules);
                if (group == 2) {  // one rank has nothing to exchange
                    CHECK(times.end.count == Approx(3e-6));
                } else {
                    CHECK(times.end.count > (group == 0 ? 8e-6 : 7e-6));
                }
            }
        }
    }
}

TEST_CASE("chakra: a member begins a collective for itself")
{
    test::traced_job job{2};
    job.collective(0, 0, chakra_collective::broadcast, 3000);
    job.collective(1, 0, chakra_collective::broadcast, 3000, {job.compute(1, 20)});
    auto const times = played<free_network>(job, links(2));
    CHECK(times.ranks[0].end.count == Approx(0.0).margin(1e-12));  // the root has sent, the message waits
    CHECK(times.ranks[1].end.count == Approx(20e-6));
    auto rules = consumers();  // which replay a broadcast
    CHECK(played<integer_contended_network>(job, whole_links(2), rules).ranks[1].end == whole_nanoseconds{20'001});
}

TEST_CASE("chakra: laws of traces drawn at random")
{
    std::mt19937 draw{5};
    for (int round = 0; round < 300; ++round) {
        auto const ranks = static_cast<std::int32_t>(2 + draw() % 5);
        std::vector<std::int32_t> odd;
        for (std::int32_t r = ranks - 1; r > 0; r -= 2) {
            odd.push_back(r);
        }
        auto const job = test::random_job(ranks, {{1, {1, 0}}, {2, odd}}, true, 40, draw);
        auto const topology = topologies[draw() % 3];
        CAPTURE(round, ranks, static_cast<int>(topology));
        auto const shared = played<contended_network>(job, links(ranks, topology));
        auto const alone = played<free_network>(job, links(ranks, topology));
        for (std::size_t r = 0; r < shared.ranks.size(); ++r) {
            CHECK(shared.ranks[r].end.count >= alone.ranks[r].end.count * (1.0 - 1e-12));  // contention never helps
            std::uint64_t computed = 0;
            for (auto const& step : job.traces.ranks[r].steps) {
                computed += step.type == chakra_node_type::comp ? step.duration_micros : 0;
            }
            CHECK(shared.ranks[r].busy.count == Approx(static_cast<double>(computed) * 1e-6));
            CHECK(shared.ranks[r].exposed.count >= 0.0);
            CHECK(idle_time(shared, r).count >= -1e-12);
        }
        auto const twice = [&](std::vector<network_level<>> levels) {  // everything takes twice as long
            auto slow = job;
            for (auto& trace : slow.traces.ranks) {
                for (auto& step : trace.steps) {
                    step.duration_micros *= 2;
                }
            }
            levels.front().link = {levels.front().link.latency * 2.0, {levels.front().link.bandwidth.count / 2.0}};
            return played<contended_network>(slow, levels);
        };
        CHECK(twice(links(ranks, topology)).end.count == Approx(2.0 * shared.end.count));
        auto const whole = played<integer_contended_network>(job, whole_links(ranks, topology), consumers());
        auto const whole_alone =
            played<integer_free_network>(job, whole_links(ranks, topology), {.of_consumers = true, .chunks = 4, .handover = {10}, .group_handover = {10}});
        CHECK(whole.end > whole_nanoseconds{0});
        CHECK(whole_alone.end > whole_nanoseconds{0});
        for (std::size_t r = 0; r < whole.ranks.size(); ++r) {
            CHECK(whole.ranks[r].busy + whole.ranks[r].exposed <= whole.end);
        }
    }
}

TEST_CASE("chakra: names of ranks mean nothing")
{
    std::mt19937 draw{6};
    for (int round = 0; round < 100; ++round) {
        auto const job = test::random_job(5, {{1, {3, 0, 4}}, {2, {1, 2}}}, false, 50, draw);
        std::vector<std::int32_t> name{0, 1, 2, 3, 4};
        std::shuffle(name.begin(), name.end(), draw);
        auto renamed = job;
        for (std::size_t r = 0; r < name.size(); ++r) {
            auto& trace = renamed.traces.ranks[static_cast<std::size_t>(name[r])] = job.traces.ranks[r];
            for (auto& step : trace.steps) {
                step.peer = name[static_cast<std::size_t>(step.peer)];
            }
        }
        for (std::size_t g = 1; g < renamed.traces.groups.size(); ++g) {
            for (auto& rank : renamed.traces.groups[g].ranks) {
                rank = name[static_cast<std::size_t>(rank)];
            }
        }
        auto const before = played<free_network>(job, links(5));
        auto const after = played<free_network>(renamed, links(5));
        for (std::size_t r = 0; r < name.size(); ++r) {
            CHECK(before.ranks[r] == after.ranks[static_cast<std::size_t>(name[r])]);
        }
    }
}

namespace {

/// Plays equal ranks once, then all: the same. @returns how many were played
template <class Model>
int equal_either_way(test::traced_job const& job, std::vector<network_level<typename Model::link>> const& levels, chakra_play_rules<Model> rules)
{
    auto const once = played<Model>(job, levels, rules);
    rules.joins_equal_ranks = false;
    auto const each = played<Model>(job, levels, rules);
    CHECK(each.played_ranks == static_cast<int>(each.ranks.size()));
    CHECK(once.end == each.end);
    for (std::size_t rank = 0; rank < each.ranks.size(); ++rank) {
        CAPTURE(rank);
        CHECK(once.ranks[rank] == each.ranks[rank]);
    }
    return once.played_ranks;
}

}  // namespace

TEST_CASE("chakra: equal ranks are played once, with the same times")
{
    std::mt19937 draw{8};
    int fewer_shared = 0;
    int fewer_whole = 0;
    for (int round = 0; round < 150; ++round) {
        auto const ranks = static_cast<std::int32_t>(1 + draw() % 4);
        auto const copies = static_cast<std::int32_t>(2 + 2 * (draw() % 2));
        auto const job = test::copied_job(ranks, copies, draw() % 2 == 0, 12, draw);
        auto const all = ranks * copies;
        std::vector<std::vector<int>> const shapes{{all}, {ranks, copies}, {ranks, 1, copies}, {ranks, copies / 2, 2}};
        auto const& shape = shapes[draw() % shapes.size()];
        std::vector<network_level<>> levels;
        std::vector<network_level<integer_link>> whole;
        double slower = 1.0;
        for (auto const members : shape) {
            auto const topology = topologies[draw() % 3];
            levels.push_back({members, topology, {microseconds(1.0 * slower), {1e9 / slower}}});
            whole.push_back({members, topology, {1000.0 * slower, {1.0 / slower}}});
            slower *= 3.0;
        }
        CAPTURE(round, ranks, copies, shape.size());
        bool const can_turn = shape.size() < 3 || shape[1] == 1;  // else the next copy may be in another group of the level
        auto const alone = equal_either_way<free_network>(job, levels, {});
        CHECK((!can_turn || alone <= ranks));
        fewer_shared += equal_either_way<contended_network>(job, levels, {}) < all ? 1 : 0;
        auto rules = consumers();
        rules.chunks = shape.size() > 1 ? 1 : 4;
        fewer_whole += equal_either_way<integer_contended_network>(job, whole, rules) < all ? 1 : 0;
        equal_either_way<integer_free_network>(job, whole, {.of_consumers = true, .chunks = rules.chunks, .handover = {10}, .group_handover = {10}});
    }
    CHECK(fewer_shared > 20);
    CHECK(fewer_whole > 20);
}

TEST_CASE("chakra: spans are the time lines of ranks")
{
    std::mt19937 draw{7};
    auto const job = test::random_job(4, {{1, {0, 3}}}, true, 60, draw);
    auto rules = consumers();
    auto const without = played<integer_contended_network>(job, whole_links(4), rules);
    rules.keeps_spans = true;
    auto with = played<integer_contended_network>(job, whole_links(4), rules);
    std::size_t steps = 0;
    std::vector<whole_nanoseconds> busy(4);
    for (auto const& span : with.spans) {
        auto const& step = job.traces.ranks[span.rank].steps[span.step];
        CHECK(span.begin <= span.end);
        busy[span.rank] += step.type == chakra_node_type::comp ? span.end - span.begin : whole_nanoseconds{0};
        for (auto const other : job.traces.ranks[span.rank].waits_for(span.step)) {
            auto const before = std::find_if(with.spans.begin(), with.spans.end(), [&](auto const& s) { return s.rank == span.rank && s.step == other; });
            REQUIRE(before != with.spans.end());
            CHECK(before->end <= span.begin);
        }
    }
    for (std::size_t r = 0; r < 4; ++r) {
        steps += job.traces.ranks[r].steps.size();
        CHECK(busy[r] == with.ranks[r].busy);
    }
    CHECK(with.spans.size() == steps);
    with.spans.clear();
    CHECK(with == without);
}

TEST_CASE("chakra: traces that hang name who waits for whom")
{
    test::traced_job job{2};
    for (std::size_t r : {0U, 1U}) {
        auto const other = static_cast<std::int32_t>(1 - r);
        job.send(r, other, 8, 0, {job.receive(r, other, 8)});
    }
    CHECK(refused<free_network>(job, links(2)) ==
          "the traces hang: COMM_RECV node 1 of rank 0 waits for rank 1, COMM_RECV node 1 of rank 1 waits for rank 0; these ranks wait for each other");
    CHECK(refused<integer_contended_network>(job, whole_links(2), consumers()) == refused<free_network>(job, links(2)));
    test::traced_job groups{2, {{1, {0, 1}}, {2, {0, 1}}}};
    groups.collective(0, 1, chakra_collective::all_reduce, 8);
    groups.collective(0, 2, chakra_collective::all_reduce, 8, {0});
    groups.collective(1, 2, chakra_collective::all_reduce, 8);
    groups.collective(1, 1, chakra_collective::all_reduce, 8, {0});
    CHECK(refused<contended_network>(groups, links(2)) ==
          "the traces hang: COMM_COLL node 1 of rank 0 waits for rank 1, COMM_COLL node 1 of rank 1 waits for rank 0; these ranks wait for each other");
    test::traced_job sends{2};
    for (std::size_t r : {0U, 1U}) {
        auto const other = static_cast<std::int32_t>(1 - r);
        sends.receive(r, other, 8, 0, {sends.send(r, other, 8)});
    }
    CHECK(refused<contended_network>(sends, links(2)) ==
          "the traces hang: COMM_SEND node 1 of rank 0 waits for rank 1, COMM_SEND node 1 of rank 1 waits for rank 0; these ranks wait for each other");
    CHECK(played<integer_contended_network>(sends, whole_links(2), consumers()).end.count > 0);  // theirs do not wait
}

TEST_CASE("chakra: chunks may wait for each other between levels")
{
    constexpr std::uint64_t begins[] = {8, 159, 45, 98, 190, 23, 87, 188, 43, 128, 49, 60, 182, 11, 28, 61};
    test::traced_job job{16};
    for (std::size_t r = 0; r < 16; ++r) {
        job.collective(r, 0, chakra_collective::all_reduce, 50'000, {job.compute(r, begins[r])});
    }
    std::vector<network_level<integer_link>> const whole{
        {4, network_topology::full, {1000.0, {1.0}}}, {2, network_topology::full, {3000.0, {0.3}}}, {2, network_topology::full, {9000.0, {0.1}}}};
    chakra_play_rules<integer_free_network> rules{.of_consumers = true, .chunks = 4};
    CHECK(refused<integer_free_network>(job, whole, rules) ==
          "the traces hang: ALL_REDUCE of 50000 bytes has all its members, but they began it apart, and so its chunks wait for each other between the levels "
          "of the network; expected one chunk");
    rules.chunks = 1;
    CHECK(played<integer_free_network>(job, whole, rules).end > whole_nanoseconds{190'000});
    rules = {.chunks = 4};  // rheo's chunks have queues of their own on the way back
    CHECK(played<integer_free_network>(job, whole, rules).end > whole_nanoseconds{190'000});
}

TEST_CASE("chakra: what cannot be played is refused in a sentence")
{
    test::traced_job three{3};
    for (std::size_t r = 0; r < 3; ++r) {
        three.collective(r, 0, chakra_collective::all_reduce, 300);
    }
    chakra_play_rules<free_network> rules;
    CHECK(refused<free_network>(three, links(2)) == "the traces are of 3 ranks, the cluster has 2 devices; expected a device for each rank, and at least one");
    CHECK(played<free_network>(three, links(4)).ranks.size() == 3);
    rules.form = collective_form::halving_doubling;
    CHECK(refused<free_network>(three, links(3), rules) == "COMM_COLL node 1 of rank 0 is of 3 ranks; halving_doubling needs a power of two of them");
    rules.form = collective_form::slice_owner;
    CHECK_THAT(refused<free_network>(three, links(3), rules), Catch::Matchers::ContainsSubstring("no slice_owner form"));
    rules = {.chunks = 0};
    CHECK_THAT(refused<free_network>(three, links(3), rules), Catch::Matchers::StartsWith("collectives of traces have 1 to 2^20 chunks"));
    rules = {.chunks = 1 << 20};
    for (auto& trace : three.traces.ranks) {
        trace.steps[0].bytes = std::int64_t{1} << 50;
    }
    CHECK(played<free_network>(three, links(3)).end.count > 0.0);
    three.traces.ranks[1].steps[0].bytes = 9;
    CHECK_THAT(refused<free_network>(three, links(3)), Catch::Matchers::ContainsSubstring("all ranks: collective 1 is ALL_REDUCE of 1125899906842624 bytes"));
    for (auto& trace : three.traces.ranks) {
        trace.steps[0].bytes = INT64_MAX;
    }
    CHECK(refused<free_network>(three, links(3)) == "COMM_COLL node 1 of rank 0 has 9223372036854775807 bytes; expected at most 2^62 over all ranks");
    test::traced_job lone{2};
    lone.send(0, 1, 8);
    CHECK(refused<free_network>(lone, links(2)) == "COMM_SEND node 1 of rank 0 has no receive on rank 1 with 8 bytes and tag 0");
    test::traced_job endless{1};
    endless.compute(0, UINT64_MAX);
    CHECK(refused<integer_contended_network>(endless, whole_links(1), consumers()) ==
          "the traces take more than the largest time of this network model (2^63 - 1 ns where time is whole)");
    auto broken = links(3);
    broken.front().link.bandwidth = {0.0};
    CHECK_THAT(refused<free_network>(three, broken), Catch::Matchers::ContainsSubstring("a rate is above zero"));
}
