// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/checkpoint_resume.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>

namespace rheo::inline v0 {

namespace {

struct line_meaning {
    std::string_view name;
    std::string_view meaning;
    bool of_machine = false;
};

constexpr line_meaning meanings[] = {
    {"seed", "from here on other microbatches are drawn and other elements dropped than in the run that began"},
    {"data", "from here on the run reads other tokens than the ones it began with"},
    {"data order", "from here on other sequences come than in the run that began; which tokens were already seen is no longer what the step number says"},
    {"operations", "this is another model, or one whose operations are fused otherwise and round at other places"},
    {"microbatches per step", "a step has another batch; which tokens were already seen is no longer what the step number says"},
    {"microbatch", "a step has another batch; which tokens were already seen is no longer what the step number says"},
    {"optimizer", "updates, and the learning rate of each step, are others than those of the run that began"},
    {"steps that are not finite", "a step that is not finite is now treated otherwise"},
    {"dtypes", "numbers may now be rounded otherwise"},
    {"BLAS", "products are now rounded otherwise: the result is as good, but its bits are not those of the run that began", true},
    {"kernels", "operations may now be rounded otherwise: the result is as good, but its bits may not be those of the run that began", true},
};

// How the lines of a backend on a device begin (executor/cuda/backend.cpp).
bool is_of_device(std::string_view kernels) { return kernels.starts_with("CUDA"); }
bool is_of_host_blas(std::string_view products) { return !products.empty() && !products.starts_with("cuBLAS"); }

/// Of what computes attention, in the words of back_end::attention().
fingerprint_difference attention_difference(std::string const& before, std::string const& now)
{
    auto const key = [](std::string_view said) { return said.empty() ? "warp" : said.starts_with("cuDNN") ? "cudnn" : "warpgroup"; };
    std::string const name{attention_line};
    if (std::string_view{key(before)} != key(now)) {
        return {name, key(before), key(now),
                fmt::format("attention is now rounded otherwise; with run.attention = \"{}\" the bits stay those of the run that began", key(before))};
    }
    auto const version = [](std::string const& said) { return said.substr(0, said.find(',')); };
    if (version(before) != version(now)) {
        return {name, version(before), version(now),
                "attention is now rounded otherwise: the result is as good, but its bits are not those of the run that began", true};
    }
    bool const had_order = before.ends_with("one order");
    return {"run.deterministic", had_order ? "true" : "false", had_order ? "false" : "true",
            had_order ? "gradients are now added in any order; with run.deterministic = true the bits stay those of the run that began"
                      : "the bits of the run that began are those of no other run"};
}

fingerprint_difference difference(std::string const& name, std::string const& before, std::string const& now)
{
    if (name == "dtypes" && !before.empty()) {
        auto const dtype = [](std::string const& said) { return said.substr(0, said.find_first_of(", ")); };
        auto const state = [](std::string const& said) { return said.find("a state in bf16") != std::string::npos ? "bf16" : "fp32"; };
        auto const sums = [](std::string const& said) { return said.find("int32") != std::string::npos ? "int32" : "int64"; };
        std::string keys;
        auto const differs = [&](char const* key, std::string_view was, std::string_view is) {
            if (was != is) {
                keys += fmt::format("{}train.{} = \"{}\"", keys.empty() ? "" : " and ", key, was);
            }
        };
        differs("dtype", dtype(before), dtype(now));
        differs("state", state(before), state(now));
        differs("sums", sums(before), sums(now));
        return {name, before, now, fmt::format("numbers are now rounded otherwise; with {} the bits stay those of the run that began", keys)};
    }
    if (name == attention_line) {
        return attention_difference(before, now);
    }
    auto const found = std::find_if(std::begin(meanings), std::end(meanings), [&](auto const& m) { return m.name == name; });
    if (found == std::end(meanings)) {
        return {name, before, now, "the bits may not be those of the run that began"};
    }
    return {name, before, now, std::string{found->meaning}, found->of_machine};
}

std::string_view or_nothing(std::string const& value) { return value.empty() ? "not there" : std::string_view{value}; }

/// What run.device must have been and is now, where the two runs compute with the processor and with a device: then that, and not
/// the machine, is why their products and kernels are others.
std::optional<fingerprint_difference> other_device(std::span<fingerprint_line const> before, std::span<fingerprint_line const> now)
{
    auto const* was = line_in(before, "kernels");
    auto const* is = line_in(now, "kernels");
    if (was == nullptr || is == nullptr || is_of_device(was->value) == is_of_device(is->value)) {
        return std::nullopt;
    }
    auto const name = [](std::string_view kernels) { return is_of_device(kernels) ? "cuda" : "cpu"; };
    return fingerprint_difference{
        "run.device", name(was->value), name(is->value),
        fmt::format("operations are rounded otherwise there; with run.device = \"{}\" the bits stay those of the run that began", name(was->value))};
}

/// "[a] \n b = c" as a list of {"a.b", "c"}: the form that to_toml writes, one key per line.
std::vector<std::pair<std::string, std::string>> keys_of(std::string_view toml)
{
    std::vector<std::pair<std::string, std::string>> keys;
    std::istringstream lines{std::string{toml}};
    std::string table;
    for (std::string line; std::getline(lines, line);) {
        auto const equals = line.find(" = ");
        if (line.starts_with('[') && line.ends_with(']')) {
            table = line.substr(1, line.size() - 2) + ".";
        } else if (equals != std::string::npos && !line.starts_with('#')) {
            auto value = line.substr(equals + 3);
            if (auto const comment = value.rfind("  # "); comment != std::string::npos) {
                value.resize(value.find_last_not_of(' ', comment) + 1);
            }
            keys.emplace_back(table + line.substr(0, line.find_last_not_of(' ', equals) + 1), value);
        }
    }
    return keys;
}

}  // namespace

std::string fingerprint_difference::message() const { return fmt::format("{} was {} and is now {}: {}", name, or_nothing(before), or_nothing(now), meaning); }

std::vector<fingerprint_difference> differences(std::span<fingerprint_line const> before, std::span<fingerprint_line const> now)
{
    std::vector<fingerprint_difference> result;
    if (before.empty()) {
        return result;
    }
    auto const device = other_device(before, now);
    if (device) {
        result.push_back(*device);
    }
    for (auto const& line : before) {
        if (line.name == algorithms_line || (device && (line.name == "BLAS" || line.name == "kernels"))) {
            continue;
        }
        auto const* is = line_in(now, line.name);
        if (is == nullptr || is->value != line.value) {
            result.push_back(difference(line.name, line.value, is == nullptr ? "" : is->value));
        }
    }
    for (auto const& line : now) {
        if (line.name != algorithms_line && line_in(before, line.name) == nullptr) {
            result.push_back(difference(line.name, "", line.value));
        }
    }
    return result;
}

std::string message_about(std::span<fingerprint_difference const> differences)
{
    std::string text;
    std::string of_machine;
    std::string remedy;
    for (auto const& d : differences) {
        text += (text.empty() ? "" : "; ") + d.message();
        if (d.of_machine) {
            of_machine += (of_machine.empty() ? "" : " and ") + d.name;
            remedy += d.name == "BLAS" && is_of_host_blas(d.before) && is_of_host_blas(d.now)
                          ? fmt::format(", or with OPENBLAS_CORETYPE={} where the processor has it", d.before)
                          : "";
        }
    }
    if (!of_machine.empty()) {
        text += fmt::format("; this machine and this build, not the config, decide {}: the bits stay the same where the run began{}", of_machine, remedy);
    }
    return text;
}

std::vector<std::string> changed_keys(std::string_view before, std::string_view now)
{
    auto const old = keys_of(before);
    std::vector<std::string> changed;
    for (auto const& [key, value] : keys_of(now)) {
        auto const found = std::find_if(old.begin(), old.end(), [&, &name = key](auto const& o) { return o.first == name; });
        if (found != old.end() && found->second != value) {
            changed.push_back(fmt::format("{} was {} and is now {}", key, found->second, value));
        }
    }
    return changed;
}

}  // namespace rheo::inline v0
