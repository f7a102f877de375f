#pragma once
// SPDX-License-Identifier: Apache-2.0

// Rounds under a budget of received bytes. What travels whole is an element of one role. Transfers are cut, so that the rounds of a receiver
// are full but for what no element fits into, the largest elements first. The roles of a tensor stay together as long as that takes no
// more rounds, and are taken apart where it does.
//
// The law: with g the greatest common divisor of all sizes >= s, a round has room for floor(budget / g) * g bytes of them, so a receiver of S(s)
// bytes in such elements needs at least ceil(S(s) / that) rounds, for each s. Where every size divides the larger ones, as those of all dtypes
// do, first fit by falling size needs no more than the largest of these (Coffman, Garey and Johnson, Journal of Complexity 3, 1987),
// which is ceil(missing / budget) when the largest size divides the budget.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "rheo/reshard/detail/deal_rows.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/tensor/nd_box.hpp"

namespace rheo::inline v0::detail {

struct cut_box {
    std::vector<nd_box> first{};
    std::vector<nd_box> rest{};
};

/// The first elements of a box in row-major order, and the others. @pre 0 <= count <= elements(box)
template <class OnlyWhenCalled = void>
constexpr cut_box first_elements(nd_box box, std::int64_t count)
{
    cut_box cut;
    while (true) {
        auto const all = elements(box);
        if (count == all || count == 0) {
            if (all > 0) {
                (count == 0 ? cut.rest : cut.first).push_back(box);
            }
            return cut;
        }
        auto const d = row_dimension(box);
        auto const row = all / length(box[d]);
        auto const middle = box[d].begin + count / row;
        auto part = box;
        part[d].end = middle;
        if (!is_empty(part)) {
            cut.first.push_back(part);
        }
        count -= elements(part);
        part = box;
        part[d].begin = middle + (count > 0 ? 1 : 0);
        if (!is_empty(part)) {
            cut.rest.push_back(part);
        }
        if (count == 0) {
            return cut;
        }
        box[d] = {middle, middle + 1};
    }
}

/// The bytes in which an element travels, by role.
using role_sizes = std::array<std::int64_t, tensor_roles>;

/// Bytes in elements of one size.
struct sized_bytes {
    std::int64_t size;
    std::int64_t sum;
};

template <class OnlyWhenCalled = void>
constexpr void add_sized(std::vector<sized_bytes>& all, std::int64_t size, std::int64_t sum)
{
    auto const known = std::find_if(all.begin(), all.end(), [&](sized_bytes const& one) { return one.size == size; });
    if (known == all.end()) {
        all.push_back({size, sum});
    } else {
        known->sum += sum;
    }
}

/// The law above. @pre the budget holds an element of each size
template <class OnlyWhenCalled = void>
constexpr std::int64_t fewest_rounds(std::vector<sized_bytes> all, std::int64_t budget)
{
    std::sort(all.begin(), all.end(), [](sized_bytes const& a, sized_bytes const& b) { return a.size > b.size; });
    std::int64_t divisor = 0;
    std::int64_t sum = 0;
    std::int64_t rounds = 0;
    for (auto const& one : all) {
        divisor = std::gcd(divisor, one.size);
        sum += one.sum;
        auto const room = budget / divisor * divisor;
        rounds = std::max(rounds, sum / room + (sum % room == 0 ? 0 : 1));
    }
    return rounds;
}

/// Puts the transfers of one receiver into rounds.
template <class OnlyWhenCalled = void>
class round_filler {
public:
    /// @param sizes by tensor
    constexpr round_filler(std::vector<role_sizes> const& sizes, bytes budget) : sizes_{sizes}, budget_{budget.count} {}

    /// @pre the budget holds an element of each in all of its roles
    constexpr void fill(std::vector<transfer>& filled, std::vector<transfer> const& received)
    {
        std::vector<sized_bytes> all;
        for (auto const& one : received) {
            for_each_role(one, [&](tensor_role, std::int64_t size) { add_sized(all, size, elements(one.box) * size); });
        }
        auto together = in_order(received);
        if (static_cast<std::int64_t>(room_.size()) > fewest_rounds(all, budget_)) {
            std::vector<transfer> apart;
            for (auto const& one : received) {
                for_each_role(one, [&](tensor_role role, std::int64_t size) {
                    apart.push_back(one);
                    apart.back().roles = role;
                    apart.back().size = bytes{elements(one.box) * size};
                });
            }
            together = in_order(apart);
        }
        filled.insert(filled.end(), together.begin(), together.end());
    }

private:
    template <class Use>
    constexpr void for_each_role(transfer const& one, Use const& use) const
    {
        for (int r = 0; r < tensor_roles; ++r) {
            auto const size = sizes_[at(one.tensor)][static_cast<std::size_t>(r)];
            if (auto const role = static_cast<tensor_role>(r); one.roles.has(role) && size > 0) {
                use(role, size);
            }
        }
    }

    /// First fit by falling size; those of one size keep their order, so that addends of an element come in that of their ranks.
    constexpr std::vector<transfer> in_order(std::vector<transfer> const& received)
    {
        auto const unit_of = [](transfer const& t) { return t.size.count / elements(t.box); };
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < received.size(); ++i) {
            order.push_back(i);
        }
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return unit_of(received[a]) != unit_of(received[b]) ? unit_of(received[a]) > unit_of(received[b]) : a < b;
        });
        room_.clear();
        std::vector<transfer> filled;
        std::size_t round = 0;
        std::int64_t unit = 0;
        for (auto const i : order) {
            if (unit_of(received[i]) != unit) {
                unit = unit_of(received[i]);
                round = 0;  // smaller elements fit where larger ones left room
            }
            round = put(filled, received[i], unit, round);
        }
        return filled;
    }

    /// @return the round that got the last of it
    constexpr std::size_t put(std::vector<transfer>& filled, transfer const& one, std::int64_t unit, std::size_t round)
    {
        std::vector<nd_box> left{one.box};
        while (!left.empty()) {
            if (round == room_.size()) {
                room_.push_back(budget_);
            }
            if (room_[round] < unit) {
                ++round;
                continue;
            }
            auto const box = left.back();
            left.pop_back();
            auto cut = first_elements(box, std::min(elements(box), room_[round] / unit));
            for (auto const& part : cut.first) {
                filled.push_back(one);
                filled.back().round = static_cast<int>(round);
                filled.back().box = part;
                filled.back().size = bytes{elements(part) * unit};
                room_[round] -= filled.back().size.count;
            }
            left.insert(left.end(), cut.rest.begin(), cut.rest.end());
        }
        return round;
    }

    std::vector<role_sizes> const& sizes_;
    std::int64_t budget_;
    std::vector<std::int64_t> room_{};  ///< of each round
};

}  // namespace rheo::inline v0::detail
