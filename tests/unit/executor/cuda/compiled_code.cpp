// SPDX-License-Identifier: Apache-2.0
// Which devices the kernels of a build run on, by the rules of CUDA's compatibility.
#include "executor/cuda/compiled_code.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace rheo::cuda;

namespace {

/// Capabilities on which this code runs.
std::vector<int> served_by(std::string const& text)
{
    std::vector<int> served;
    for (int const number : {70, 75, 80, 86, 89, 90, 100, 103, 120}) {
        if (error_of_code(device_codes(text), "D", number).empty()) {
            served.push_back(number);
        }
    }
    return served;
}

}  // namespace

TEST_CASE("compiled_code: lists of a build are read")
{
    CHECK(device_codes("").empty());
    CHECK(device_codes("80 90a 100+") == std::vector<device_code>{{80}, {90, false, true}, {100, true}});
    CHECK(to_text(device_codes("80 90a 100+")) == "sm_80, sm_90a, PTX of compute_100 for later ones");
}

TEST_CASE("compiled_code: machine code and PTX serve their devices")
{
    CHECK(served_by("80") == std::vector<int>{80, 86, 89});
    CHECK(served_by("86") == std::vector<int>{86, 89});
    CHECK(served_by("90a") == std::vector<int>{90});
    CHECK(served_by("100") == std::vector<int>{100, 103});
    CHECK(served_by("80+") == std::vector<int>{80, 86, 89, 90, 100, 103, 120});
    CHECK(served_by("90a 100+") == std::vector<int>{90, 100, 103, 120});
}

TEST_CASE("compiled_code: a device without code is a sentence")
{
    CHECK(error_of_code(device_codes("90a 100+"), "Tesla T4", 75) ==
          "run.device is cuda, but this rheo has no code for Tesla T4, which has compute capability 7.5: it was built for sm_90a, PTX of compute_100 for later "
          "ones. Build it with -DRHEO_CUDA_ARCHITECTURES=75, or use another device (CUDA_VISIBLE_DEVICES)");
}
