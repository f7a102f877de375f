// SPDX-License-Identifier: Apache-2.0
// Lists of what happens to the ranks of a job are read or refused with a sentence; random losses follow from their seed alone.
#include <cmath>
#include <vector>

#include "rheo/job/job_event_source.hpp"
#include "rheo/job/job_events_csv.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::string refused(std::string const& rows) { return parse_job_events("time_s,event,what,value\n" + rows, "f.csv", 8, 4).error(); }

std::vector<job_event> drawn(job_event_source source, std::size_t count)
{
    std::vector<job_event> events;
    while (events.size() < count && source.next()) {
        events.push_back(*source.next());
        source.pop();
    }
    return events;
}

}  // namespace

TEST_CASE("job_events: a list of ranks and nodes is read")
{
    auto const read = parse_job_events(
        "# kills\ntime_s,event,what,value\n1.5,lose,rank:5,\n2,slow,rank:0,1.25\n2,drain,node:0\n3,return,rank:5\n4,well,rank:5\n5,link,node:1,2\n", "f.csv", 8,
        4);
    REQUIRE(read.error() == "");
    CHECK(read->begins_with_ranks);
    CHECK(read->events == std::vector<job_event>{{{1'500'000'000}, job_event_kind::lose, rank_id{5}, rank_id{5}},
                                                 {{2'000'000'000}, job_event_kind::slow, rank_id{0}, rank_id{0}, 1.25},
                                                 {{2'000'000'000}, job_event_kind::drain, rank_id{0}, rank_id{3}},
                                                 {{3'000'000'000}, job_event_kind::rejoin, rank_id{5}, rank_id{5}},
                                                 {{4'000'000'000}, job_event_kind::well, rank_id{5}, rank_id{5}},
                                                 {{5'000'000'000}, job_event_kind::link, rank_id{4}, rank_id{7}, 2.0}});
}

TEST_CASE("job_events: a log of nodes is read")
{
    auto const read = parse_job_events("0,add,a\n0,add,b\n1500,remove,a\n", "nodes.csv", 7, 4);
    REQUIRE(read.error() == "");
    CHECK_FALSE(read->begins_with_ranks);
    CHECK(read->events == std::vector<job_event>{{{0}, job_event_kind::rejoin, rank_id{0}, rank_id{3}},
                                                 {{0}, job_event_kind::rejoin, rank_id{4}, rank_id{6}},
                                                 {{1'500'000'000}, job_event_kind::lose, rank_id{0}, rank_id{3}}});
    CHECK(parse_job_events("0,add,a\n0,add,b\n0,add,c\n", "nodes.csv", 7, 4).error() ==
          "nodes.csv has 3 nodes, the job 2; expected a node of the job for each");
}

TEST_CASE("job_events: what cannot be is refused with its line")
{
    CHECK(refused("5,lose,rank:1\n4,lose,rank:2\n") == "f.csv, line 3: time 4 s is before that of the event before it, 5 s; events come in the order of time");
    CHECK(refused("5,lose,rank:1\n5.25,lose,rank:1\n") == "f.csv, line 3: rank 1 has already left; expected ranks that are in the job");
    CHECK(refused("1,return,rank:1\n") == "f.csv, line 2: rank 1 returns but has not left; expected ranks that were lost or drained");
    CHECK(refused("1,lose,rank:5,\n2,lose,node:1\n3,return,node:1\n") == "");
    CHECK(refused("1,lose,node:1\n2,lose,node:1\n") == "f.csv, line 3: ranks 4 to 7 have already left; expected ranks that are in the job");
    CHECK(refused("1,lose,rank:8\n") == "f.csv, line 2: rank 8 does not exist: the job has 8 ranks");
    CHECK(refused("1,lose,node:2\n") == "f.csv, line 2: rank 8 does not exist: the job has 8 ranks");
    CHECK(refused("1,lose,node:2000000000\n") == "f.csv, line 2: rank 8 does not exist: the job has 8 ranks");
    CHECK(refused("x,lose,rank:1\n") == "f.csv, line 2: the time is 'x', but a number of seconds from 0 to 4611686018 was expected");
    CHECK(refused("1,kill,rank:1\n") == "f.csv, line 2: the event is 'kill', but lose, return, drain, slow, link or well was expected");
    CHECK(refused("1,lose,5\n") == "f.csv, line 2: what it happens to is '5', but rank:NUMBER or node:NUMBER was expected");
    CHECK(refused("1,slow,rank:1,0.5\n") == "f.csv, line 2: the factor of slow is '0.5', but a number from 1 to 1e6 was expected");
    CHECK(refused("1,link,node:1,\n") == "f.csv, line 2: the factor of link is '', but a number from 1 to 1e6 was expected");
    CHECK(refused("1,lose,rank:1,2\n") == "f.csv, line 2: only slow and link have a value, but lose has '2'");
    CHECK(refused("1,lose\n") == "f.csv, line 2: 2 cells, but 3 or 4 were expected: time_s,event,what,value");
}

TEST_CASE("job_events: random losses follow from seed and node")
{
    random_losses const of{.mtbf = hours(10), .repair = hours(1), .seed = 7, .ranks = 40, .node_size = 4};
    auto const events = drawn(job_event_source{{}, of}, 4000);
    REQUIRE(events.size() == 4000);
    CHECK(drawn(job_event_source{{}, of}, 4000) == events);
    auto other = of;
    other.seed = 8;
    CHECK(drawn(job_event_source{{}, other}, 4000) != events);
    std::vector<whole_nanoseconds> since(10);
    double sum = 0;
    int losses = 0;
    for (std::size_t k = 0; k < events.size(); ++k) {
        CHECK((k == 0 || events[k - 1].at <= events[k].at));
        CHECK(events[k].last.value == events[k].first.value + 3);
        auto& last = since[at(events[k].first) / 4];
        if (events[k].kind == job_event_kind::lose) {
            sum += static_cast<double>((events[k].at - last).count) * 1e-9 / 3600.0;
            ++losses;
        } else {
            CHECK((events[k].at - last).count == 3'600'000'000'000);
        }
        last = events[k].at;
    }
    CHECK(std::abs(sum / losses - 10.0) < 1.0);  // some 2,000 draws: three deviations are 0.7
    job_event const listed{{1}, job_event_kind::drain, rank_id{0}, rank_id{0}};
    CHECK(job_event_source{{listed}, of}.next() == listed);
    CHECK(job_event_source{}.next() == std::nullopt);
}
