// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/convert/file_layout.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_entry.hpp"
#include "rheo/reshard/detail/box_sets.hpp"
#include "rheo/reshard/detail/join_boxes.hpp"
#include "rheo/reshard/layout_fault.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

[[noreturn]] void refuse(std::string const& name, std::string const& reason) { throw exit_error{exit_code::usage, fmt::format("{}: {}", name, reason)}; }

/// A box with a dimension of length one before it.
nd_box below_one(nd_box const& box) { return {{0, 1}, box[0]}; }

/// Whether the layout has a vector where the state has a matrix of one row.
bool is_row(nd_shape const& given, nd_shape const& stored) { return stored.dimensions == 2 && stored[0] == 1 && given == nd_shape{stored[1]}; }

/// A box of a tensor's roles and the ranks of which one is to write it.
struct shared_part {
    array_part part;
    bytes size;
    std::vector<rank_id> holders;  ///< ascending
};

/// Boxes and who holds them.
using held_boxes = std::vector<std::pair<nd_box, std::vector<rank_id>>>;

/// The boxes of one role of a tensor, disjoint, each with its holders.
held_boxes disjoint_boxes(held_boxes held, nd_box const& all)
{
    std::sort(held.begin(), held.end());
    held_boxes distinct;
    for (auto& [box, ranks] : held) {
        if (distinct.empty() || distinct.back().first != box) {
            distinct.emplace_back(box, std::move(ranks));
        } else {
            distinct.back().second.insert(distinct.back().second.end(), ranks.begin(), ranks.end());
        }
    }
    std::vector<nd_box> boxes;
    for (auto const& one : distinct) {
        boxes.push_back(one.first);
    }
    if (detail::overlapping(boxes)) {
        held_boxes pieces;
        std::vector<std::size_t> candidates(boxes.size());
        std::iota(candidates.begin(), candidates.end(), std::size_t{0});
        std::vector<std::size_t> covering;
        detail::split_box(all, boxes, candidates, covering, [&](nd_box const& piece, std::vector<std::size_t> const& by) {
            pieces.emplace_back(piece, std::vector<rank_id>{});
            for (auto const b : by) {
                pieces.back().second.insert(pieces.back().second.end(), distinct[b].second.begin(), distinct[b].second.end());
            }
        });
        distinct = std::move(pieces);
    }
    for (auto& one : distinct) {
        std::sort(one.second.begin(), one.second.end());
        one.second.erase(std::unique(one.second.begin(), one.second.end()), one.second.end());
    }
    return distinct;
}

/// All parts by tensor and role; roles with the same boxes at the same ranks are one part.
std::vector<shared_part> shared_parts(array_layout const& layout)
{
    std::vector<held_boxes> held(layout.tensors.size() * tensor_roles);
    for (auto const& place : layout.places) {
        for (auto const& part : place.parts) {
            auto const& tensor = layout.tensors[at(part.tensor)];
            auto const box = data_of(tensor, part.box);
            for (int r = 0; r < tensor_roles; ++r) {
                auto const role = static_cast<tensor_role>(r);
                if (part.roles.has(role) && roles_of(tensor).has(role) && !is_empty(box) && !place.ranks.empty()) {
                    held[at(part.tensor) * tensor_roles + static_cast<std::size_t>(r)].emplace_back(box, place.ranks);
                }
            }
        }
    }
    std::vector<shared_part> parts;
    for (std::size_t t = 0; t < layout.tensors.size(); ++t) {
        std::map<std::pair<nd_box, std::vector<rank_id>>, role_set> roles;
        for (std::size_t r = 0; r < tensor_roles; ++r) {
            for (auto& one : disjoint_boxes(std::move(held[t * tensor_roles + r]), whole(layout.tensors[t].shape))) {
                auto& set = roles.try_emplace(std::move(one), role_set{std::uint8_t{0}}).first->second;
                set = set | static_cast<tensor_role>(r);
            }
        }
        // Boxes of the same ranks are not dealt apart where they make up one.
        std::map<std::pair<std::vector<rank_id>, role_set>, std::vector<detail::kept_apart_box>> of;
        for (auto const& [one, set] : roles) {
            of[{one.second, set}].push_back({0, one.first});
        }
        for (auto& [holders, boxes] : of) {
            detail::join_boxes(boxes);
            for (auto const& joined : boxes) {
                auto const size = elements(joined.box) * element_bytes(layout.tensors[t], holders.second);
                parts.push_back({{tensor_id{static_cast<std::int32_t>(t)}, joined.box, holders.second}, size, holders.first});
            }
        }
    }
    return parts;
}

/// What boxes were cut for, and no rank needs: neighbours of one rank are one box again.
void join_parts(std::vector<array_part>& parts)
{
    std::map<std::pair<tensor_id, role_set>, std::vector<detail::kept_apart_box>> boxes;
    for (auto const& part : parts) {
        boxes[{part.tensor, part.roles}].push_back({0, part.box});
    }
    parts.clear();
    for (auto& [of, list] : boxes) {
        detail::join_boxes(list);
        std::sort(list.begin(), list.end(), [](auto const& a, auto const& b) { return a.box < b.box; });
        for (auto const& one : list) {
            parts.push_back({of.first, one.box, of.second});
        }
    }
}

}  // namespace

array_layout fit_layout(array_layout const& layout, stored_state const& state, std::string const& name)
{
    std::map<std::string_view, std::size_t> stored;
    for (std::size_t t = 0; t < state.tensors.size(); ++t) {
        stored.emplace(state.tensors[t].about.name.view(), t);
    }
    array_layout fitted{layout_of(state).tensors, {}};
    std::vector<std::size_t> number(layout.tensors.size());
    std::vector<char> is_there(state.tensors.size(), 0);
    for (std::size_t t = 0; t < layout.tensors.size(); ++t) {
        auto const& given = layout.tensors[t];
        auto const found = stored.find(given.name.view());
        if (found == stored.end()) {
            refuse(name, fmt::format("tensor \"{}\" is not in '{}'", given.name.view(), state.folder.string()));
        }
        auto& tensor = fitted.tensors[number[t] = found->second];
        bool const row = is_row(given.shape, tensor.shape);
        if (!row && given.shape != tensor.shape) {
            refuse(name, fmt::format("tensor \"{}\" is {}, but '{}' has it as {}", given.name.view(), to_string(whole(given.shape)), state.folder.string(),
                                     to_string(whole(tensor.shape))));
        }
        for (std::size_t r = 0; r < tensor_roles; ++r) {
            auto const wanted = given.element[r].size;
            if (wanted.count > 0 && tensor.element[r].size.count > 0 && wanted != tensor.element[r].size) {
                refuse(name, fmt::format("tensor \"{}\" has a {} of {} bytes per element, but it is stored in {}, and a conversion keeps dtypes",
                                         given.name.view(), name_of(static_cast<tensor_role>(r)), wanted.count, state.tensors[number[t]].dtype[r]));
            }
        }
        if (given.padded) {
            tensor.padded = row ? nd_shape{1, (*given.padded)[0]} : *given.padded;
        }
        is_there[number[t]] = 1;
    }
    for (std::size_t t = 0; t < is_there.size(); ++t) {
        if (is_there[t] == 0) {
            refuse(name, fmt::format("tensor \"{}\" of '{}' has no place in it", state.tensors[t].about.name.view(), state.folder.string()));
        }
    }
    for (auto const& place : layout.places) {
        fitted.places.push_back(place);
        for (auto& part : fitted.places.back().parts) {
            auto const given = at(part.tensor);
            part.tensor = tensor_id{static_cast<std::int32_t>(number[given])};
            part.box = is_row(layout.tensors[given].shape, fitted.tensors[number[given]].shape) ? below_one(part.box) : part.box;
            part.roles = part.roles & roles_of(layout.tensors[given]);
        }
    }
    if (auto const found = fault(fitted)) {
        refuse(name, std::string{describe(found).view()});
    }
    return fitted;
}

array_layout deal_parts(array_layout const& layout)
{
    auto parts = shared_parts(layout);
    std::stable_sort(parts.begin(), parts.end(), [](auto const& a, auto const& b) { return a.size > b.size; });
    std::map<rank_id, std::pair<bytes, std::vector<array_part>>> ranks;
    for (auto const& one : parts) {
        auto least = one.holders.front();
        for (auto const rank : one.holders) {
            least = ranks[rank].first < ranks[least].first ? rank : least;
        }
        ranks[least].first += one.size;
        ranks[least].second.push_back(one.part);
    }
    array_layout dealt{layout.tensors, {}};
    for (auto& tensor : dealt.tensors) {
        tensor.padded.reset();
    }
    for (auto& [rank, has] : ranks) {
        if (!has.second.empty()) {
            join_parts(has.second);
            dealt.places.push_back({{rank}, std::move(has.second)});
        }
    }
    return dealt;
}

}  // namespace rheo::inline v0
