#pragma once
// SPDX-License-Identifier: Apache-2.0

// From any layout to any other, with the fewest bytes. Tenplex (SOSP'24, section 4.3) states the problem: each rank gets what it wants and
// does not have, from a rank that has it. Here the ranks that take places are an exact assignment, the senders are those of a maximum flow
// (no rank sends more than the least possible largest send and one row), and rounds are filled to their budget. Every figure of the plan
// stands beside the bound that it reaches.
//
// Sums: where the source layout keeps addends of a tensor, a rank that wants an element gets the addend of each holder but itself, once, and
// adds them up in the order of ranks. These are the fewest bytes of all plans that do not add on the way. A plan that does moves fewer
// where several ranks want one sum (n addends to m ranks: n + m instead of n x m), but its sums depend on who adds what.

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
#include "rheo/reshard/detail/missing_pieces.hpp"
#include "rheo/reshard/detail/plan_rounds.hpp"
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

/// In the order of a plan. Numbers are sorted and not the pieces, which are large.
template <class OnlyWhenCalled = void>
constexpr std::vector<transfer> transfers_of(reshard_problem const& problem, std::vector<sourced_piece> const& sent)
{
    struct place_in_order {
        rank_id to;
        rank_id from;
        std::size_t array;
        std::size_t piece;
    };
    std::vector<place_in_order> order;
    order.reserve(sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
        order.push_back({sent[i].piece.to, sent[i].from, sent[i].piece.array, i});
    }
    std::sort(order.begin(), order.end(), [&](place_in_order const& a, place_in_order const& b) {
        if (a.to != b.to) {
            return a.to < b.to;
        }
        auto const& first = problem.arrays[a.array];
        auto const& second = problem.arrays[b.array];
        if (first.tensor != second.tensor) {
            return first.tensor < second.tensor;
        }
        if (a.from != b.from) {
            return a.from < b.from;
        }
        return a.array != b.array ? first.roles < second.roles : sent[a.piece].piece.box < sent[b.piece].piece.box;
    });
    std::vector<transfer> transfers;
    transfers.reserve(sent.size());
    for (auto const& one : order) {
        auto const& piece = sent[one.piece].piece;
        auto const& array = problem.arrays[piece.array];
        transfers.push_back({0, one.from, piece.to, array.tensor, array.roles, piece.box, bytes{size_of(piece)}});
    }
    return transfers;
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

/// How the source layout keeps the tensors, where a plan has to know.
template <class OnlyWhenCalled = void>
constexpr std::vector<held_format> held_formats(reshard_request const& request)
{
    std::vector<held_format> held;
    bool same = true;
    for (std::size_t t = 0; t < request.from.tensors.size(); ++t) {
        auto const& tensor = request.from.tensors[t];
        held.push_back({tensor.element, tensor.addends & roles_of(tensor)});
        same = same && tensor.element == request.to.tensors[t].element && held.back().addends.empty();
    }
    if (same) {
        held.clear();
    }
    return held;
}

/// In the fewest rounds where they keep the memory limit; else as the limit allows.
template <class OnlyWhenCalled = void>
constexpr void settle_in_place(reshard_request const& request, reshard_problem const& problem, std::vector<receiver_group> const& groups, reshard_plan& plan)
{
    if (request.round_budget) {
        auto filled = plan;
        put_into_rounds(problem.sizes, *request.round_budget, filled.transfers);
        if (round_settler<>{request, problem, groups, filled}.settle_filled()) {
            plan = std::move(filled);
            return;
        }
    }
    round_settler<>{request, problem, groups, plan}.settle();
    std::sort(plan.transfers.begin(), plan.transfers.end(), comes_before);
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
    plan.certificate = figures_of(plan, request.from, request.to, request.node_of);
    auto& certificate = plan.certificate;
    missing_bytes<OnlyWhenCalled> bytes_of{problem};
    rank_bytes missing;
    std::int64_t needed = 0;
    std::size_t wants = problem.wanted.size();
    std::vector<sized_class> shared;
    std::int64_t all = 0;
    for (auto const& group : group_receivers(ranks.taken)) {  // ascending by what they want
        if (group.wants != wants) {
            wants = group.wants;
            shared = bytes_of.shared(wants);
            all = bytes_of.needed(wants);
        }
        auto const own = std::lower_bound(shared.begin(), shared.end(), sized_class{group.holds, 0});
        auto const each = all - (own != shared.end() && own->of == group.holds ? own->bytes : 0);
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
    certificate.rounds.bound = least_rounds(problem.sizes, request.round_budget, plan.transfers);
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
        out.fault = {.error = reshard_error::small_budget, .number = request.round_budget->count, .limit = 1};
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
    out.plan.held = detail::held_formats(request);
    if (request.ranks != rank_choice::pinned) {
        for (auto const& one : ranks.taken) {
            out.plan.taken.push_back({one.place.rank, one.rank.rank});
        }
    }
    if (auto const least = detail::least_peak(request, out.plan); request.memory_limit && *request.memory_limit < least) {
        out.fault = {.error = reshard_error::small_memory, .number = request.memory_limit->count, .limit = least.count};
        return out;
    }
    auto const sources = detail::collect_and_deal(request, problem, detail::group_receivers(ranks.taken), out);
    if (out.fault) {
        return out;
    }
    out.plan.transfers = detail::transfers_of(problem, sources.sent);
    detail::join_transfers(out.plan.transfers);
    out.fault = detail::fault_of_budget(request, out.plan);
    if (out.fault) {
        return out;
    }
    if (request.memory_limit) {
        detail::settle_in_place(request, problem, detail::group_receivers(ranks.taken), out.plan);
    } else if (request.round_budget) {
        detail::put_into_rounds(problem.sizes, *request.round_budget, out.plan.transfers);
    }
    detail::certify(request, problem, ranks, sources, out.plan);
    auto const& peak = out.plan.certificate.peak;
    if (request.memory_limit && *request.memory_limit < peak.value) {
        out.fault = {.error = reshard_error::little_memory, .number = request.memory_limit->count, .limit = peak.value.count};
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

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template reshard_outcome try_reshard<>(reshard_request const&);
extern template result<reshard_plan> plan_reshard<>(reshard_request const&);
#endif

}  // namespace rheo::inline v0
