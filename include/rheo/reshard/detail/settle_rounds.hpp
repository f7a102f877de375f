#pragma once
// SPDX-License-Identifier: Apache-2.0

// Rounds in place: each rank stays under a memory limit, because pieces that all who want them have are dropped between rounds, as long as
// f + 1 copies stay. Those on the fullest ranks go first. No order reaches the bound (the larger of what a rank holds and wants) always,
// since it is a vector balancing problem; so what does not fit goes anyway where it hurts least, and the plan says what it needs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "rheo/reshard/detail/certify.hpp"
#include "rheo/reshard/detail/deal_rows.hpp"
#include "rheo/reshard/detail/fill_rounds.hpp"
#include "rheo/reshard/detail/missing_pieces.hpp"
#include "rheo/reshard/detail/reshard_problem.hpp"
#include "rheo/reshard/detail/split_box.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0::detail {

/// Elements that the same ranks hold, want and receive.
struct settling_piece {
    array_part part;
    std::int64_t size = 0;           ///< as it is held
    std::vector<rank_id> surplus{};  ///< ranks that hold it and do not want it
    std::int64_t copies = 0;
    std::int64_t least_copies = 0;
    std::int64_t open = 0;  ///< transfers of it that have not been
};

template <class OnlyWhenCalled = void>
class round_settler {
public:
    constexpr round_settler(reshard_request const& request, reshard_problem const& problem, std::vector<receiver_group> const& groups, reshard_plan& plan)
        : request_{request}, problem_{problem}, groups_{groups}, plan_{plan}, has_{layout_bytes(request.from)}
    {
    }

    /// Cuts the plan's transfers, numbers them by rounds and adds what is dropped.
    constexpr void settle()
    {
        cut_transfers();
        make_pieces();
        drop_settled(-1);
        std::vector<std::size_t> open;
        for (std::size_t i = 0; i < plan_.transfers.size(); ++i) {
            open.push_back(i);
        }
        for (int round = 0; !open.empty(); ++round) {
            open = run_round(round, open);
            drop_settled(round);
        }
    }

    /// Adds what is dropped to transfers that are numbered by rounds already. @return whether the memory limit is kept
    constexpr bool settle_filled()
    {
        make_pieces();
        drop_settled(-1);
        for (std::size_t first = 0, last = 0; first < plan_.transfers.size(); first = last) {
            auto const round = plan_.transfers[first].round;
            for (last = first; last < plan_.transfers.size() && plan_.transfers[last].round == round; ++last) {
                auto const& move = plan_.transfers[last];
                has_.add(move.to, kept_size(plan_, move));
                if (has_[move.to] > request_.memory_limit->count) {
                    return false;
                }
                arrive(last);
            }
            drop_settled(round);
        }
        return true;
    }

private:
    /// So small that two of them fit into the room between what has to be there and the limit, but no smaller than a row or a 256th.
    constexpr void cut_transfers()
    {
        auto const room = std::max<std::int64_t>(request_.memory_limit->count - has_.largest(), 0) / 2;
        std::vector<transfer> cut;
        for (auto const& move : plan_.transfers) {
            auto const unit = move.size.count / elements(move.box);
            auto const row = move.size.count / length(move.box[row_dimension(move.box)]);
            auto most = std::max({room, row, move.size.count / 256});
            if (request_.round_budget) {
                most = std::min(most, request_.round_budget->count);
            }
            std::vector<nd_box> left{move.box};
            while (!left.empty()) {
                auto const box = left.back();
                left.pop_back();
                auto const parts = first_elements(box, std::min(elements(box), std::max<std::int64_t>(most / unit, 1)));
                for (auto const& part : parts.first) {
                    cut.push_back(move);
                    cut.back().box = part;
                    cut.back().size = bytes{elements(part) * unit};
                }
                left.insert(left.end(), parts.rest.begin(), parts.rest.end());
            }
        }
        plan_.transfers = cut;
    }

    constexpr void make_pieces()
    {
        pieces_of_.resize(plan_.transfers.size());
        std::vector<std::vector<std::size_t>> moves(problem_.arrays.size());
        for (std::size_t i = 0; i < plan_.transfers.size(); ++i) {
            auto const& move = plan_.transfers[i];
            auto const of_tensor = [](moving_array const& array, tensor_id tensor) { return array.tensor < tensor; };
            auto a = std::lower_bound(problem_.arrays.begin(), problem_.arrays.end(), move.tensor, of_tensor);
            while ((a->roles & move.roles) != move.roles) {
                ++a;
            }
            moves[static_cast<std::size_t>(a - problem_.arrays.begin())].push_back(i);
        }
        for (std::size_t a = 0; a < problem_.arrays.size(); ++a) {
            make_pieces_of(a, moves[a]);
        }
    }

    constexpr void make_pieces_of(std::size_t a, std::vector<std::size_t> const& moves)
    {
        auto const& array = problem_.arrays[a];
        std::vector<std::vector<rank_id>> wanting(array.wanted.size());
        for (auto const& group : groups_) {
            for (auto const ref : problem_.wanted[group.wants].boxes) {
                if (ref.array == a) {
                    wanting[ref.box].insert(wanting[ref.box].end(), group.ranks.begin(), group.ranks.end());
                }
            }
        }
        auto boxes = array.held;
        boxes.insert(boxes.end(), array.wanted.begin(), array.wanted.end());
        for (auto const i : moves) {
            boxes.push_back(plan_.transfers[i].box);
        }
        std::vector<std::size_t> every;
        for (std::size_t b = 0; b < boxes.size(); ++b) {
            every.push_back(b);
        }
        std::vector<std::size_t> covering;
        auto const& tensor = request_.from.tensors[at(array.tensor)];
        split_box(whole(tensor.shape), boxes, every, covering, [&](nd_box const& box, std::vector<std::size_t> const& by) {
            settling_piece piece{{array.tensor, box, array.roles}, elements(box) * element_bytes(tensor, array.roles).count};
            std::vector<rank_id> wants;
            std::vector<rank_id> holds;
            for (auto const b : by) {
                if (b < array.held.size()) {
                    for (auto const c : array.holders[b]) {
                        holds.insert(holds.end(), problem_.held[c].ranks.begin(), problem_.held[c].ranks.end());
                    }
                } else if (b < array.held.size() + array.wanted.size()) {
                    auto const& ranks = wanting[b - array.held.size()];
                    wants.insert(wants.end(), ranks.begin(), ranks.end());
                } else {
                    pieces_of_[moves[b - array.held.size() - array.wanted.size()]].push_back(pieces_.size());
                    ++piece.open;
                }
            }
            std::sort(wants.begin(), wants.end());
            std::sort(holds.begin(), holds.end());
            std::set_difference(holds.begin(), holds.end(), wants.begin(), wants.end(), std::back_inserter(piece.surplus));
            piece.copies = static_cast<std::int64_t>(holds.size());
            piece.least_copies = std::min(piece.copies, std::int64_t{request_.failures} + 1);
            pieces_.push_back(piece);
        });
    }

    constexpr void drop_settled(int round)
    {
        std::vector<dropped_part> dropped;
        for (auto& piece : pieces_) {
            while (piece.open == 0 && !piece.surplus.empty() && piece.copies > piece.least_copies) {
                auto const fullest = std::max_element(piece.surplus.begin(), piece.surplus.end(), [&](rank_id a, rank_id b) { return has_[a] < has_[b]; });
                dropped.push_back({round, *fullest, piece.part});
                has_.add(*fullest, -piece.size);
                --piece.copies;
                piece.surplus.erase(fullest);
            }
        }
        std::sort(dropped.begin(), dropped.end(), [](dropped_part const& a, dropped_part const& b) {
            return a.rank != b.rank ? a.rank < b.rank : a.part.tensor != b.part.tensor ? a.part.tensor < b.part.tensor : a.part.box < b.part.box;
        });
        plan_.dropped.insert(plan_.dropped.end(), dropped.begin(), dropped.end());
    }

    /// @return what is left after the round
    constexpr std::vector<std::size_t> run_round(int round, std::vector<std::size_t> open)
    {
        auto const& moves = plan_.transfers;
        std::sort(open.begin(), open.end(),
                  [&](std::size_t a, std::size_t b) { return has_[moves[a].from] != has_[moves[b].from] ? has_[moves[a].from] > has_[moves[b].from] : a < b; });
        rank_bytes received;
        std::vector<std::size_t> left;
        std::vector<std::size_t> chosen;
        auto const budget = request_.round_budget ? request_.round_budget->count : std::numeric_limits<std::int64_t>::max();
        for (auto const i : open) {
            auto const to = moves[i].to;
            bool const fits = has_[to] + kept_size(plan_, moves[i]) <= request_.memory_limit->count && moves[i].size.count <= budget - received[to];
            (fits ? chosen : left).push_back(i);
            if (fits) {
                received.add(to, moves[i].size.count);
                has_.add(to, kept_size(plan_, moves[i]));
            }
        }
        if (chosen.empty()) {
            auto const then = [&](std::size_t i) { return has_[moves[i].to] + kept_size(plan_, moves[i]); };
            auto const best = std::min_element(left.begin(), left.end(), [&](std::size_t a, std::size_t b) { return then(a) < then(b); });
            chosen.push_back(*best);
            has_.add(moves[*best].to, kept_size(plan_, moves[*best]));
            left.erase(best);
        }
        for (auto const i : chosen) {
            plan_.transfers[i].round = round;
            arrive(i);
        }
        return left;
    }

    /// A copy counts once, with the lowest of its roles: nothing of it is dropped before the others are there.
    constexpr void arrive(std::size_t i)
    {
        for (auto const p : pieces_of_[i]) {
            auto const bits = pieces_[p].part.roles.bits;
            --pieces_[p].open;
            pieces_[p].copies += (plan_.transfers[i].roles.bits & bits & -bits) != 0 ? 1 : 0;
        }
    }

    reshard_request const& request_;
    reshard_problem const& problem_;
    std::vector<receiver_group> const& groups_;
    reshard_plan& plan_;
    rank_bytes has_;
    std::vector<settling_piece> pieces_{};
    std::vector<std::vector<std::size_t>> pieces_of_{};  ///< transfer -> pieces
};

}  // namespace rheo::inline v0::detail
