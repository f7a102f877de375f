// SPDX-License-Identifier: Apache-2.0

// The failure tests of the executor, from outside: jobs under mpirun that lose ranks and must end with the
// bits of the undisturbed job.
//   campaign NAME <train_once> <work folder> [<seed of the random times>]
// NAME is one of those in main().
// RHEO_MPIRUN names the launcher. A run that is wrong keeps its folder; one that hangs is stopped at its
// deadline, and says where its processes stood.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "campaigns.hpp"

int main(int argc, char** argv)
{
    std::uint64_t const seed = argc == 5 ? std::strtoull(argv[4], nullptr, 10) : 20261121;
    std::map<std::string_view, std::function<bool(campaign::driver&)>> const campaigns{
        {"same_bits", campaign::same_bits},
        {"phases", campaign::phases_hit},
        {"groups", campaign::groups},
        {"families", [](campaign::driver& drive) { return campaign::families(drive, false); }},
        {"slices", [](campaign::driver& drive) { return campaign::slices(drive, false); }},
        {"all_families", [](campaign::driver& drive) { return campaign::families(drive, true) && campaign::slices(drive, true); }},
        {"clocks", [](campaign::driver& drive) { return campaign::clocks(drive, false); }},
        {"all_clocks", [](campaign::driver& drive) { return campaign::clocks(drive, true); }},
        {"random_kills", [&](campaign::driver& drive) { return campaign::random_kills(drive, seed); }},
        {"no_replica", campaign::no_replica},
        {"members", [&](campaign::driver& drive) { return campaign::members_change(drive, seed, 12, 8); }},
        {"members_long", [&](campaign::driver& drive) { return campaign::members_change(drive, seed, 32, 25); }}};
    auto const which = argc == 4 || argc == 5 ? campaigns.find(argv[1]) : campaigns.end();
    if (which == campaigns.end() || std::getenv("RHEO_MPIRUN") == nullptr) {
        std::string names;
        for (auto const& [name, run] : campaigns) {
            names += (names.empty() ? "" : "|") + std::string{name};
        }
        std::fprintf(stderr, "campaign %s <train_once> <work folder> [<seed>], with RHEO_MPIRUN in the environment\n", names.c_str());
        return 2;
    }
    try {
        campaign::driver drive{argv[2], argv[3]};
        return which->second(drive) ? 0 : 1;
    } catch (std::exception const& error) {
        std::printf("FAILED  %s\n", error.what());
        return 1;
    }
}
