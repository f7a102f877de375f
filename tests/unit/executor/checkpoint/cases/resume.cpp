// SPDX-License-Identifier: Apache-2.0
// What differs between two runs, in sentences.
#include "executor/checkpoint/checkpoint_resume.hpp"

#include <string>
#include <vector>

#include "executor/config/toml.hpp"
#include "support/catch.hpp"

using namespace rheo;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("resume: equal fingerprints do not differ")
{
    std::vector<fingerprint_line> const lines{{"seed", "1"}, {"BLAS", "Haswell"}};
    CHECK(differences(lines, lines).empty());
    CHECK(differences({}, lines).empty());
}

TEST_CASE("resume: each changed line is reported with both values")
{
    std::vector<fingerprint_line> const before{{"seed", "1"}, {"BLAS", "Haswell"}, {"gone", "x"}};
    std::vector<fingerprint_line> const now{{"BLAS", "SkylakeX"}, {"seed", "2"}, {"added", "y"}};
    auto const found = differences(before, now);
    REQUIRE(found.size() == 4);
    CHECK(found[0].message() == "seed was 1 and is now 2: from here on other microbatches are drawn and other elements dropped than in the run that began");
    CHECK_FALSE(found[0].of_machine);
    CHECK(found[1].of_machine);
    CHECK_THAT(found[1].message(), ContainsSubstring("BLAS was Haswell and is now SkylakeX: "));
    CHECK_THAT(found[2].message(), ContainsSubstring("gone was x and is now not there: "));
    CHECK_THAT(found[3].message(), ContainsSubstring("added was not there and is now y: "));
}

TEST_CASE("resume: rejection lists all changes and the machine's")
{
    std::vector<fingerprint_difference> differ{{"seed", "1", "2", "other microbatches are drawn"}};
    CHECK(message_about(differ) == "seed was 1 and is now 2: other microbatches are drawn");
    differ.push_back({"BLAS", "Haswell", "SkylakeX", "products are rounded otherwise", true});
    differ.push_back({"kernels", "host, 12", "host, 13", "bits may differ", true});
    CHECK(message_about(differ) ==
          "seed was 1 and is now 2: other microbatches are drawn; BLAS was Haswell and is now SkylakeX: products are rounded otherwise; kernels was "
          "host, 12 and is now host, 13: bits may differ; this machine and this build, not the config, decide BLAS and kernels: the bits stay "
          "the same where the run began, or with OPENBLAS_CORETYPE=Haswell where the processor has it");
}

TEST_CASE("resume: changed device or dtype names its key")
{
    std::vector<fingerprint_line> const device{
        {"dtypes", "bf16, exact int64 sums"}, {"BLAS", "cuBLASLt 130100, one sequence of terms"}, {"kernels", "CUDA 13.0, H200 (sm_90), 1.0"}};
    std::vector<fingerprint_line> const host{{"dtypes", "fp32, exact int64 sums"}, {"BLAS", "Haswell"}, {"kernels", "host, 12 1.0"}};
    CHECK(message_about(differences(device, host)) ==
          "run.device was cuda and is now cpu: operations are rounded otherwise there; with run.device = \"cuda\" the bits stay those of the run that began; "
          "dtypes was bf16, exact int64 sums and is now fp32, exact int64 sums: numbers are now rounded otherwise; with train.dtype = \"bf16\" the bits stay "
          "those of the run that began");
    auto const back = differences(host, device);
    REQUIRE(back.size() == 2);
    CHECK_THAT(back[0].message(), ContainsSubstring("run.device was cpu and is now cuda: ") && ContainsSubstring("with run.device = \"cpu\""));
    CHECK_THAT(back[1].message(), ContainsSubstring("with train.dtype = \"fp32\" the bits"));
    std::vector<fingerprint_line> const rows{{"dtypes", "fp32, exact int32 sums with a scale per row"}, {"BLAS", "Haswell"}, {"kernels", "host, 12 1.0"}};
    CHECK_THAT(differences(host, rows).at(0).message(), ContainsSubstring("with train.sums = \"int64\" the bits"));
    CHECK_THAT(differences(rows, host).at(0).message(), ContainsSubstring("with train.sums = \"int32\" the bits"));
    // Two devices: the machine decides, and no host's BLAS is offered.
    auto other = device;
    other[1].value = "cuBLASLt 140000, one sequence of terms";
    CHECK_THAT(message_about(differences(device, other)),
               ContainsSubstring("this machine and this build, not the config, decide BLAS") && !ContainsSubstring("OPENBLAS_CORETYPE"));
}

TEST_CASE("resume: changed config keys, as in the run folder")
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
