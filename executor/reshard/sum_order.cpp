// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/sum_order.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "rheo/reshard/detail/meeting_boxes.hpp"

namespace rheo::inline v0::detail {

namespace {

/// Calls use(role) for those roles that are sums.
template <class Use>
void for_each_sum(reshard_plan const& plan, tensor_id tensor, role_set roles, Use const& use)
{
    for (int r = 0; r < tensor_roles; ++r) {
        if (auto const role = static_cast<tensor_role>(r); (roles & sums_of(plan, tensor)).has(role)) {
            use(role);
        }
    }
}

bool comes_before(array_part const& a, array_part const& b)
{
    return std::pair{a.tensor, a.roles} != std::pair{b.tensor, b.roles} ? std::pair{a.tensor, a.roles} < std::pair{b.tensor, b.roles} : a.box < b.box;
}

/// What a step adds, and whose it is.
struct added_box {
    nd_box box;
    rank_id rank;
    std::size_t step;
};

}  // namespace

sum_order::sum_order(reshard_plan const& plan, rank_arrays const& mine, int rounds) : plan_{plan}, mine_{mine}
{
    if (plan.held.empty()) {
        return;
    }
    for (auto const& t : plan.transfers) {
        if (t.to == mine.self) {
            for_each_sum(plan, t.tensor, t.roles, [&](tensor_role role) { wanted_.push_back({t.tensor, t.box, role}); });
        }
    }
    for (auto const& place : plan.kept) {
        if (std::find(place.ranks.begin(), place.ranks.end(), mine.self) == place.ranks.end()) {
            continue;
        }
        for (auto const& part : place.parts) {
            array_part const data{part.tensor, intersection(part.box, whole(plan.tensors[at(part.tensor)].shape))};
            for_each_sum(plan, part.tensor, part.roles, [&](tensor_role role) { settle_own(data, role, rounds); });
        }
    }
    std::sort(wanted_.begin(), wanted_.end(), comes_before);
    wanted_.erase(std::unique(wanted_.begin(), wanted_.end()), wanted_.end());
}

void sum_order::settle_own(array_part const& part, tensor_role role, int rounds)
{
    wanted_.push_back({part.tensor, part.box, role});
    std::vector<nd_box> rest{part.box};
    for (auto const& t : plan_.transfers) {
        if (t.to != mine_.self || t.from < mine_.self || t.tensor != part.tensor || !t.roles.has(role) || !intersects(t.box, part.box)) {
            continue;
        }
        for (auto const& open : rest) {
            if (intersects(open, t.box)) {
                own_.push_back({{part.tensor, intersection(open, t.box), role}, t.round});
            }
        }
        subtract(rest, t.box);
    }
    for (auto const& open : rest) {
        own_.push_back({{part.tensor, open, role}, rounds - 1});
    }
}

void sum_order::begin(row_copier const& copy_rows) const
{
    for (auto const& part : wanted_) {
        for_each_sum(plan_, part.tensor, part.roles, [&](tensor_role role) {
            auto const sum = format_of(plan_, part.tensor, role).wanted;
            fill_with(first_sum(sum), static_cast<std::size_t>(sum.size.count), part.box, part.tensor, role, mine_.wanted, copy_rows);
        });
    }
}

std::vector<local_copy> sum_order::link(int round, std::vector<message_stream>& incoming, std::size_t& own_bytes) const
{
    own_addends own;
    for (auto const& one : own_) {
        if (one.round == round) {
            for_each_sum(plan_, one.part.tensor, one.part.roles,
                         [&](tensor_role role) { own_bytes += append_addend(own, plan_, mine_, {one.part.tensor, one.part.box}, role); });
        }
    }
    std::vector<sum_step*> steps;
    std::map<std::pair<tensor_id, role_set>, std::vector<added_box>> added;
    for (auto& stream : incoming) {
        for (auto& message : stream.messages) {
            for (auto const& b : message.boxes) {
                if (!sums_of(plan_, b.of->tensor).has(b.role)) {
                    continue;
                }
                if (message.sum.number == sum_step::none) {
                    message.sum.number = steps.size();
                    steps.push_back(&message.sum);
                }
                added[{b.of->tensor, b.role}].push_back({b.elements, b.of->from, message.sum.number});
            }
        }
    }
    for (std::size_t i = 0; i < own.copies.size(); ++i) {
        own.copies[i].sum.number = steps.size();
        steps.push_back(&own.copies[i].sum);
        added[{own.parts[i].tensor, own.parts[i].roles}].push_back({own.parts[i].box, mine_.self, own.copies[i].sum.number});
    }
    for (auto const& [key, all] : added) {
        std::vector<nd_box> boxes;
        for (auto const& one : all) {
            boxes.push_back(one.box);
        }
        box_index<> const index{boxes};
        for (auto const& one : all) {
            for (auto const other : index.meeting(one.box)) {
                if (all[other].rank < one.rank) {
                    steps[all[other].step]->then.push_back(one.step);
                }
            }
        }
    }
    for (auto* const step : steps) {
        std::sort(step->then.begin(), step->then.end());
        step->then.erase(std::unique(step->then.begin(), step->then.end()), step->then.end());
        for (auto const next : step->then) {
            ++steps[next]->waits_for;
        }
    }
    return std::move(own.copies);
}

}  // namespace rheo::inline v0::detail
