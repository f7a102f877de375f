// SPDX-License-Identifier: Apache-2.0
// Published deadlocks: refused with their shortest stuck state, as the public file has them and as they are written here.
#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "programs.hpp"
#include "public_files.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/check/stuck_state.hpp"
#include "rheo/schedule/core/text.hpp"
#include "rheo/schedule/core/transport.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::from_text;

namespace {

struct published_case {
    std::string id;
    std::string semantics;
    std::string expect;
    std::vector<std::vector<std::string>> ranks;
};

/// The cases of the file: an object per case, with texts and one list of lists of texts.
std::vector<published_case> cases_of(std::string_view json)
{
    std::vector<published_case> cases;
    std::string key;
    std::string last;
    int lists = 0;
    for (std::size_t k = 0; k < json.size(); ++k) {
        switch (json[k]) {
        case '{': cases.push_back({}); break;
        case '[':
            lists += 1;
            if (lists == 3) {  // cases, ranks, a rank
                cases.back().ranks.push_back({});
            }
            break;
        case ']': lists -= 1; break;
        case ':': key = last; break;
        case '"': {
            auto const end = json.find('"', k + 1);
            REQUIRE(end != json.npos);
            last = json.substr(k + 1, end - k - 1);
            k = end;
            if (lists == 3) {
                cases.back().ranks.back().push_back(last);
            } else if (json.find_first_not_of(" \n", k + 1) != json.find(':', k + 1)) {  // a value, not a key
                (key == "id" ? cases.back().id : key == "expect" ? cases.back().expect : key == "semantics" ? cases.back().semantics : key) = last;
            }
            break;
        }
        default: break;
        }
    }
    cases.erase(cases.begin());  // the file itself
    return cases;
}

/// `SEND x1->0`, `RECV x0<-0`: messages that two ranks exchange, as stages of two copies of a model of two stages.
std::string as_instruction(std::string const& cell)
{
    auto const message = cell.find('x');
    if (cell.find(' ') == cell.npos || message == cell.npos) {
        return cell;
    }
    bool const sends = cell.starts_with("SEND");
    auto const x = cell.substr(message + 1, 1);
    return std::to_string(2 * (x[0] - '0') + (sends ? 0 : 1)) + (sends ? "SEND_F" : "RECV_F") + x;
}

program program_of(published_case const& published)
{
    std::string text;
    std::vector<int> placement;
    for (std::size_t rank = 0; rank < published.ranks.size(); ++rank) {
        char const* separator = "";
        for (auto const& cell : published.ranks[rank]) {
            auto const name = as_instruction(cell);
            text += separator + name;
            separator = ",";
            auto const instruction = instruction_named(name);
            REQUIRE(instruction);
            placement.resize(std::max(placement.size(), static_cast<std::size_t>(instruction->stage) + 1), -1);
            placement[static_cast<std::size_t>(instruction->stage)] = static_cast<int>(rank);
        }
        text += '\n';
    }
    auto p = from_text(text, placement);
    p.copies = published.ranks.front().front() == as_instruction(published.ranks.front().front()) ? 1 : 2;
    return p;
}

// pytorch/pytorch issue 172668, comments of January 2026 (the lists show transfers without all computations), and NVIDIA/nccl
// issue 479: both ranks send, then receive.
published_case const first{"pt172668-a", "rendezvous", "deadlock", {{"0SEND_F1", "2RECV_F0", "2F0"}, {"1SEND_F0", "1RECV_F1", "1F1"}}};
published_case const second{"pt172668-b",
                            "rendezvous",
                            "deadlock",
                            {{"2SEND_F1", "0F2", "0SEND_F2", "2RECV_B0", "2B0"}, {"3RECV_F1", "3SEND_B0", "3F1", "3B1", "1RECV_F2", "3SEND_B1", "1F2"}}};
published_case const third{"nccl479", "rendezvous", "deadlock unless grouped into one sendrecv", {{"SEND x0->1", "RECV x1<-1"}, {"SEND x1->0", "RECV x0<-0"}}};

}  // namespace

TEST_CASE("known_deadlocks: published cases hang as listed")
{
    auto const text = test::read_public("known_deadlocks.json");
    if (text.empty()) {
        return;
    }
    auto const cases = cases_of(text);
    REQUIRE(cases.size() == 3);
    for (auto const& [read, written] : {std::pair{cases[0], first}, {cases[1], second}, {cases[2], third}}) {
        INFO(read.id);
        CHECK(read.id == written.id);
        CHECK(read.semantics == written.semantics);
        CHECK(read.expect == written.expect);
        CHECK(read.ranks == written.ranks);
        auto const p = program_of(read);
        CHECK_FALSE(deadlock_free<rendezvous>(p));
        auto const stuck = shortest_stuck_state<rendezvous_of_given>(p);
        CHECK(stuck.fault == program_error::hang);
        CHECK(stuck.culprits.size() == 2);
    }
}

TEST_CASE("known_deadlocks: their sentences")
{
    CHECK(shortest_stuck_state<rendezvous_of_given>(program_of(first)).message() ==
          "the programs hang: pipeline 0 rank 0 waits in 0SEND_F1, pipeline 0 rank 1 waits in 1SEND_F0");
    CHECK(shortest_stuck_state<rendezvous_of_given>(program_of(second)).message() ==
          "the programs hang: pipeline 0 rank 0 waits in 0SEND_F2, pipeline 0 rank 1 waits in 3SEND_B0");
    CHECK(shortest_stuck_state<rendezvous_of_given>(program_of(third)).message() ==
          "the programs hang: pipeline 0 rank 0 waits in 0SEND_F0, pipeline 0 rank 1 waits in 2SEND_F1");
    auto computed = from_text("0F0,0SEND_F0,3RECV_F1,3F1\n2F1,2SEND_F1,1RECV_F0,1F0\n", {0, 1, 1, 0});
    computed.copies = 2;
    CHECK(shortest_stuck_state<rendezvous>(computed).culprits.size() == 2);
    CHECK(deadlock_free(computed, fifo{.depth = 1}));
}
