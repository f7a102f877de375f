#pragma once
// SPDX-License-Identifier: Apache-2.0

// From any layout to any other, with the fewest bytes. Tenplex (SOSP'24, section 4.3) states the problem: each rank gets what it wants and
// does not have, from a rank that has it. Here the ranks that take places are an exact assignment, the senders are those of a maximum flow
// (no rank sends more than the least possible largest send and one row), and rounds are filled to their budget. Every figure of the plan
// stands beside the bound that it reaches.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rheo/reshard/detail/certify.hpp"
#include "rheo/reshard/detail/check_request.hpp"
#include "rheo/reshard/detail/choose_ranks.hpp"
#include "rheo/reshard/detail/choose_sources.hpp"
#include "rheo/reshard/detail/fill_rounds.hpp"
#include "rheo/reshard/detail/missing_pieces.hpp"
#include "rheo/reshard/detail/reshard_problem.hpp"
#include "rheo/reshard/detail/settle_rounds.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// A plan, or why there is none: a value for every compiler, where `result` needs a std::string.
struct reshard_outcome {
    reshard_plan plan{};
    reshard_fault fault{};

    friend constexpr bool operator==(reshard_outcome const&, reshard_outcome const&) = default;
};

namespace detail {

/// What the chosen ranks keep, and what they miss with who holds it.
template <class OnlyWhenCalled = void>
constexpr chosen_sources collect_and_deal(reshard_request const& request, reshard_problem const& problem, std::vector<receiver_group> const& groups,
                                          reshard_outcome& out)
{
    piece_cutter<> cutter{problem};
    struct wanted_piece {
        std::size_t group;
        std::size_t array;
        held_piece piece;
    };
    std::vector<wanted_piece> missing;
    for (std::size_t g = 0; g < groups.size(); ++g) {
        sub_collection kept{groups[g].ranks, {}};
        auto const keeps = [&](box_ref want, nd_box const& box) {
            auto const& array = problem.arrays[want.array];
            kept.parts.push_back({array.tensor, box, array.roles});
        };
        auto const misses = [&](box_ref want, held_piece const& piece) { missing.push_back({g, want.array, piece}); };
        for_each_part(problem, cutter, groups[g], keeps, misses);
        if (!kept.parts.empty()) {
            out.plan.kept.push_back(kept);
        }
    }
    source_chooser<> sources{problem, cutter.sets(), request.node_of};
    for (auto const& one : missing) {
        auto const& array = problem.arrays[one.array];
        if (cutter.sets()[one.piece.holders].empty()) {
            out.fault = lost_box(request, groups[one.group].ranks.front(), {array.tensor, one.piece.box, array.roles});
            return {};
        }
        for (auto const to : groups[one.group].ranks) {
            sources.add(one.piece.holders, missing_piece{to, one.array, one.piece.box, array.unit});
        }
    }
    return sources.choose();
}

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

/// Neighbours that travel together become one. @pre sorted
template <class OnlyWhenCalled = void>
constexpr void join_transfers(std::vector<transfer>& transfers)
{
    std::vector<transfer> joined;
    joined.reserve(transfers.size());
    std::vector<kept_apart_box> boxes;
    for (std::size_t first = 0, last = 0; first < transfers.size(); first = last) {
        auto const& one = transfers[first];
        auto const same = [&](transfer const& t) {
            return t.round == one.round && t.to == one.to && t.from == one.from && t.tensor == one.tensor && t.roles == one.roles;
        };
        boxes.clear();
        for (last = first; last < transfers.size() && same(transfers[last]); ++last) {
            boxes.push_back({0, transfers[last].box});
        }
        if (boxes.size() == 1) {
            joined.push_back(one);
            continue;
        }
        auto const unit = one.size.count / elements(one.box);
        join_boxes(boxes);
        std::sort(boxes.begin(), boxes.end(), [](kept_apart_box const& a, kept_apart_box const& b) { return a.box < b.box; });
        for (auto const& box : boxes) {
            joined.push_back(one);
            joined.back().box = box.box;
            joined.back().size = bytes{elements(box.box) * unit};
        }
    }
    transfers = std::move(joined);
}

/// Cuts and numbers the transfers by rounds. @pre sorted by receiver
template <class OnlyWhenCalled = void>
constexpr void put_into_rounds(reshard_request const& request, reshard_outcome& out)
{
    auto& transfers = out.plan.transfers;
    if (!request.round_budget) {
        return;
    }
    std::vector<transfer> filled;
    std::vector<transfer> received;
    for (std::size_t i = 0; i < transfers.size(); ++i) {
        auto const unit = transfers[i].size.count / elements(transfers[i].box);
        if (unit > request.round_budget->count) {
            out.fault = {.what = reshard_error::small_budget,
                         .name = out.plan.tensors[at(transfers[i].tensor)].name,
                         .number = request.round_budget->count,
                         .limit = unit};
            return;
        }
        received.push_back(transfers[i]);
        if (i + 1 == transfers.size() || transfers[i + 1].to != transfers[i].to) {
            fill_rounds(filled, received, *request.round_budget);
            received.clear();
        }
    }
    std::sort(filled.begin(), filled.end(), comes_before);
    transfers = std::move(filled);
}

/// What some rank has before or after, however the plan moves it.
template <class OnlyWhenCalled = void>
constexpr bytes least_peak(reshard_request const& request, reshard_plan const& plan)
{
    auto const at_the_end = layout_bytes(with_ranks_of(plan, request.to));
    return bytes{std::max(layout_bytes(request.from).largest(), at_the_end.largest())};
}

template <class OnlyWhenCalled = void>
constexpr void certify(reshard_request const& request, reshard_problem const& problem, chosen_ranks const& ranks, chosen_sources const& sources,
                       reshard_plan& plan)
{
    plan.certificate = figures_of(plan, request.from, request.node_of);
    auto& certificate = plan.certificate;
    missing_bytes const bytes_of{problem};
    std::vector<std::int64_t> wants;
    for (std::size_t w = 0; w < problem.wanted.size(); ++w) {
        wants.push_back(bytes_of.wanted(w));
    }
    rank_bytes missing;
    std::int64_t needed = 0;
    for (auto const& group : group_receivers(ranks.taken)) {
        auto const each = wants[group.wants] - bytes_of.common(group.wants, group.holds);
        needed += each * static_cast<std::int64_t>(group.ranks.size());
        for (auto const rank : group.ranks) {
            missing.add(rank, each);
        }
    }
    auto const least = bytes{needed};
    certificate.needed = {least, bytes{ranks.least_needed < 0 ? needed : ranks.least_needed}};
    certificate.moved.bound = least;
    certificate.largest_send.bound = bytes{sources.least_largest_send};
    certificate.largest_receive.bound = bytes{missing.largest()};
    certificate.between_nodes.bound = bytes{sources.between_nodes};
    auto const budget = request.round_budget ? request.round_budget->count : std::max<std::int64_t>(missing.largest(), 1);
    certificate.rounds.bound = (missing.largest() + budget - 1) / budget;
    certificate.peak.bound = least_peak(request, plan);
}

}  // namespace detail

/// As plan_reshard, with the fault as a value.
template <class OnlyWhenCalled = void>
constexpr reshard_outcome try_reshard(reshard_request const& request)
{
    reshard_outcome out;
    auto const live = detail::live_ranks(request);
    if (request.round_budget && request.round_budget->count <= 0) {
        out.fault = {.what = reshard_error::small_budget, .number = request.round_budget->count, .limit = 1};
        return out;
    }
    out.fault = detail::check_request(request, live);
    if (out.fault) {
        return out;
    }
    auto const problem = detail::make_problem(request, live);
    auto const ranks = detail::choose_ranks(problem, request);
    out.fault = ranks.fault;
    if (out.fault) {
        return out;
    }
    out.plan.tensors = request.to.tensors;
    if (request.ranks != rank_choice::pinned) {
        for (auto const& one : ranks.taken) {
            out.plan.taken.push_back({one.place.rank, one.rank.rank});
        }
    }
    if (auto const least = detail::least_peak(request, out.plan); request.memory_limit && *request.memory_limit < least) {
        out.fault = {.what = reshard_error::small_memory, .number = request.memory_limit->count, .limit = least.count};
        return out;
    }
    auto const sources = detail::collect_and_deal(request, problem, detail::group_receivers(ranks.taken), out);
    if (out.fault) {
        return out;
    }
    out.plan.transfers.reserve(sources.sent.size());
    for (auto const& [from, piece] : sources.sent) {
        auto const& array = problem.arrays[piece.array];
        out.plan.transfers.push_back({0, from, piece.to, array.tensor, array.roles, piece.box, bytes{size_of(piece)}});
    }
    std::sort(out.plan.transfers.begin(), out.plan.transfers.end(), detail::comes_before);
    detail::join_transfers(out.plan.transfers);
    if (request.memory_limit) {
        detail::round_settler<>{request, problem, detail::group_receivers(ranks.taken), out.plan}.settle();
        std::sort(out.plan.transfers.begin(), out.plan.transfers.end(), detail::comes_before);
    } else {
        detail::put_into_rounds(request, out);
    }
    if (!out.fault) {
        detail::certify(request, problem, ranks, sources, out.plan);
        auto const& peak = out.plan.certificate.peak;
        if (request.memory_limit && *request.memory_limit < peak.value) {
            out.fault = {.what = reshard_error::little_memory, .number = request.memory_limit->count, .limit = peak.value.count};
        }
    }
    return out;
}

/// The plan with the fewest bytes, or the sentence that says why there is none.
template <class OnlyWhenCalled = void>
constexpr result<reshard_plan> plan_reshard(reshard_request const& request)
{
    auto const out = try_reshard(request);
    if (out.fault) {
        return failure{std::string{describe(out.fault).view()}};
    }
    return out.plan;
}

}  // namespace rheo::inline v0
