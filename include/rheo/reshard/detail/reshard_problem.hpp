#pragma once
// SPDX-License-Identifier: Apache-2.0

// A re-sharding in the form that planning works on: roles that always go together are one array, ranks that have the same are one
// class, and each distinct box of an array is listed once with the classes that hold it. Ten thousand ranks are some hundred classes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "rheo/reshard/array_layout.hpp"
#include "rheo/reshard/detail/fill_rounds.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/tensor/nd_box.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0::detail {

/// Roles of a tensor of which every rank has the same boxes, before and after.
struct moving_array {
    tensor_id tensor;
    role_set roles;
    std::int64_t unit = 0;                            ///< bytes of an element as it travels
    bool is_sum = false;                              ///< each holder has an addend
    std::vector<nd_box> held{};                       ///< distinct
    std::vector<nd_box> wanted{};                     ///< distinct
    std::vector<std::vector<std::size_t>> holders{};  ///< of a held box: classes, ascending
};

struct box_ref {
    std::size_t array;
    std::size_t box;  ///< of its `held` or `wanted`

    friend constexpr bool operator==(box_ref, box_ref) = default;
    friend constexpr auto operator<=>(box_ref, box_ref) = default;
};

/// Ranks with the same boxes.
struct rank_class {
    std::vector<rank_id> ranks;  ///< ascending
    std::vector<box_ref> boxes;  ///< ascending
};

struct reshard_problem {
    std::vector<moving_array> arrays;  ///< ascending by tensor
    std::vector<rank_class> held;      ///< live ranks only; those without any are in the last class, which holds nothing
    std::vector<rank_class> wanted;    ///< ranks as the target layout names them
    std::vector<role_sizes> sizes{};   ///< by tensor
};

constexpr std::uint64_t mixed(std::uint64_t hash, std::int64_t value)
{
    hash ^= static_cast<std::uint64_t>(value) + 0x9e3779b97f4a7c15U + (hash << 6U) + (hash >> 2U);
    return hash * 0xff51afd7ed558ccdU;
}

template <class OnlyWhenCalled = void>
constexpr std::uint64_t hash_of(std::vector<array_part> const& parts)
{
    std::uint64_t hash = parts.size();
    for (auto const& part : parts) {
        hash = mixed(hash, part.tensor.value * std::int64_t{256} + part.roles.bits);
        for (int d = 0; d < part.box.dimensions; ++d) {
            hash = mixed(mixed(hash, part.box[d].begin), part.box[d].end);
        }
    }
    return hash;
}

/// Places with the same parts as lists: the numbers of the places. Those of one list that have their parts in another order stay apart, which costs time only.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<std::size_t>> equal_places(array_layout const& layout)
{
    struct hashed {
        std::uint64_t hash;
        std::size_t place;
    };
    std::vector<hashed> order;
    for (std::size_t p = 0; p < layout.places.size(); ++p) {
        order.push_back({hash_of(layout.places[p].parts), p});
    }
    std::sort(order.begin(), order.end(), [](hashed const& a, hashed const& b) { return a.hash != b.hash ? a.hash < b.hash : a.place < b.place; });
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t i = 0; i < order.size(); ++i) {
        auto const place = order[i].place;
        bool const joins = i > 0 && order[i - 1].hash == order[i].hash && layout.places[groups.back().front()].parts == layout.places[place].parts;
        if (joins) {
            groups.back().push_back(place);
        } else {
            groups.push_back({place});
        }
    }
    std::sort(groups.begin(), groups.end());  // the order of hashes means nothing
    return groups;
}

/// The bytes in which an element travels, by role.
constexpr role_sizes travelling_bytes(layout_tensor const& from, layout_tensor const& to)
{
    role_sizes sizes{};
    for (std::size_t r = 0; r < sizes.size(); ++r) {
        sizes[r] = format_between(from.element[r], to.element[r], from.addends.has(static_cast<tensor_role>(r))).travelling.size.count;
    }
    return sizes;
}

constexpr std::int64_t sum_of(role_sizes const& sizes, role_set roles)
{
    std::int64_t sum = 0;
    for (std::size_t r = 0; r < sizes.size(); ++r) {
        sum += roles.has(static_cast<tensor_role>(r)) ? sizes[r] : 0;
    }
    return sum;
}

/// Takes the roles of a set apart from the others.
template <class OnlyWhenCalled = void>
constexpr void set_apart(std::vector<role_set>& groups, role_set roles)
{
    for (std::size_t g = 0, known = groups.size(); g < known; ++g) {
        auto const in = groups[g] & roles;
        auto const out = role_set{static_cast<std::uint8_t>(groups[g].bits & ~roles.bits)};
        if (!in.empty() && !out.empty()) {
            groups[g] = in;
            groups.push_back(out);
        }
    }
}

/// The roles of each tensor in groups that no part of either layout takes apart, that are all sums or none, and of which an element fits into a round.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<role_set>> role_groups(reshard_request const& request, std::vector<role_sizes> const& sizes)
{
    std::vector<std::vector<role_set>> groups;
    for (std::size_t t = 0; t < request.to.tensors.size(); ++t) {
        groups.push_back({roles_of(request.to.tensors[t])});
        set_apart(groups.back(), request.from.tensors[t].addends);
    }
    for (auto const* layout : {&request.from, &request.to}) {
        for (auto const& place : layout->places) {
            for (auto const& part : place.parts) {
                if (part.roles != all_roles) {
                    set_apart(groups[at(part.tensor)], part.roles);
                }
            }
        }
    }
    for (std::size_t t = 0; request.round_budget && t < groups.size(); ++t) {
        for (int r = 0; r < tensor_roles; ++r) {
            auto const large =
                std::find_if(groups[t].begin(), groups[t].end(), [&](role_set roles) { return sum_of(sizes[t], roles) > request.round_budget->count; });
            if (large != groups[t].end() && large->has(static_cast<tensor_role>(r))) {
                set_apart(groups[t], static_cast<tensor_role>(r));
            }
        }
    }
    return groups;
}

enum class array_side : std::uint8_t { held, wanted };

/// Numbers the distinct boxes of arrays.
class box_numbers {
public:
    /// @param boxes how many there may be
    constexpr box_numbers(std::vector<moving_array>& arrays, array_side side, std::size_t boxes) : arrays_{arrays}, side_{side}, buckets_(boxes + 1) {}

    template <class OnlyWhenCalled = void>
    constexpr box_ref number(std::size_t array, nd_box const& box)
    {
        auto& list = side_ == array_side::held ? arrays_[array].held : arrays_[array].wanted;
        auto hash = static_cast<std::uint64_t>(array);
        for (int d = 0; d < box.dimensions; ++d) {
            hash = mixed(mixed(hash, box[d].begin), box[d].end);
        }
        auto& bucket = buckets_[(hash ^ hash >> 32U) % buckets_.size()];
        for (auto const known : bucket) {
            if (known.array == array && list[known.box] == box) {
                return known;
            }
        }
        bucket.push_back({array, list.size()});
        list.push_back(box);
        return bucket.back();
    }

private:
    std::vector<moving_array>& arrays_;
    array_side side_;
    std::vector<std::vector<box_ref>> buckets_;
};

/// The classes of a layout, and their boxes in the arrays' lists.
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_class> classes_of(array_layout const& layout, std::vector<std::vector<std::size_t>> const& arrays_of,
                                             std::vector<moving_array>& arrays, array_side side)
{
    std::vector<rank_class> classes;
    auto const groups = equal_places(layout);
    std::size_t boxes = 0;
    for (auto const& group : groups) {
        boxes += layout.places[group.front()].parts.size();
    }
    box_numbers numbers{arrays, side, boxes};
    for (auto const& group : groups) {
        rank_class one;
        for (auto const p : group) {
            one.ranks.insert(one.ranks.end(), layout.places[p].ranks.begin(), layout.places[p].ranks.end());
        }
        std::sort(one.ranks.begin(), one.ranks.end());
        for (auto const& part : layout.places[group.front()].parts) {
            auto const box = data_of(layout.tensors[at(part.tensor)], part.box);
            for (auto const a : arrays_of[at(part.tensor)]) {
                if (!is_empty(box) && !(arrays[a].roles & part.roles).empty()) {
                    one.boxes.push_back(numbers.number(a, box));
                }
            }
        }
        if (!std::is_sorted(one.boxes.begin(), one.boxes.end())) {
            std::sort(one.boxes.begin(), one.boxes.end());
        }
        classes.push_back(one);
    }
    return classes;
}

/// Ranks with addends hold the same boxes, but not the same elements: each is a class of its own.
template <class OnlyWhenCalled = void>
constexpr void set_adders_apart(reshard_problem& problem)
{
    for (std::size_t c = 0, known = problem.held.size(); c < known; ++c) {
        auto const& boxes = problem.held[c].boxes;
        if (std::any_of(boxes.begin(), boxes.end(), [&](box_ref ref) { return problem.arrays[ref.array].is_sum; })) {
            while (problem.held[c].ranks.size() > 1) {
                problem.held.push_back({{problem.held[c].ranks.back()}, problem.held[c].boxes});
                problem.held[c].ranks.pop_back();
            }
        }
    }
}

/// @pre both layouts are without fault and have the same tensors
template <class OnlyWhenCalled = void>
constexpr reshard_problem make_problem(reshard_request const& request, std::vector<rank_id> const& live)
{
    reshard_problem problem;
    std::vector<std::vector<std::size_t>> arrays_of(request.to.tensors.size());
    for (std::size_t t = 0; t < request.to.tensors.size(); ++t) {
        problem.sizes.push_back(travelling_bytes(request.from.tensors[t], request.to.tensors[t]));
    }
    auto const groups = role_groups(request, problem.sizes);
    for (std::size_t t = 0; t < groups.size(); ++t) {
        for (auto const roles : groups[t]) {
            if (auto const unit = sum_of(problem.sizes[t], roles); unit > 0) {
                arrays_of[t].push_back(problem.arrays.size());
                bool const is_sum = !(request.from.tensors[t].addends & roles).empty();
                problem.arrays.push_back({tensor_id{static_cast<std::int32_t>(t)}, roles, unit, is_sum});
            }
        }
    }
    problem.held = classes_of(request.from, arrays_of, problem.arrays, array_side::held);
    set_adders_apart(problem);
    problem.wanted = classes_of(request.to, arrays_of, problem.arrays, array_side::wanted);
    std::vector<rank_id> known;
    for (auto& one : problem.held) {
        auto const dead = [&](rank_id rank) { return !std::binary_search(live.begin(), live.end(), rank); };
        one.ranks.erase(std::remove_if(one.ranks.begin(), one.ranks.end(), dead), one.ranks.end());
        known.insert(known.end(), one.ranks.begin(), one.ranks.end());
    }
    std::sort(known.begin(), known.end());
    rank_class without;
    std::set_difference(live.begin(), live.end(), known.begin(), known.end(), std::back_inserter(without.ranks));
    problem.held.push_back(without);
    for (auto& array : problem.arrays) {
        array.holders.resize(array.held.size());
    }
    for (std::size_t c = 0; c < problem.held.size(); ++c) {
        for (auto const& ref : problem.held[c].boxes) {
            if (!problem.held[c].ranks.empty()) {
                problem.arrays[ref.array].holders[ref.box].push_back(c);
            }
        }
    }
    return problem;
}

}  // namespace rheo::inline v0::detail
