// SPDX-License-Identifier: Apache-2.0
// change_manifest <manifest.json> <how>: makes a checkpoint's manifest absurd and seals it again, so that its digest is right and only what it says is wrong.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/checkpoint_manifest.hpp"

using namespace rheo;

namespace {

constexpr std::int64_t absurd = 1'000'000'000'000'000'000;

/// Gives the first parameter this shape, and its boxes with it, so that the manifest agrees with itself.
void reshape(checkpoint_manifest& m, tensor_shape shape)
{
    auto const tensor = std::find_if(m.tensors.begin(), m.tensors.end(), [](auto const& t) { return t.is_parameter; });
    tensor->shape = shape;
    tensor->row_scales_log2.clear();
    for (auto& file : m.files) {
        for (auto& entry : file.entries) {
            if (entry.tensor == tensor->name) {
                entry.box = whole(shape);
            }
        }
    }
}

using change = void (*)(checkpoint_manifest&);
std::map<std::string, change> const changes{
    {"file of 10^18 bytes", [](auto& m) { m.files.front().bytes = absurd; }},
    {"file of -1 bytes", [](auto& m) { m.files.front().bytes = -1; }},
    {"tensor of 10^18 rows", [](auto& m) { m.tensors.front().shape.rows = absurd; }},
    {"tensor of -1 rows", [](auto& m) { m.tensors.front().shape.rows = -1; }},
    {"tensor of 2^58 elements", [](auto& m) { reshape(m, {std::int64_t{1} << 40, std::int64_t{1} << 18}); }},
    {"generation -1", [](auto& m) { m.generation.value = -1; }},
    {"scale of 2^10000", [](auto& m) { m.tensors.front().scale_log2 = 10'000; }},
    {"no change", [](auto&) {}},
};

}  // namespace

int main(int argc, char** argv)
{
    try {
        std::string const path = argc == 3 ? argv[1] : throw std::runtime_error{"usage: change_manifest <manifest.json> <how>"};
        auto manifest = parse_manifest(read_file(path, 1 << 24), path);
        changes.at(argv[2])(manifest);
        output_file file{path};
        file.write(format_manifest(manifest));
        file.sync_and_close();
    } catch (std::exception const& error) {
        std::fprintf(stderr, "change_manifest: %s\n", error.what());
        return 1;
    }
    return 0;
}
