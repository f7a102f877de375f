// SPDX-License-Identifier: Apache-2.0
// Tables of goodput: what they say, and that a fault is one sentence with file, line and what was expected.
#include "rheo/simulate/goodput/node_trace_csv.hpp"
#include "rheo/simulate/goodput/replay_policies_csv.hpp"
#include "rheo/simulate/goodput/steps_table_csv.hpp"
#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("goodput_csv: throughputs become times of steps")
{
    auto const read =
        parse_steps_tables("# of two models\nmodel,samples_per_step,nodes,samples_per_s\nb,1024,3,10\na,100,2,7\n\na,100,1,3.5\nb,1024,2,5.5\n", "t.csv");
    REQUIRE(read);
    REQUIRE(read->size() == 2);
    CHECK(read->front() == named_steps_table{"a", {1, {{28571}, {14285}}, 100.0}});
    CHECK(read->back() == named_steps_table{"b", {2, {{186181}, {102400}}, 1024.0}});
    CHECK(step_time(read->back().table, 7) == whole_milliseconds{102400});
}

TEST_CASE("goodput_csv: a wrong table of throughputs is refused")
{
    auto const refused = [](std::string const& rows) { return parse_steps_tables("model,samples_per_step,nodes,samples_per_s\n" + rows, "t.csv").error(); };
    CHECK(parse_steps_tables("", "t.csv").error() ==
          "t.csv, line 1: a table of throughputs begins with the columns model,samples_per_step,nodes,samples_per_s");
    CHECK(refused("") == "t.csv, line 1: a table of throughputs has at least one row");
    CHECK(refused("a,1\n") == "t.csv, line 2: 2 cells, but 4 were expected: model,samples_per_step,nodes,samples_per_s");
    CHECK(refused("a,1,1,0\n") == "t.csv, line 2: samples_per_s is '0', but a number above 0 and at most 10^15 was expected");
    CHECK(refused("a,nan,1,1\n") == "t.csv, line 2: samples_per_step is 'nan', but a number above 0 and at most 10^15 was expected");
    CHECK(refused("a,1,0,1\n") == "t.csv, line 2: nodes is '0', but a whole number from 1 to 2^20 was expected");
    CHECK(refused("a,1,4,1\na,1,6,1\n") == "t.csv, line 3: 'a' has a row for 6 nodes, but none for 5; a table has no holes");
    CHECK(refused("a,1,4,1\na,1,4,1\n") == "t.csv, line 3: 'a' has a row for 4 nodes already, in line 2");
    CHECK(refused("a,1,4,1\na,2,5,1\n") == "t.csv, line 3: 'a' has other samples_per_step here than for 4 nodes");
    CHECK(refused("a,1,4,1e9\n") == "t.csv, line 2: a step would take 0.000000 ms, but 1 to 2^31 ms were expected");
}

TEST_CASE("goodput_csv: policies are read, wrong ones refused")
{
    std::string const header = "model,policy,configure_ms,checkpoint_ms,checkpoint_every_steps\n";
    auto const read = parse_replay_policies(header + "m,salvage,2000,0,0\nm,checkpoint,86000,15800,10\n", "p.csv");
    REQUIRE(read);
    CHECK(read->front() == named_replay_policy{"m", {replay_kind::salvage, {2000}, {}, 0}});
    CHECK(read->back() == named_replay_policy{"m", {replay_kind::checkpoint, {86000}, {15800}, 10}});
    auto const refused = [&](std::string const& rows) { return parse_replay_policies(header + rows, "p.csv").error(); };
    CHECK(refused("m,salvge,1,1,1\n") == "p.csv, line 2: policy is 'salvge', but replay, checkpoint or salvage were expected; the nearest is salvage");
    CHECK(refused("m,replay,x,1,1\n") == "p.csv, line 2: configure_ms is 'x', but a whole number was expected");
    CHECK(refused("m,checkpoint,1,1,0\n") == "p.csv, line 2: a checkpoint is written every 0 steps, but 1 to 2^31 were expected");
    CHECK(refused("m,replay,1,1,1\nm,replay,1,1,1\n") == "p.csv, line 3: 'm' has a row for replay already");
}

TEST_CASE("goodput_csv: traces are read, wrong ones refused")
{
    auto const read = parse_node_trace("0,add,a\n5,add,b\r\n# gone\n7,remove,a\n", "n.csv");
    REQUIRE(read);
    CHECK(*read == node_trace{{{{0}, node_id{0}, true}, {{5}, node_id{1}, true}, {{7}, node_id{0}, false}}, {"a", "b"}});
    auto const refused = [](std::string const& text) { return parse_node_trace(text, "n.csv").error(); };
    CHECK(refused("") == "n.csv, line 1: a trace has at least one event: it ends with its last one");
    CHECK(refused("0,add\n") == "n.csv, line 1: 2 cells, but 3 were expected: time in ms,add or remove,node");
    CHECK(refused("0.5,add,a\n") == "n.csv, line 1: the time is '0.5', but a whole number of milliseconds from 0 on was expected");
    CHECK(refused("0,ad,a\n") == "n.csv, line 1: the event is 'ad', but add or remove was expected");
    CHECK(refused("0,add,\n") == "n.csv, line 1: the node has no name");
    CHECK(refused("5,add,a\n4,add,b\n") == "n.csv, line 2: time 4 is before that of the event before it, 5; events come in the order of time, from 0 on");
    CHECK(refused("0,add,a\n1,remove,a\n2,remove,a\n") == "n.csv, line 3: 'a' is removed, but it is not there; a node goes once, after it was added");
    CHECK(refused("0,add,a\n1,add,a\n") == "n.csv, line 2: 'a' is added, but it is there; a node comes back after it was removed");
    CHECK(refused("9223372036854775807,add,a\n") == "n.csv, line 1: time 9223372036854775807 ms does not fit: it is at most 2^62");
}
