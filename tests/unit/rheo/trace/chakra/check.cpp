// SPDX-License-Identifier: Apache-2.0
// The contract of consumers, and playing: traces that keep it pass, each broken rule is named, traces that hang name who waits for whom.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "owned_node.hpp"
#include "rheo/trace/chakra/check_traces.hpp"
#include "rheo/trace/chakra/play.hpp"
#include "rheo/trace/chakra/read_rank.hpp"
#include "shared_files.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Files of some ranks, built node by node.
struct job {
    test::chakra_pool pool;
    std::vector<std::vector<chakra_node>> ranks;
    std::vector<chakra_group> groups;

    explicit job(std::size_t count) : ranks(count) {}

    chakra_node& add(std::size_t rank, chakra_node_type type, std::vector<chakra_attribute> attributes, std::vector<std::uint64_t> after = {})
    {
        attributes.insert(attributes.begin(), make_attribute("is_cpu_op", false));
        ranks[rank].push_back({.id = ranks[rank].size() + 1,
                               .name = "n",
                               .type = type,
                               .data_deps = pool.numbers.emplace_back(std::move(after)),
                               .attributes = pool.attributes.emplace_back(std::move(attributes))});
        return ranks[rank].back();
    }

    chakra_node& compute(std::size_t rank, std::uint64_t micros, std::vector<std::uint64_t> after = {})
    {
        auto& node =
            add(rank, chakra_node_type::comp, {make_attribute("num_ops", std::int64_t{1}), make_attribute("tensor_size", std::uint64_t{1})}, std::move(after));
        node.duration_micros = micros;
        return node;
    }

    chakra_node& message(std::size_t rank, bool sends, int peer, int tag, std::vector<std::uint64_t> after = {})
    {
        auto const here = static_cast<int>(rank);
        return add(rank, sends ? chakra_node_type::comm_send : chakra_node_type::comm_recv,
                   {make_attribute("comm_size", std::int64_t{64}), make_attribute("comm_src", sends ? here : peer),
                    make_attribute("comm_dst", sends ? peer : here), make_attribute("comm_tag", tag)},
                   std::move(after));
    }

    chakra_node& collective(std::size_t rank, std::string_view group, std::int64_t bytes, std::vector<std::uint64_t> after = {})
    {
        return add(rank, chakra_node_type::comm_coll,
                   {make_attribute("comm_type", std::int64_t{0}), make_attribute("comm_size", bytes), make_attribute("pg_name", group)}, std::move(after));
    }

    chakra_attribute& attribute(std::size_t rank, std::size_t node, std::string_view name)
    {
        for (auto& list : pool.attributes) {
            for (auto& a : list) {
                if (list.data() == ranks[rank][node].attributes.data() && a.name == name) {
                    return a;
                }
            }
        }
        throw std::logic_error{"no such attribute"};
    }

    result<chakra_trace_set> read() const
    {
        chakra_trace_set set;
        auto const count = static_cast<std::int32_t>(ranks.size());
        set.groups = with_all_ranks(groups, count);
        for (std::int32_t r = 0; r < count; ++r) {
            std::string file;
            chakra_writer writer{[&](std::string_view piece) { file += piece; }, chakra_metadata{"x"}};
            for (auto const& node : ranks[static_cast<std::size_t>(r)]) {
                writer.add(node);
            }
            writer.finish();
            auto rank = read_rank(chakra_bytes{file}, {r, count, set.groups});
            if (!rank) {
                return failure{rank.error()};
            }
            set.ranks.push_back(*std::move(rank));
        }
        return set;
    }

    /// The first thing that is wrong, or when all ranks have ended.
    std::string verdict() const
    {
        auto const set = read();
        if (!set) {
            return set.error();
        }
        for (auto const& wrong : {check_messages(*set), check_collectives(*set)}) {
            if (!wrong.empty()) {
                return wrong;
            }
        }
        auto const ends = play(*set);
        return ends ? std::to_string(*std::max_element(ends->begin(), ends->end())) + " ns" : ends.error();
    }
};

/// A stage sends to the next one, both reduce.
job two_stages()
{
    job made{2};
    made.groups = {{1, {0, 1}}};
    made.compute(0, 3);
    made.message(0, true, 1, 5, {1});
    made.collective(0, "1", 16, {1});
    made.message(1, false, 0, 5);
    made.compute(1, 2, {1});
    made.collective(1, "1", 16, {2});
    return made;
}

}  // namespace

TEST_CASE("chakra check: traces that keep the contract are played")
{
    CHECK(two_stages().verdict() == "5002 ns");  // 3 us, the message, 2 us, the reduction
    job free{1};
    free.message(0, false, 0, 0);
    CHECK_THAT(free.verdict(), Catch::Matchers::ContainsSubstring("a message of a rank to itself"));
    job instant{1};
    instant.compute(0, 0);
    CHECK(instant.verdict() == "1 ns");
    job two{1};
    two.compute(0, 1);
    two.compute(0, 1);
    CHECK(two.verdict() == "2000 ns");  // one at once
    auto& host = two.compute(0, 1);
    (void)host;
    two.attribute(0, 2, "is_cpu_op").bits = 1;
    CHECK(two.verdict() == "2000 ns");  // and one of the host beside it
}

TEST_CASE("chakra check: each broken rule is named")
{
    struct breach {
        std::function<void(job&)> make;
        std::string_view sentence;
    };
    for (auto const& [make, sentence] : std::vector<breach>{
             {[](job& j) { j.attribute(0, 0, "is_cpu_op").name = "other"; }, "node 1 ('n'): is_cpu_op is missing; consumers read it as bool_val"},
             {[](job& j) { j.attribute(0, 0, "num_ops").member = chakra_member::uint64_val; },
              "num_ops is in uint64_val; consumers read int64_val and find 0 there"},
             {[](job& j) { j.attribute(0, 0, "tensor_size").member = chakra_member::int64_val; }, "consumers read uint64_val"},
             {[](job& j) { j.attribute(0, 1, "comm_src").bits = 1; }, "node 2 ('n'): comm_src is 1; it must be the rank of the file, 0"},
             {[](job& j) { j.attribute(0, 1, "comm_dst").bits = 7; }, "comm_dst is 7, but the traces are of ranks 0 to 1"},
             {[](job& j) { j.attribute(1, 0, "comm_tag").name = "tag"; }, "comm_tag is missing"},
             {[](job& j) { j.attribute(0, 1, "comm_size").bits = ~std::uint64_t{0}; }, "comm_size is -1; it must be 0 bytes or more"},
             {[](job& j) { j.attribute(0, 1, "comm_size").bits = 65; }, "COMM_RECV node 1 of rank 1 has no send on rank 0 with 64 bytes and tag 5"},
             {[](job& j) { j.attribute(0, 1, "comm_tag").bits = 6; }, "COMM_RECV node 1 of rank 1 has no send on rank 0 with 64 bytes and tag 5"},
             {[](job& j) { j.attribute(0, 2, "comm_type").bits = 9; }, "BARRIER is no collective that simulators take"},
             {[](job& j) { j.attribute(0, 2, "comm_type").bits = 12; }, "comm_type 12 is no collective"},
             {[](job& j) { j.attribute(0, 2, "pg_name").text = "one"; }, "pg_name is 'one'; it must be the name of a group, a whole number"},
             {[](job& j) { j.attribute(0, 2, "pg_name").text = "2"; }, "pg_name is '2', which is no group of the groups file"},
             {[](job& j) { j.groups = {{1, {1}}}; }, "pg_name is '1', a group that rank 0 is not in"},
             {[](job& j) { j.attribute(0, 2, "comm_size").bits = 8; },
              "group 1: collective 1 is ALL_REDUCE of 8 bytes in COMM_COLL node 3 of rank 0, but ALL_REDUCE of 16 bytes in COMM_COLL node 3 of rank 1"},
             {[](job& j) { j.ranks[1].pop_back(); }, "group 1: rank 0 has 1 collectives, rank 1 has 0; all members must take part in each"},
             {[](job& j) { j.ranks[0][0].type = chakra_node_type::metadata; }, "METADATA nodes are not played"},
             {[](job& j) { j.ranks[0][1].ctrl_deps = j.ranks[0][1].data_deps; }, "it has control dependencies, which one consumer ignores"},
             {[](job& j) { std::swap(j.ranks[0][0], j.ranks[0][1]); }, "node 1 comes behind node 2; ids must ascend in the order of the program"},
             {[](job& j) { j.ranks[0][0].data_deps = j.pool.numbers.emplace_back(std::vector<std::uint64_t>{2}); }, "a circle of 2 nodes"},
             {[](job& j) { j.ranks[0][2].data_deps = j.pool.numbers.emplace_back(std::vector<std::uint64_t>{9}); }, "data dependency on node 9"},
         }) {
        auto broken = two_stages();
        make(broken);
        CHECK_THAT(broken.verdict(), Catch::Matchers::ContainsSubstring(std::string{sentence}));
    }
    std::string const no_version{"\x00\x02\x08\x01", 4};
    CHECK(read_rank(chakra_bytes{no_version}, {0, 1, {}}).error() == "the version is empty; consumers refuse such files");
}

TEST_CASE("chakra check: a trace that hangs names who waits")
{
    job receives{2};  // each sends only when it has received
    for (std::size_t const r : {0U, 1U}) {
        receives.message(r, false, 1 - static_cast<int>(r), 0);
        receives.message(r, true, 1 - static_cast<int>(r), 0, {1});
    }
    CHECK(receives.verdict() ==
          "the traces hang: COMM_RECV node 1 of rank 0 waits for rank 1, COMM_RECV node 1 of rank 1 waits for rank 0; these ranks wait for each other");

    job groups{2};  // two groups of the same ranks, begun in two orders
    groups.groups = {{1, {0, 1}}, {2, {0, 1}}};
    groups.collective(0, "1", 8);
    groups.collective(0, "2", 8);
    groups.collective(1, "2", 8);
    groups.collective(1, "1", 8);
    CHECK(groups.verdict() ==
          "the traces hang: COMM_COLL node 1 of rank 0 waits for rank 1, COMM_COLL node 1 of rank 1 waits for rank 0; these ranks wait for each other");

    job mixed{2};  // a collective holds the network of rank 1, whose send rank 0 wants first
    mixed.message(0, false, 1, 0);
    mixed.collective(0, "", 8, {1});
    mixed.collective(1, "", 8);
    mixed.message(1, true, 0, 0);
    CHECK_THAT(mixed.verdict(), Catch::Matchers::ContainsSubstring("COMM_RECV node 1 of rank 0 waits for rank 1, COMM_COLL node 1 of rank 1 waits for rank 0"));
    std::swap(mixed.ranks[1][0].id, mixed.ranks[1][1].id);
    std::swap(mixed.ranks[1][0], mixed.ranks[1][1]);
    CHECK(mixed.verdict() == "2 ns");
}

TEST_CASE("chakra check: the public traces keep the contract")
{
    auto const folder = test::chakra_folder();
    if (folder.empty()) {
        return;
    }
    chakra_trace_set set;
    set.groups = with_all_ranks({{1, {0, 2}}, {2, {1, 3}}}, 4);
    for (std::int32_t r = 0; r < 4; ++r) {
        auto const file = test::bytes_of(folder / "two_pipelines" / ("job." + std::to_string(r) + ".et"));
        auto rank = read_rank(chakra_bytes{file}, {r, 4, set.groups});
        REQUIRE(rank);
        set.ranks.push_back(*std::move(rank));
    }
    CHECK(check_messages(set).empty());
    CHECK(check_collectives(set).empty());
    auto const ends = play(set);
    REQUIRE(ends);
    std::uint64_t const simulated[] = {530'302, 450'302, 531'772, 451'772};  // on the quickest network of expected.csv; ours is quicker
    for (std::size_t r = 0; r < 4; ++r) {
        CHECK((*ends)[r] > 400'000);  // four forwards of 30 us, four backwards of 60 us, and the like
        CHECK((*ends)[r] < simulated[r]);
    }
}
