#pragma once
// SPDX-License-Identifier: Apache-2.0

// From any layout to any other: which bytes move between which ranks (Tenplex, SOSP'24, section 4.3, and its bounds).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rheo/reshard/layout_fault.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// A plan, or why there is none: a value for every compiler, where `result` needs a std::string.
struct reshard_outcome {
    reshard_plan plan{};
    reshard_fault fault{};

    friend constexpr bool operator==(reshard_outcome const&, reshard_outcome const&) = default;
};

/// As plan_reshard, with the fault as a value.
template <class OnlyWhenCalled = void>
constexpr reshard_outcome try_reshard(reshard_request const& request)
{
    reshard_outcome out;
    if ((out.fault = fault(request.from, coverage::partial)) || (out.fault = fault(request.to, coverage::partial))) {
        return out;
    }
    auto& plan = out.plan;
    plan.tensors = request.to.tensors;
    for (auto const& place : request.to.places) {
        for (auto const to : place.ranks) {
            sub_collection kept{{to}, {}};
            for (auto const& want : place.parts) {
                for (int r = 0; r < tensor_roles; ++r) {
                    role_set const role{static_cast<tensor_role>(r)};
                    auto const size = element_bytes(plan.tensors[at(want.tensor)], role & want.roles);
                    if (size.count == 0) {
                        continue;
                    }
                    std::vector<nd_box> missing{want.box};
                    auto const take = [&](rank_id from, sub_collection const& place_of) {
                        for (auto const& part : place_of.parts) {
                            if (part.tensor != want.tensor || (part.roles & role).empty()) {
                                continue;
                            }
                            for (auto const& piece : missing) {
                                auto const box = intersection(piece, part.box);
                                if (is_empty(box)) {
                                    continue;
                                }
                                if (from == to) {
                                    kept.parts.push_back({want.tensor, box, role});
                                } else {
                                    plan.transfers.push_back({0, from, to, want.tensor, role, box, elements(box) * size});
                                    plan.certificate.moved.value += plan.transfers.back().size;
                                }
                            }
                            subtract(missing, part.box);
                        }
                    };
                    if (auto const* own = find_place(request.from, to)) {
                        take(to, *own);
                    }
                    for (auto const& other : request.from.places) {
                        take(other.ranks.front(), other);
                    }
                    if (!missing.empty()) {
                        out.fault = {.what = reshard_error::lost, .rank = to, .name = plan.tensors[at(want.tensor)].name, .box = missing.front()};
                        return out;
                    }
                }
            }
            plan.kept.push_back(kept);
        }
    }
    plan.certificate.rounds = {plan.transfers.empty() ? 0 : 1, plan.transfers.empty() ? 0 : 1};
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
