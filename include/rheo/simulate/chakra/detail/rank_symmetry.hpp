#pragma once
// SPDX-License-Identifier: Apache-2.0

// Ranks that do the same up to their numbers: when every rank's place in a level of the network is moved on by some places, in a circle, and the
// traces say the same afterwards, the ranks that lie so far apart have the same times. One of them is played for all.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/simulate/chakra/play_rules.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/trace/chakra/trace_set.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Places in levels, and after how many of them a rank is like another one.
struct rank_symmetry {
    std::vector<std::int32_t> members;
    std::vector<std::int32_t> periods;                   ///< members of the level: none is like another one
    std::vector<std::vector<std::size_t>> group_images;  ///< level -> group -> the group that it becomes; SIZE_MAX: it has no collectives

    bool is_trivial() const { return members == periods; }

    /// The rank that is one period further on in a level.
    std::int32_t moved_on(std::int32_t rank, std::size_t level) const
    {
        std::int32_t stride = 1;
        for (std::size_t k = 0; k < level; ++k) {
            stride *= members[k];
        }
        auto const place = rank / stride % members[level];
        return rank + ((place + periods[level]) % members[level] - place) * stride;
    }

    /// The rank that is played for this one.
    std::int32_t representative(std::int32_t rank) const { return turned({rank, rank}).second; }

    /// The pair that is like this one and whose second rank is played.
    std::pair<std::int32_t, std::int32_t> turned(std::pair<std::int32_t, std::int32_t> ranks) const
    {
        std::pair<std::int32_t, std::int32_t> result{0, 0};
        std::int32_t stride = 1;
        for (std::size_t k = 0; k < members.size(); ++k) {
            auto const from = ranks.first / stride % members[k];
            auto const to = ranks.second / stride % members[k];
            auto const by = to - to % periods[k];
            result.first += (from - by + members[k]) % members[k] * stride;
            result.second += (to - by) * stride;
            stride *= members[k];
        }
        return result;
    }
};

/// Ranks of a group in the order in which they take part: all ranks have their own.
inline std::vector<std::int32_t> const& taking_part(chakra_trace_set const& traces, std::size_t group)
{
    bool const is_all = traces.groups[group].ranks.size() == traces.ranks.size();
    return traces.groups[is_all ? 0 : group].ranks;
}

/// Whether a collective goes over all ranks level by level.
template <class Model>
bool goes_by_level(chakra_trace_set const& traces, chakra_step const& step, std::size_t members, array_view<network_level<typename Model::link> const> levels,
                   chakra_play_rules<Model> const& rules)
{
    auto const ranks = traces.ranks.size();
    auto const form = form_of(step.collective, rules, true);
    return members == ranks && ranks == static_cast<std::size_t>(ranks_of(levels)) && form != collective_form::tree && form != collective_form::slice_owner &&
           operation_of(step.collective) != collective::all_to_all;
}

/// Tries whether the traces say the same when each rank is the one `by` places further on in one level.
template <class Model>
class turned_traces {
public:
    using level = network_level<typename Model::link>;

    turned_traces(chakra_trace_set const& traces, array_view<level const> levels, chakra_play_rules<Model> const& rules)
        : traces_{&traces}, levels_{levels}, rules_{&rules}
    {
    }

    /// After are_equal(): group -> the group that it becomes.
    std::vector<std::size_t> images() const
    {
        std::vector<std::size_t> groups;
        for (auto const& found : images_) {
            groups.push_back(found.group);
        }
        return groups;
    }

    bool are_equal(std::size_t k, std::int32_t by)
    {
        stride_ = 1;
        for (std::size_t inner = 0; inner < k; ++inner) {
            stride_ *= levels_[inner].members;
        }
        members_ = levels_[k].members;
        by_ = by;
        images_.assign(traces_->groups.size(), image{});
        for (std::size_t rank = 0; rank < traces_->ranks.size(); ++rank) {
            if (!is_equal_rank(rank, static_cast<std::size_t>(turned(static_cast<std::int32_t>(rank))))) {
                return false;
            }
        }
        return true;
    }

private:
    struct image {
        std::size_t group = SIZE_MAX;
        std::int32_t shift = -1;  ///< of the places of members; -1: they are not in one order
    };

    std::int32_t turned(std::int32_t rank) const
    {
        auto const place = rank / stride_ % members_;
        return rank + ((place + by_) % members_ - place) * stride_;
    }

    bool is_equal_rank(std::size_t rank, std::size_t other)
    {
        auto const& a = traces_->ranks[rank];
        auto const& b = traces_->ranks[other];
        auto const& devices = rules_->devices;
        bool const has_equal_devices = rank >= devices.size() || other >= devices.size() || devices[rank] == devices[other];
        if (!has_equal_devices || a.steps.size() != b.steps.size() || a.ends != b.ends || a.dependencies != b.dependencies) {
            return false;
        }
        for (std::size_t i = 0; i < a.steps.size(); ++i) {
            if (!is_equal_step(a.steps[i], b.steps[i])) {
                return false;
            }
        }
        return true;
    }

    bool is_equal_step(chakra_step const& a, chakra_step const& b)
    {
        auto expected = a;
        bool const is_message = a.type == chakra_node_type::comm_send || a.type == chakra_node_type::comm_recv;
        expected.peer = is_message ? turned(a.peer) : a.peer;
        expected.group = b.group;
        return expected == b && (a.type != chakra_node_type::comm_coll || is_equal_group(a, b));
    }

    /// Whether the collective's members are those of the other one, in the same places; in a form in which all places are alike, at least in a circle.
    bool is_equal_group(chakra_step const& a, chakra_step const& b)
    {
        auto const from = place_of(a.group);
        auto const to = place_of(b.group);
        auto& known = images_[from];
        if (known.group == SIZE_MAX) {
            known = {to, shift_between(from, to)};
        }
        auto const members = taking_part(*traces_, from).size();
        if (known.group != to || members != taking_part(*traces_, to).size()) {
            return false;
        }
        auto const form = form_of(a.collective, *rules_, members == traces_->ranks.size());
        auto const operation = operation_of(a.collective);
        if (form == collective_form::direct && operation == collective::all_reduce) {
            return false;  // what comes at one time may come in any order, and the order counts
        }
        bool const has_equal_places = operation != collective::broadcast && (form == collective_form::ring || form == collective_form::direct);
        return has_equal_places ? known.shift >= 0 || goes_by_level(*traces_, a, members, levels_, *rules_) : known.shift == 0;
    }

    std::size_t place_of(std::uint64_t group) const { return static_cast<std::size_t>(find_group(traces_->groups, group) - traces_->groups.data()); }

    std::int32_t shift_between(std::size_t from, std::size_t to) const
    {
        auto const& before = taking_part(*traces_, from);
        auto const& after = taking_part(*traces_, to);
        auto const first = std::find(after.begin(), after.end(), turned(before.front()));
        if (before.size() != after.size() || first == after.end()) {
            return -1;
        }
        auto const shift = static_cast<std::size_t>(first - after.begin());
        for (std::size_t i = 0; i < before.size(); ++i) {
            if (after[(i + shift) % after.size()] != turned(before[i])) {
                return -1;
            }
        }
        return static_cast<std::int32_t>(shift);
    }

    chakra_trace_set const* traces_;
    array_view<level const> levels_;
    chakra_play_rules<Model> const* rules_;
    std::int32_t stride_ = 1;
    std::int32_t members_ = 1;
    std::int32_t by_ = 0;
    std::vector<image> images_;  ///< by group
};

/// Each rank for itself.
template <class Link>
rank_symmetry no_symmetry(array_view<network_level<Link> const> levels)
{
    rank_symmetry none;
    for (auto const& level : levels) {
        none.members.push_back(level.members);
    }
    none.periods = none.members;
    none.group_images.resize(levels.size());
    return none;
}

/// The closest likeness of ranks that is found, level by level. Where all ranks of a member share its links to the levels outside, only members of the
/// outermost level can stand for each other. Cost: the steps of all ranks for each level, times the divisors of its members that are tried.
template <class Model>
rank_symmetry find_symmetry(chakra_trace_set const& traces, array_view<network_level<typename Model::link> const> levels, chakra_play_rules<Model> const& rules)
{
    auto found = no_symmetry(levels);
    if (traces.ranks.size() != static_cast<std::size_t>(ranks_of(levels))) {
        return found;
    }
    turned_traces<Model> tried{traces, levels, rules};
    for (auto k = levels.size(); k-- > 0;) {
        auto const members = levels[k].members;
        for (std::int32_t by = 1; by < members && found.periods[k] == members; ++by) {
            if (members % by == 0 && tried.are_equal(k, by)) {
                found.periods[k] = by;
                found.group_images[k] = tried.images();
            }
        }
        if (Model::shares_links && !Model::has_own_links && members > 1) {
            break;
        }
    }
    return found;
}

}  // namespace detail
}  // namespace rheo::inline v0
