#pragma once
// SPDX-License-Identifier: Apache-2.0

// The smallest job in which everything that can go wrong with a recovery can happen: two layers, each
// with a parameter of its own and both using a tied one; four ranks as two pipelines of two stages.
// And what a rank does in a section of it, as a list of operations that are either done or not.
// With groups, the two layers are two cells of one layer: two ranks share its stage, and exchange within each microbatch.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rheo/recover/protocol.hpp"
#include "rheo/recover/replan.hpp"

namespace small_job {

using namespace rheo;

inline constexpr int layers = 2;
inline constexpr tensor_id own_of_first{0}, own_of_last{1}, tied{2};
inline constexpr std::size_t uses = 4;  // own_of_first, tied in the first layer, own_of_last, tied in the last layer

inline collection const& state()
{
    static collection const value{{{"first", {2, 2}, {}, false, true, {layer_id{0}}, {use_id{0}}},
                                   {"last", {2, 2}, {}, false, true, {layer_id{1}}, {use_id{2}}},
                                   {"tied", {4, 2}, {}, false, true, {layer_id{0}, layer_id{1}}, {use_id{1}, use_id{3}}}},
                                  {{own_of_first, layer_id{0}, 0}, {tied, layer_id{0}, 1}, {own_of_last, layer_id{1}, 0}, {tied, layer_id{1}, 1}}};
    return value;
}

/// Pipelines of the given ranks: one rank runs both layers, two run one each.
inline pipeline_instance pipeline_of(std::vector<rank_id> const& ranks)
{
    pipeline_instance result;
    result.cuts = ranks.size() == 1 ? std::vector{layer_id{0}, layer_id{2}} : std::vector{layer_id{0}, layer_id{1}, layer_id{2}};
    for (auto const rank : ranks) {
        result.stages.push_back({rank});
    }
    return result;
}

/// A pipeline of one stage. Two ranks have one cell each; one rank has both.
inline pipeline_instance group_of(std::vector<rank_id> const& ranks) { return {{layer_id{0}, layer_id{1}}, {ranks}}; }

enum class manners : std::uint8_t {
    keep,    ///< survivors keep their places where they can
    rotate,  ///< places are reassigned from the highest rank down, so that nearly everything moves
    spare,   ///< a pair and one rank alone; further ranks hold nothing until they are needed
    single,  ///< one pipeline of the two lowest
};

/// A planner that needs no costs: pairs, and one rank alone when their number is odd. With two
/// survivors `keep` and `spare` make two full copies, `rotate` one pipeline of two. Ranks that depart get no place; with `turn`
/// every rank gets the place of its neighbour.
inline recovery_plan plan_simply(std::vector<rank_holdings> const& holdings, int microbatches, manners how, std::vector<rank_id> const& departing = {},
                                 bool turn = false, bool groups = false)
{
    auto const pipeline_of = groups ? group_of : small_job::pipeline_of;
    recovery_plan plan;
    salvage_request request{holdings, &state(), {}, {}, layers, microbatches, 1, groups ? 2 : 1};
    plan.salvage = salvage(request);
    if (!plan.salvage.lost.empty()) {
        return plan;
    }
    std::vector<rank_id> ranks;
    for (auto const& holds : holdings) {
        if (std::find(departing.begin(), departing.end(), holds.rank) == departing.end()) {
            ranks.push_back(holds.rank);
        }
    }
    if (ranks.empty()) {
        plan.error = "no rank stays";
        return plan;
    }
    if (turn) {
        std::rotate(ranks.begin(), ranks.begin() + 1, ranks.end());
    }
    auto const n = ranks.size();
    if (how == manners::rotate && n < 4) {
        std::reverse(ranks.begin(), ranks.end());
    }
    std::size_t next = 0;
    auto const used = how == manners::spare ? std::min<std::size_t>(n, 3) : how == manners::single ? std::min<std::size_t>(n, 2) : n;
    if (used % 2 == 1) {
        plan.pipelines.push_back(pipeline_of({ranks[next++]}));
    }
    if (n == 2 && how != manners::rotate && how != manners::single) {
        plan.pipelines.push_back(pipeline_of({ranks[next++]}));
        plan.pipelines.push_back(pipeline_of({ranks[next++]}));
    }
    while (next + 1 < used) {
        plan.pipelines.push_back(pipeline_of({ranks[next], ranks[next + 1]}));
        next += 2;
    }
    for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
        plan.shares.push_back((microbatches + static_cast<int>(p)) / static_cast<int>(plan.pipelines.size()));
    }
    request.pipelines = plan.pipelines;
    request.shares = plan.shares;
    plan.salvage = salvage(request);
    for (std::size_t r = 0; r < holdings.size(); ++r) {
        auto const has = whole_parts(state(), holdings[r].layers);
        auto const wants = whole_parts(state(), plan.salvage.after[r].layers);
        for (auto const& part : wants) {
            bool here = false;
            for (auto const& held : has) {
                here = here || held == part;
            }
            for (std::size_t k = 1; k < holdings.size() && !here; ++k) {  // the next holder after the receiver
                auto const& other = holdings[(r + k) % holdings.size()];
                for (auto const& held : whole_parts(state(), other.layers)) {
                    if (held == part) {
                        plan.copies.transfers.push_back({0, other.rank, holdings[r].rank, part.tensor, part.roles, part.box, bytes{1}});
                        here = true;
                    }
                }
            }
        }
    }
    return plan;
}

/// What a message is about. The item is a microbatch, a tensor, or a use.
enum class message_kind : std::uint8_t { activation, gradient, sum, flags, holdings, copied_tensor, moved_accumulator, kept_tensor };

struct message_name {
    rank_id peer;  ///< the other side
    message_kind kind;
    int item;

    friend bool operator==(message_name const&, message_name const&) = default;
};

/// Waits for its inputs, then does what it does, then sends; done or not done, nothing between.
struct operation {
    enum class effects : std::uint8_t { none, contributes, adds, books, reduces, records, keeps } effect = effects::none;
    use_id use{};
    microbatch_id microbatch{};
    std::vector<message_name> inputs{};
    std::vector<message_name> outputs{};
};

/// Who keeps a layer besides the rank that runs it, where there is one pipeline: the next member.
inline rank_id keeper_of(protocol_state<recovery_plan> const& s, layer_id layer)
{
    auto const runner = holders_of(s.plan.pipelines.front(), std::span{&layer, 1}).front();
    auto const place = std::find(s.members.begin(), s.members.end(), runner) - s.members.begin();
    return s.members[(static_cast<std::size_t>(place) + 1) % s.members.size()];
}

/// The ranks that keep some layer of the tensor, each once.
inline std::vector<rank_id> keepers_of(protocol_state<recovery_plan> const& s, tensor_id tensor)
{
    std::vector<rank_id> keepers;
    for (auto const layer : state().tensors[at(tensor)].layers) {
        auto const keeper = keeper_of(s, layer);
        if (std::find(keepers.begin(), keepers.end(), keeper) == keepers.end()) {
            keepers.push_back(keeper);
        }
    }
    return keepers;
}

/// Before anything else in the section after a merge, kept layers are sent to those that keep them.
inline void append_safety_copies(protocol_state<recovery_plan> const& s, std::vector<operation>& list)
{
    operation give;
    operation keep{operation::effects::keeps};
    for (layer_id layer{0}; layer.value < layers; ++layer) {
        auto const runner = holders_of(s.plan.pipelines.front(), std::span{&layer, 1}).front();
        auto const keeper = keeper_of(s, layer);
        for (auto const tensor : {own_of_first, own_of_last, tied}) {
            if (!detail::contains(state().tensors[at(tensor)].layers, layer) || runner == keeper) {
                continue;
            }
            if (runner == s.self) {
                give.outputs.push_back({keeper, message_kind::kept_tensor, tensor.value + 4 * layer.value});
            }
            if (keeper == s.self) {
                keep.inputs.push_back({runner, message_kind::kept_tensor, tensor.value + 4 * layer.value});
            }
        }
    }
    list.push_back(give);
    list.push_back(keep);
}

/// Variants of a section.
struct section_manners {
    bool safety = false;      ///< where there is one pipeline, each layer is kept by a second rank, too
    bool groups = false;      ///< two ranks of a pipeline share one stage
    bool books_late = false;  ///< a fault: a backward books its contributions only at its end
};

/// The rank of the pipeline that runs a layer, or cell.
inline rank_id runner_of(pipeline_instance const& pipeline, layer_id layer, bool groups)
{
    auto const& members = pipeline.stages.front();
    return groups ? members[members.size() == 1 ? 0 : at(layer)] : holders_of(pipeline, std::span{&layer, 1}).front();
}

/// The work of a member. Each forward has an exchange with the other member; each backward has one between the contributions to the shared parameter and
/// those to the member's own.
inline void append_group_work(protocol_state<recovery_plan> const& s, pipeline_instance const& pipeline, std::vector<microbatch_work> const& work,
                              bool books_late, std::vector<operation>& list)
{
    using effects = operation::effects;
    auto const& members = pipeline.stages.front();
    auto const exchange = [&](message_kind kind, microbatch_id m) {
        for (auto const other : members) {
            if (other != s.self) {
                list.push_back({.outputs = {{other, kind, m.value}}});
                list.push_back({.inputs = {{other, kind, m.value}}});
            }
        }
    };
    for (auto const w : work) {
        exchange(message_kind::activation, w.microbatch);
    }
    for (auto const w : work) {
        std::vector<operation> booked;
        for (int const own : {1, 0}) {
            for (layer_id cell{0}; cell.value < layers; ++cell) {
                use_id const use{2 * cell.value + own};
                if (runner_of(pipeline, cell, true) == s.self && wanted(s, use, w.microbatch)) {
                    list.push_back({books_late ? effects::adds : effects::contributes, use, w.microbatch});
                    booked.push_back({effects::books, use, w.microbatch});
                }
            }
            if (own == 1) {
                exchange(message_kind::gradient, w.microbatch);
            }
        }
        if (books_late) {
            list.insert(list.end(), booked.begin(), booked.end());
        }
    }
}

/// The operations of a section at one rank. The forward and backward passes are those of a fill-and-drain
/// schedule; sums are posted after all own work and awaited after that; then flags (with norms) of all to all.
inline std::vector<operation> operations(protocol_state<recovery_plan> const& s, section_manners how = {})
{
    using effects = operation::effects;
    std::vector<operation> list;
    if (s.work == section_work::closing) {
        list.push_back({effects::records});
        return list;
    }
    bool const safety = how.safety && s.plan.pipelines.size() == 1;
    if (safety && s.work == section_work::remainder) {
        append_safety_copies(s, list);
    }
    int first = 0;
    for (std::size_t p = 0; p < s.plan.pipelines.size(); ++p) {
        auto const& pipeline = s.plan.pipelines[p];
        std::vector<microbatch_work> work;
        if (s.work == section_work::whole) {
            for (int m = 0; m < s.plan.shares[p]; ++m) {
                work.push_back({microbatch_id{first + m}, layer_id{0}});
            }
            first += s.plan.shares[p];
        } else {
            work = s.plan.salvage.work[p];
        }
        auto const& members = pipeline.stages.front();
        if (how.groups && std::find(members.begin(), members.end(), s.self) != members.end()) {
            append_group_work(s, pipeline, work, how.books_late, list);
        }
        for (int stage = 0; !how.groups && stage < stage_count(pipeline.cuts); ++stage) {
            auto const rank_of = [&](int other) { return pipeline.stages[static_cast<std::size_t>(other)].front(); };
            if (rank_of(stage) != s.self) {
                continue;
            }
            auto const span = layers_of(pipeline.cuts, stage_id{stage});
            bool const last = stage + 1 == stage_count(pipeline.cuts);
            for (auto const w : work) {
                operation forward;
                if (stage > 0) {
                    forward.inputs.push_back({rank_of(stage - 1), message_kind::activation, w.microbatch.value});
                }
                if (!last) {
                    forward.outputs.push_back({rank_of(stage + 1), message_kind::activation, w.microbatch.value});
                }
                list.push_back(forward);
            }
            for (auto const w : work) {
                operation begin;
                if (!last && w.deepest < span.end) {
                    begin.inputs.push_back({rank_of(stage + 1), message_kind::gradient, w.microbatch.value});
                }
                list.push_back(begin);
                for (auto layer = span.end.value - 1; layer >= span.begin.value && layer >= w.deepest.value; --layer) {
                    for (auto use : {2 * layer + 1, 2 * layer}) {
                        if (wanted(s, use_id{use}, w.microbatch)) {
                            list.push_back({effects::contributes, use_id{use}, w.microbatch});
                        }
                    }
                }
                if (stage > 0 && w.deepest < span.begin) {
                    operation end;
                    end.outputs.push_back({rank_of(stage - 1), message_kind::gradient, w.microbatch.value});
                    list.push_back(end);
                }
            }
        }
    }
    operation post;
    operation await{effects::reduces};
    for (auto const tensor : {own_of_last, own_of_first, tied}) {
        std::vector<rank_id> holders;
        for (auto const& pipeline : s.plan.pipelines) {
            for (auto const layer : state().tensors[at(tensor)].layers) {
                auto const rank = runner_of(pipeline, layer, how.groups);
                bool seen = false;
                for (auto const h : holders) {
                    seen = seen || h == rank;
                }
                if (!seen) {
                    holders.push_back(rank);
                }
            }
        }
        bool mine = false;
        for (auto const h : holders) {
            mine = mine || h == s.self;
        }
        for (auto const h : holders) {
            if (mine && h != s.self) {
                post.outputs.push_back({h, message_kind::sum, tensor.value});
                await.inputs.push_back({h, message_kind::sum, tensor.value});
            }
        }
        for (auto const keeper : safety ? keepers_of(s, tensor) : std::vector<rank_id>{}) {  // who keeps it makes the same update, from the same sums
            bool const holds = std::find(holders.begin(), holders.end(), keeper) != holders.end();
            for (auto const h : holders) {
                if (!holds && h == s.self) {
                    post.outputs.push_back({keeper, message_kind::sum, tensor.value});
                }
                if (!holds && keeper == s.self) {
                    await.inputs.push_back({h, message_kind::sum, tensor.value});
                }
            }
        }
    }
    operation flags;
    for (auto const member : s.members) {
        if (member != s.self) {
            await.outputs.push_back({member, message_kind::flags, 0});
            flags.inputs.push_back({member, message_kind::flags, 0});
        }
    }
    list.push_back(post);
    list.push_back(await);
    list.push_back(flags);
    return list;
}

}  // namespace small_job
