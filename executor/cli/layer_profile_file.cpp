// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/layer_profile_file.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "executor/cli/commands.hpp"
#include "executor/plan/layer_profile_file.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

/// A layer takes milliseconds for a microbatch: a file with whole seconds most likely has another unit.
void doubt_times(std::string const& path, std::vector<layer_profile> const& layers)
{
    constexpr seconds most{1.0};
    auto const time = [](layer_profile const& layer) { return layer.forward + layer.backward; };
    auto const slowest = std::max_element(layers.begin(), layers.end(), [&](auto const& a, auto const& b) { return time(a) < time(b); });
    if (time(*slowest) >= most) {
        fmt::print(stderr, "rheo: warning: {}: layer {} takes {:.6g} s for one microbatch; times are read as seconds: are these milliseconds?\n", path,
                   slowest - layers.begin(), time(*slowest).count);
    }
}

}  // namespace

std::vector<layer_profile> read_layer_profile(std::string const& path, std::size_t layers, dtype_policy const& policy, int node_size)
{
    auto read = find_layer_profile(path, policy);
    if (!read) {
        throw exit_error{exit_code::bad_data, read.error()};
    }
    if (read->size() != layers) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: a profile of {} layers, but the model has {}", path, read->size(), layers)};
    }
    if (static_cast<int>(read->front().all_reduce.size()) + 1 < node_size) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("{}: stages of up to {} devices need the columns all_reduce_2 to all_reduce_{}", path, node_size, node_size)};
    }
    doubt_times(path, *read);
    return *std::move(read);
}

}  // namespace rheo::cli
