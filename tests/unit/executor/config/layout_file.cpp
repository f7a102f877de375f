// SPDX-License-Identifier: Apache-2.0
// Layouts as files: what is written reads the same, and every mistake is refused with the place and a sentence.
#include "executor/config/files/layout_file.hpp"

#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "../../../support/random_layouts.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::string good()
{
    std::ifstream file{std::string{RHEO_SOURCE_DIR} + "/tests/unit/fuzz/corpus/layout/two", std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

/// The error for the good file with one text in it replaced.
std::string said_of(std::string const& text, std::string const& instead)
{
    auto changed = good();
    auto const where = changed.find(text);
    REQUIRE(where != std::string::npos);
    changed.replace(where, text.size(), instead);
    try {
        (void)parse_layout(changed, "a.json");
    } catch (exit_error const& error) {
        return error.what();
    }
    return "nothing";
}

}  // namespace

TEST_CASE("layout_file: what was written is what is read")
{
    auto const layout = parse_layout(good(), "a.json");
    CHECK(format_layout(layout) == good());
    CHECK(layout.tensors[1].padded == nd_shape{8, 2});
    CHECK(layout.tensors[1].element[0] == element_format{dtype::bf16});
    CHECK(layout.tensors[1].element[3] == element_format{bytes{8}});
    CHECK(layout.tensors[1].addends == role_set{tensor_role::accumulator});
    CHECK(layout.places[0].ranks == std::vector{rank_id{0}, rank_id{2}});
    CHECK(layout.places[1].parts[1].roles == role_set{tensor_role::first_moment});

    std::mt19937 draw{4};
    for (int round = 0; round < 300; ++round) {
        auto const tensors = random_layouts::padded_at_random(random_layouts::random_tensors(draw), draw);
        auto const drawn = random_layouts::random_layout(tensors, 1 + static_cast<int>(draw() % 5), draw);
        CHECK(parse_layout(format_layout(drawn), "drawn") == drawn);
    }
}

TEST_CASE("layout_file: each mistake is refused with its place")
{
    CHECK(said_of("\"schema\": 1", "\"schema\": 2") == "a.json: /schema is not 1, the only one that this program knows");
    CHECK(said_of("\"schema\": 1,", "") == "a.json: the file has no 'schema'");
    CHECK(said_of("\"shape\":[4,6]", "\"shap\":[4,6]") == "a.json: /tensors/0 has an unknown key 'shap'; the nearest is 'shape'");
    CHECK(said_of("\"shape\":[4,6],", "") == "a.json: /tensors/0 has no 'shape'");
    CHECK(said_of("[4,6]", "[4,-6]") == "a.json: /tensors/0/shape has a 'length' that is not a whole number from 0 to 9223372036854775807");
    CHECK(said_of("[4,6]", "[1,1,1,1,1,1,1,1,1]") == "a.json: /tensors/0/shape has 9 dimensions, but an array has at most 8");
    CHECK(said_of("[4,6]", "[]") == "a.json: /tensors/0/shape is an empty list");
    CHECK(said_of("\"bf16\"", "\"fp8\"") ==
          "a.json: /tensors/1/dtypes/parameter is 'fp8', which is no dtype; dtypes are f64, f32, f16, bf16, i64, i32, or a number of bytes");
    CHECK(said_of("\"first_moment\":\"f32\"", "\"moment\":\"f32\"") ==
          "a.json: /tensors/0/dtypes is 'moment', which is no role; roles are parameter, first_moment, second_moment, accumulator");
    CHECK(said_of("[0,2]", "[-1]") == "a.json: /places/0/ranks has a 'rank' that is not a whole number from 0 to 2147483647");
    CHECK(said_of("[[0,2],[0,6]]", "[[0,2],[0]]") ==
          "a.json: /places/0/parts/0/box/1 is not a range like [0, 4], from the first index to the one behind the last");
    CHECK(said_of("[[0,2],[0,6]]", "[[2,0],[0,6]]") == "a.json: /places/0/parts/0/box/0 ends at 0, before it begins at 2");
    CHECK(said_of("\"tensor\":\"wte\",\"box\":[[0,4]", "\"tensor\":\"wtf\",\"box\":[[0,4]") ==
          "a.json: /places/0/parts/1 is of tensor 'wtf', which is not in 'tensors'");
    CHECK(said_of("\"name\":\"w\"", "\"name\":\"\"") == "a.json: /tensors/0/name has 0 letters; names have 1 to 95");
    CHECK(said_of("\"schema\"", "\"tensors\": 3, \"schema\"") == "a.json: has the key 'tensors' twice");
}

TEST_CASE("layout_file: faults of the layout itself are named")
{
    CHECK(said_of("[[0,2],[0,6]]", "[[0,5],[0,6]]") == "a.json: rank 0, tensor \"w\" [0:5, 0:6]: the box leaves the tensor [0:4, 0:6]");
    CHECK(said_of("\"ranks\": [1]", "\"ranks\": [2]") == "a.json: rank 2: the layout lists this rank twice; list it once with all its parts");
    CHECK(said_of("[[2,4],[0,3]]", "[[2,4],[0,4]]") == "a.json: rank 1, tensor \"w\" [2:4, 0:4]: the box overlaps with another of the same rank, [2:4, 3:6]");
    CHECK(said_of("[[2,4],[0,3]]", "[[3,4],[0,3]]") == "a.json: tensor \"w\" [2:3, 0:3]: no rank has these elements");
    CHECK(said_of("[[0,4],[0,2]]", "[[0,4]]") == "a.json: rank 0, tensor \"wte\" [0:4]: the box has 1 dimensions and the tensor 2");
}
