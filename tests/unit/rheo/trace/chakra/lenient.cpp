// SPDX-License-Identifier: Apache-2.0
// Traces from any tool: what is read, what has a default, and what is required.
#include "rheo/trace/chakra/lenient.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "owned_node.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::vector<chakra_group> const groups = with_all_ranks({{7, {0, 2}}, {9, {1, 2}}}, 3);
std::vector<chakra_group_name> const names{{"0", 0}, {"7", 7}, {"mp", 7}, {"other", 9}};

/// A file of rank 0 of three.
result<chakra_lenient_trace> read(std::vector<chakra_node> const& nodes, bool keeps_order = true)
{
    return read_leniently(chakra_bytes{test::file_of(chakra_metadata{"x"}, nodes)}, {{0, 3, groups}, names, keeps_order});
}

result<chakra_step> taken(chakra_node const& node) { return take_leniently(node, {{0, 3, groups}, names}); }

std::string refusal(chakra_node_type type, std::vector<chakra_attribute> const& attributes)
{
    auto const step = taken({.id = 5, .name = "n", .type = type, .attributes = attributes});
    CHECK_FALSE(step);
    return step.error();
}

}  // namespace

TEST_CASE("chakra lenient: numbers stand in any member")
{
    std::vector<chakra_attribute> const message{make_attribute("comm_size", std::uint64_t{64}), make_attribute("comm_dst", std::uint32_t{2})};
    auto const send = taken({.id = 3, .type = chakra_node_type::comm_send, .attributes = message});
    REQUIRE(send);
    CHECK(*send == chakra_step{.id = 3, .bytes = 64, .peer = 2, .tag = 0, .type = chakra_node_type::comm_send});
    std::vector<chakra_attribute> const work{make_attribute("num_ops", std::uint64_t{12}), make_attribute("tensor_size", std::int32_t{5}),
                                             make_attribute("is_cpu_op", std::int32_t{1})};
    auto const computation = taken({.id = 3, .type = chakra_node_type::comp, .duration_micros = 4, .attributes = work});
    REQUIRE(computation);
    CHECK(*computation == chakra_step{.id = 3, .duration_micros = 4, .bytes = 5, .operations = 12, .type = chakra_node_type::comp, .on_host = true});
    CHECK_FALSE(taken({.type = chakra_node_type::comp})->on_host);  // default: the device
    CHECK(taken({.type = chakra_node_type::metadata}));
    std::vector<chakra_attribute> const large{make_attribute("tensor_size", std::int64_t{INT64_MAX})};
    CHECK(taken({.type = chakra_node_type::mem_load, .attributes = large})->bytes == std::int64_t{1} << 62);
}

TEST_CASE("chakra lenient: groups have the names of their file")
{
    auto const group_of = [](chakra_attribute const& name) {
        std::vector<chakra_attribute> const attributes{make_attribute("comm_type", std::int32_t{0}), make_attribute("comm_size", std::int32_t{8}), name};
        auto const step = taken({.type = chakra_node_type::comm_coll, .attributes = attributes});
        INFO(step.error());
        REQUIRE(step);
        return step->group;
    };
    CHECK(group_of(make_attribute("pg_name", "mp")) == 7);
    CHECK(group_of(make_attribute("pg_name", "7")) == 7);
    CHECK(group_of(make_attribute("pg_name", std::int64_t{7})) == 7);
    CHECK(group_of(make_attribute("pg_name", "0")) == 0);
    CHECK(group_of(make_attribute("pg_name", "")) == 0);
    CHECK(group_of(make_attribute("pg_desc", "mp")) == 0);  // all ranks
    std::vector<chakra_attribute> const barrier{make_attribute("comm_type", std::int64_t{9})};
    CHECK(taken({.type = chakra_node_type::comm_coll, .attributes = barrier})->collective == chakra_collective::barrier);
}

TEST_CASE("chakra lenient: nodes come in any order")
{
    std::vector<std::uint64_t> const seven{7};
    std::vector<std::uint64_t> const absent{99, 2};
    auto const file = read({{.id = 9, .type = chakra_node_type::comp, .data_deps = seven},
                            {.id = 2, .type = chakra_node_type::comp},
                            {.id = 7, .type = chakra_node_type::comp, .ctrl_deps = absent}});
    REQUIRE(file);
    auto const& trace = file->trace;
    REQUIRE(trace.steps.size() == 3);
    CHECK((trace.steps[0].id == 2 && trace.steps[1].id == 7 && trace.steps[2].id == 9));
    CHECK(trace.waits_for(0).empty());
    REQUIRE(trace.waits_for(1).size() == 1);  // the absent one is counted and left out
    CHECK(trace.waits_for(1)[0] == 0);
    CHECK(trace.waits_for(2)[0] == 1);
    CHECK(file->absent_controls == 1);
}

TEST_CASE("chakra lenient: order alone is no dependency where asked")
{
    std::vector<std::uint64_t> const both{1, 2};
    std::vector<std::uint64_t> const order{2, 50};
    std::vector<chakra_attribute> const reduces{make_attribute("comm_type", std::int64_t{0}),
                                                make_attribute("comm_size", std::int64_t{8}),
                                                {.name = "rheo_order_deps", .member = chakra_member::uint64_list, .numbers = order}};
    std::vector<chakra_node> const nodes{{.id = 1, .type = chakra_node_type::comp},
                                         {.id = 2, .type = chakra_node_type::comp},
                                         {.id = 3, .type = chakra_node_type::comm_coll, .data_deps = both, .attributes = reduces},
                                         {.id = 4, .type = chakra_node_type::comp, .data_deps = both, .attributes = reduces}};
    CHECK(read(nodes)->trace.waits_for(2).size() == 2);
    auto const without = read(nodes, false);
    REQUIRE(without->trace.waits_for(2).size() == 1);
    CHECK(without->trace.waits_for(2)[0] == 0);
    CHECK(without->trace.waits_for(3).size() == 2);  // of collectives alone
}

TEST_CASE("chakra lenient: what must be said is asked for")
{
    using type = chakra_node_type;
    CHECK(refusal(type::invalid, {}) == "node 5 ('n'): INVALID nodes cannot be played; expected COMP, MEM, COMM or METADATA nodes");
    CHECK(refusal(type::comm_send, {}) == "node 5 ('n'): comm_size is missing; it says how many bytes the message has");
    auto const size = make_attribute("comm_size", std::int64_t{8});
    CHECK(refusal(type::comm_send, {size}) == "node 5 ('n'): comm_dst is missing; it says to whom the message goes");
    CHECK(refusal(type::comm_recv, {size}) == "node 5 ('n'): comm_src is missing; it says from whom the message comes");
    CHECK(refusal(type::comm_recv, {size, make_attribute("comm_src", 3)}) == "node 5 ('n'): comm_src is 3, but the traces are of ranks 0 to 2");
    CHECK(refusal(type::comm_recv, {size, make_attribute("comm_src", 1), make_attribute("comm_tag", std::int64_t{1} << 40)}) ==
          "node 5 ('n'): comm_tag is 1099511627776; it must have 32 bits");
    CHECK(refusal(type::comm_recv, {make_attribute("comm_size", -1)}) == "node 5 ('n'): comm_size is -1; it must be 0 or more");
    CHECK(refusal(type::comm_recv, {make_attribute("comm_size", 1.5)}) == "node 5 ('n'): comm_size is no whole number below 2^63, but in double_val");
    CHECK(refusal(type::comm_coll, {size}) == "node 5 ('n'): comm_type is missing; it says which collective it is");
    CHECK(refusal(type::comm_coll, {make_attribute("comm_type", 10), size}) == "node 5 ('n'): comm_type is 10, which is no collective: they are 0 to 9");
    auto const reduce = make_attribute("comm_type", 0);
    CHECK(refusal(type::comm_coll, {reduce}) == "node 5 ('n'): comm_size is missing; it says how many bytes the collective has");
    CHECK(refusal(type::comm_coll, {reduce, size, make_attribute("pg_name", "dp")}) ==
          "node 5 ('n'): pg_name is 'dp', which neither the groups file nor process-group metadata in this file name");
    CHECK(refusal(type::comm_coll, {reduce, size, make_attribute("pg_name", "other")}) == "node 5 ('n'): pg_name is 'other', a group that rank 0 is not in");
    std::vector<std::uint64_t> const absent{4};
    CHECK(read({{.id = 1, .type = type::comp, .data_deps = absent}}).error() == "node 1 has a data dependency on node 4, which is not in the file");
    CHECK(read({{.id = 1, .type = type::comp}, {.id = 1, .type = type::comp}}).error() == "two nodes of the file have the id 1");
    CHECK(read_leniently(chakra_bytes{""}, {{0, 1, groups}, names}).error() == "byte 0: the file is empty; a Chakra trace begins with metadata");
}
