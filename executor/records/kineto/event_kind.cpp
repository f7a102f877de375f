// SPDX-License-Identifier: Apache-2.0
#include "executor/records/kineto/event_kind.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace rheo::inline v0 {

namespace {

bool equal_letters(std::string_view a, std::string_view small)
{
    return std::equal(a.begin(), a.end(), small.begin(), small.end(), [](char x, char y) { return (x >= 'A' && x <= 'Z' ? x - 'A' + 'a' : x) == y; });
}

bool ends_in(std::string_view text, std::string_view small)
{
    return text.size() >= small.size() && equal_letters(text.substr(text.size() - small.size()), small);
}

}  // namespace

event_kind kind_of(std::string_view category)
{
    if (equal_letters(category, "kernel")) {
        return event_kind::kernel;
    }
    if (ends_in(category, "memcpy") || ends_in(category, "memset")) {
        return event_kind::memory;
    }
    if (ends_in(category, "runtime") || ends_in(category, "_driver")) {
        return event_kind::launch;
    }
    return category.starts_with("gpu_") ? event_kind::other : event_kind::mark;
}

bool communicates(std::string_view kernel) { return kernel.starts_with("nccl") || kernel.starts_with("rccl"); }

std::string_view blocking_operation(std::string_view name)
{
    constexpr std::pair<std::string_view, std::string_view> known[] = {
        {"allreduce", "AllReduce"},
        {"allgather", "AllGather"},
        {"reducescatter", "ReduceScatter"},
        {"alltoall", "AllToAll"},
    };
    std::string letters;
    for (char const c : name.substr(0, 64)) {
        auto const small = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        if (small >= 'a' && small <= 'z') {
            letters += small;
        }
    }
    for (auto const& [word, operation] : known) {
        if (letters.find(word) != letters.npos) {
            return operation;
        }
    }
    return {};
}

}  // namespace rheo::inline v0
