// SPDX-License-Identifier: Apache-2.0
// Profiles of layers: from a model by the compiler, from text, and what is rejected.
#include <random>
#include <string>

#include "rheo/model/gpt.hpp"
#include "rheo/partition/layer_profile_csv.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr gpt_shape tiny{.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = 2};
constexpr microbatch_shape shape{1, 8};
constexpr cluster_description machine{2, {{1e9}, {1e9}, gibibytes(1)}, {{1e-6}, {1e9}}, {{1e-5}, {1e8}}};

/// By the compiler: a block takes what its operations or its bytes take, whichever is longer.
constexpr bool follows_from_the_model()
{
    auto const model = gpt_model(tiny);
    auto const layers = profile_of(model, shape, machine);
    auto const& block = model.layers[1];
    auto const moved = 4 * parameter_count(block) + activation_bytes(block, shape).count;
    auto const work = forward_flops(block, shape).count;
    return layers.size() == 4 && layers[1].forward == seconds{static_cast<double>(work > moved ? work : moved) / 1e9} &&
           layers[1].persistent == persistent_bytes(block) && layers[1].per_microbatch == activation_bytes(block, shape) &&
           layers[1].boundary == bytes{8 * 8 * 4} && layers[1].all_reduce == std::vector<seconds>{reduction_time(machine.in_node, bytes{256}, 2)};
}
static_assert(follows_from_the_model());

/// Sequences cut into slices take the same times and messages as a whole; what all slices keep of them is more than what a whole keeps.
constexpr bool counts_all_slices()
{
    auto const model = gpt_model(tiny);
    microbatch_shape const cut{1, 8, 4};
    auto const whole = profile_of(model, shape, machine)[1];
    auto const sliced = profile_of(model, cut, machine)[1];
    return sliced.per_microbatch == activation_bytes(model.layers[1], cut) * 4 && sliced.per_microbatch > whole.per_microbatch &&
           sliced.boundary == whole.boundary && sliced.forward >= whole.forward;
}
static_assert(counts_all_slices());

/// Where slots are half as wide, messages are, and what moves is.
constexpr bool follows_the_policy()
{
    auto const model = gpt_model(tiny);
    auto const layers = profile_of(model, shape, machine, bf16);
    auto const& block = model.layers[1];
    return layers[1].persistent == persistent_bytes(block, bf16) && layers[1].per_microbatch == activation_bytes(block, shape, bf16) &&
           layers[1].boundary == bytes{8 * 8 * 2} && layers[1].forward <= profile_of(model, shape, machine)[1].forward;
}
static_assert(follows_the_policy());

std::string const good =
    "layer,forward,backward,parameters,activations,boundary,all_reduce_2\n"
    "0,0.001,0.002,10,100,64,0.125\n"
    "1,0.0015,0.003,20,200,64,0\n";

std::string refusal(std::string const& text) { return parse_layer_profile(text, "p.csv").error(); }

std::string replaced(std::string const& what, std::string const& by)
{
    auto text = good;
    auto const at = text.find(what);
    REQUIRE(at != text.npos);
    return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("layer_profile: a profile reads as it was written")
{
    auto const read = parse_layer_profile(good, "p.csv");
    REQUIRE(read);
    REQUIRE(read->size() == 2);
    CHECK((*read)[1].forward == seconds{0.0015});
    CHECK((*read)[1].persistent == bytes{20 * 24});  // weights, two moments, accumulator, reduced gradient
    CHECK(to_csv(*read) == good);
    auto const modelled = profile_of(gpt_model(tiny), shape, machine);
    CHECK(*parse_layer_profile(to_csv(modelled), "p.csv") == modelled);
    auto const in_bf16 = profile_of(gpt_model(tiny), shape, machine, bf16);
    CHECK(*parse_layer_profile(to_csv(in_bf16, bf16), "p.csv", bf16) == in_bf16);
    CHECK(in_bf16[0].persistent * 24 == modelled[0].persistent * 26);
    CHECK(times_of(*read) == std::vector<seconds>{{0.001 + 0.002}, {0.0015 + 0.003}});
}

TEST_CASE("layer_profile: any text round-trips or is rejected")
{
    std::mt19937 draw{8};
    std::string const pieces[] = {",", "\n", "1e999", "-1", "0", "nan", "9223372036854775808", "all_reduce_3", "\r"};
    int read = 0;
    for (int round = 0; round < 20000; ++round) {
        auto text = good;
        for (auto times = 1 + draw() % 3; times > 0; --times) {
            auto const at = draw() % (text.size() + 1);
            if (draw() % 2 == 0) {
                text.erase(at, draw() % 9);
            } else {
                text.insert(at, pieces[draw() % std::size(pieces)]);
            }
        }
        auto const answer = parse_layer_profile(text, "p.csv");
        if (answer) {
            REQUIRE(*parse_layer_profile(to_csv(*answer), "again") == *answer);
            ++read;
        } else {
            REQUIRE(answer.error().find("p.csv, line ") == 0);
        }
    }
    CHECK(read > 100);
}

TEST_CASE("layer_profile: errors name file, line, expectation")
{
    std::string const form = "; a profile of layers has layer,forward,backward,parameters,activations,boundary and then all_reduce_2, all_reduce_3, ...";
    CHECK(refusal("") == "p.csv, line 1: column 1 is not 'layer'" + form);
    CHECK(refusal(replaced("backward", "back")) == "p.csv, line 1: column 3 is not 'backward'" + form);
    CHECK(refusal(replaced("reduce_2", "reduce_3")) == "p.csv, line 1: column 7 is 'all_reduce_3'" + form);
    CHECK(refusal(replaced(",64,0\n", "\n")) == "p.csv, line 3: 5 cells under a header of 7");
    CHECK(refusal(replaced("\n1,", "\n2,")) == "p.csv, line 3: layer is '2', but layers come in their order from 0 on, each once");
    CHECK(refusal(replaced("0.001,", "-1,")) == "p.csv, line 2: forward is '-1', but a time is a number of seconds from 0 to 2000");
    CHECK(refusal(replaced("0.002", "nan")) == "p.csv, line 2: backward is 'nan', but a time is a number of seconds from 0 to 2000");
    CHECK(refusal(replaced("10,", "1e1,")) == "p.csv, line 2: parameters is '1e1', but it is a whole number from 0 to 2^40");
    CHECK(refusal(replaced("64,0.125", "64,x")) == "p.csv, line 2: all_reduce_2 is 'x', but a time is a number of seconds from 0 to 2000");
    CHECK(refusal(good.substr(0, good.find('\n'))) == "p.csv, line 1: the profile has no rows");
}
