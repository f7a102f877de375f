// SPDX-License-Identifier: Apache-2.0
// same_job_number <mpirun> <number> <arguments of mpirun...>: starts the launcher of Open MPI 5 so that its job has this number, 0 to 65535.
// The number is a hash of the name by which the launcher was started, the host and its process number, so a name is searched for.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

/// As opal_pmix_convert_nspace has it: Jenkins's one-at-a-time hash, its halves folded.
std::uint32_t job_number(std::string const& name)
{
    std::uint32_t hash = 0;
    for (char const c : name) {
        hash += static_cast<std::uint32_t>(c);
        hash += hash << 10;
        hash ^= hash >> 6;
    }
    hash += hash << 3;
    hash ^= hash >> 11;
    hash += hash << 15;
    return (hash >> 16 ^ hash) & 0xffff;
}

}  // namespace

int main(int argc, char** argv)
{
    std::string const mpirun = argc > 2 ? argv[1] : "";
    auto const folder = mpirun.substr(0, mpirun.rfind('/') + 1);
    auto const launcher = folder + "prterun";
    if (argc < 3 || ::access(launcher.c_str(), X_OK) != 0) {
        std::fprintf(stderr, "same_job_number: there is no %s\n", launcher.c_str());
        return 77;
    }
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    auto const wanted = static_cast<std::uint32_t>(std::atoi(argv[2]));
    auto const where = '-' + std::string{host}.substr(0, std::string{host}.find('.')) + '-' + std::to_string(::getpid());
    int suffix = 0;
    while (job_number("prterun" + std::to_string(suffix) + where) != wanted) {
        ++suffix;
    }
    auto name = launcher + std::to_string(suffix);
    std::string personality[] = {"--personality", "ompi"};
    std::vector<char*> words{name.data(), personality[0].data(), personality[1].data()};
    words.insert(words.end(), argv + 3, argv + argc);
    words.push_back(nullptr);
    ::setenv("OMPI_TOOL_NAME", "mpirun", 1);  // as mpirun does before it becomes prterun
    ::setenv("OPAL_PREFIX", (folder + "..").c_str(), 0);
    ::execv(launcher.c_str(), words.data());
    std::perror(launcher.c_str());
    return 1;
}
