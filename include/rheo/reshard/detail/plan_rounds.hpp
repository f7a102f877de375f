#pragma once
// SPDX-License-Identifier: Apache-2.0

// The rounds of a plan: each receiver's by itself, and the fewest that any plan needs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/reshard/detail/fill_rounds.hpp"
#include "rheo/reshard/reshard_fault.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0::detail {

constexpr bool comes_before(transfer const& a, transfer const& b)
{
    if (a.round != b.round) {
        return a.round < b.round;
    }
    if (a.to != b.to) {
        return a.to < b.to;
    }
    if (a.tensor != b.tensor) {
        return a.tensor < b.tensor;
    }
    if (a.from != b.from) {
        return a.from < b.from;
    }
    return a.roles != b.roles ? a.roles < b.roles : a.box < b.box;
}

/// Elements that no round has room for.
constexpr reshard_fault fault_of_budget(reshard_request const& request, reshard_plan const& plan)
{
    for (auto const& move : plan.transfers) {
        auto const unit = move.size.count / elements(move.box);
        if (request.round_budget && unit > request.round_budget->count) {
            return {.error = reshard_error::small_budget, .name = plan.tensors[at(move.tensor)].name, .number = request.round_budget->count, .limit = unit};
        }
    }
    return {};
}

/// Cuts and numbers the transfers by rounds. @pre sorted by receiver
template <class OnlyWhenCalled = void>
constexpr void put_into_rounds(std::vector<role_sizes> const& sizes, bytes budget, std::vector<transfer>& transfers)
{
    std::vector<transfer> filled;
    std::vector<transfer> received;
    round_filler<> filler{sizes, budget};
    for (std::size_t i = 0; i < transfers.size(); ++i) {
        received.push_back(transfers[i]);
        if (i + 1 == transfers.size() || transfers[i + 1].to != transfers[i].to) {
            filler.fill(filled, received);
            received.clear();
        }
    }
    std::sort(filled.begin(), filled.end(), comes_before);
    transfers = std::move(filled);
}

/// What no plan goes below: the law of each receiver.
template <class OnlyWhenCalled = void>
constexpr std::int64_t least_rounds(std::vector<role_sizes> const& sizes, std::optional<bytes> budget, std::vector<transfer> const& transfers)
{
    if (!budget) {
        return transfers.empty() ? 0 : 1;
    }
    std::vector<std::vector<sized_bytes>> received;
    for (auto const& move : transfers) {
        received.resize(std::max(received.size(), at(move.to) + 1));
        for (int r = 0; r < tensor_roles; ++r) {
            auto const size = sizes[at(move.tensor)][static_cast<std::size_t>(r)];
            if (move.roles.has(static_cast<tensor_role>(r)) && size > 0) {
                add_sized(received[at(move.to)], size, elements(move.box) * size);
            }
        }
    }
    std::int64_t most = 0;
    for (auto const& all : received) {
        most = std::max(most, fewest_rounds(all, budget->count));
    }
    return most;
}

}  // namespace rheo::inline v0::detail
