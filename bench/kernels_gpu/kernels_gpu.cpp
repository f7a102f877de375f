// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels against what the same device does at best in the same run: the memory-bound ones against a copy, products, attention and whole layers
// against a large product; energy per token where NVML reports it.
//   bench_kernels_gpu [--mib 256] [--repeats 20] [--json] [--only memory|products|models] [--report FOLDER] [--nvml LIBRARY]
// A memory-bound kernel's shape is chosen so that it moves at least so many MiB, more than any cache holds; the time is the median of the repeats, by
// events. --report sweeps sizes besides and writes a page with pictures: all that is wanted of a new device, by one command.
// The tests run it on their emulated device, where it shows that all of it runs; times mean nothing there.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "families.hpp"
#include "results.hpp"

int main(int argc, char** argv)
{
    bench::options o;
    std::string_view only;
    for (int i = 1; i < argc; ++i) {
        std::string_view const word = argv[i];
        if (word == "--json") {
            o.json = true;
        } else if (word == "--mib" && i + 1 < argc) {
            o.mib = std::atof(argv[++i]);
        } else if (word == "--repeats" && i + 1 < argc) {
            o.repeats = std::atoi(argv[++i]);
        } else if (word == "--report" && i + 1 < argc) {
            o.report = argv[++i];
        } else if (word == "--nvml" && i + 1 < argc) {
            o.nvml = argv[++i];
        } else if (word == "--only" && i + 1 < argc) {
            only = argv[++i];
        } else {
            std::fprintf(stderr, "bench_kernels_gpu [--mib 256] [--repeats 20] [--json] [--only memory|products|models] [--report FOLDER] [--nvml LIBRARY]\n");
            return 2;
        }
    }
    if (!(o.mib > 0) || o.repeats < 1 || !(only.empty() || only == "memory" || only == "products" || only == "models")) {
        std::fprintf(stderr, "--mib and --repeats are above zero, --only is memory, products or models\n");
        return 2;
    }
    try {
        bench::results to{o};
        auto const wanted = [&](std::string_view family) { return only.empty() || only == family; };
        if (wanted("memory")) {
            bench::memory_bound(to);
        }
        if (wanted("products")) {
            bench::products(to);
        }
        if (wanted("models")) {
            bench::models(to);
        }
        if (!o.report.empty()) {
            bench::sizes(to);
            if (!bench::write_report(to)) {
                std::fprintf(stderr, "%s: report.html and results.jsonl cannot be written\n", o.report.c_str());
                return 5;
            }
        }
    } catch (std::exception const& problem) {
        std::fprintf(stderr, "%s\n", problem.what());
        return 5;
    }
    return 0;
}
