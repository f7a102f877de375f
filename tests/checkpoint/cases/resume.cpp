// SPDX-License-Identifier: Apache-2.0
// What differs between two runs, in sentences.
#include "runtime/checkpoint_resume.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "runtime/toml.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("the same fingerprint has no differences; an import's is empty and any run may follow")
{
    std::vector<fingerprint_line> const lines{{"seed", "1"}, {"BLAS", "Haswell"}};
    CHECK(differences(lines, lines).empty());
    CHECK(differences({}, lines).empty());
}

TEST_CASE("each line that differs is said once, with both values and what it means")
{
    std::vector<fingerprint_line> const before{{"seed", "1"}, {"BLAS", "Haswell"}, {"gone", "x"}};
    std::vector<fingerprint_line> const now{{"BLAS", "SkylakeX"}, {"seed", "2"}, {"added", "y"}};
    auto const found = differences(before, now);
    REQUIRE(found.size() == 4);
    CHECK(found[0].sentence() == "seed was 1 and is now 2: from here on other microbatches are drawn and other elements dropped than in the run that began");
    CHECK_FALSE(found[0].of_machine);
    CHECK(found[1].of_machine);
    CHECK_THAT(found[1].sentence(), ContainsSubstring("BLAS was Haswell and is now SkylakeX: "));
    CHECK_THAT(found[2].sentence(), ContainsSubstring("gone was x and is now not there: "));
    CHECK_THAT(found[3].sentence(), ContainsSubstring("added was not there and is now y: "));
}

TEST_CASE("a refusal says every difference, and which of them come from the machine")
{
    std::vector<fingerprint_difference> differ{{"seed", "1", "2", "other microbatches are drawn"}};
    CHECK(sentence_about(differ) == "seed was 1 and is now 2: other microbatches are drawn");
    differ.push_back({"BLAS", "Haswell", "SkylakeX", "products are rounded otherwise", true});
    differ.push_back({"kernels", "host, 12", "host, 13", "bits may differ", true});
    CHECK(sentence_about(differ)
        == "seed was 1 and is now 2: other microbatches are drawn; BLAS was Haswell and is now SkylakeX: products are rounded otherwise; kernels was "
           "host, 12 and is now host, 13: bits may differ; this machine and this build, not the config, decide BLAS and kernels: the bits stay "
           "the same where the run began, or with OPENBLAS_CORETYPE=Haswell where the processor has it");
}

TEST_CASE("changed keys of the config, in the form that the run folder keeps")
{
    run_config before;
    run_config now;
    CHECK(changed_keys(to_toml(before), to_toml(now)).empty());
    now.run.threads = 4;
    now.data.paths = {"a = b", "c  # d"};
    now.train.microbatch.tokens = 32;
    auto const changed = changed_keys(to_toml(before), to_toml(now));
    REQUIRE(changed.size() == 3);
    CHECK(changed[0] == "data.paths was [] and is now [\"a = b\", \"c  # d\"]");
    CHECK_THAT(changed[1], ContainsSubstring("tokens was 64 and is now 32"));
    CHECK(changed[2] == "run.threads was 1 and is now 4");
}
