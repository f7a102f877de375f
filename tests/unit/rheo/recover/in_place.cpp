// SPDX-License-Identifier: Apache-2.0
// Places that change in place: no rank ever holds more than it has memory for, copies stay, and all come to what they are to hold. Whether that is possible
// is compared with a search of all ways on small jobs.
#include "rheo/recover/in_place.hpp"

#include <map>
#include <random>
#include <set>

#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Layers with a tensor of their own, of these sizes, and one that the first and the last share.
collection state_of_sizes(int layers)
{
    collection state;
    for (int l = 0; l < layers; ++l) {
        state.uses.push_back({tensor_id{l}, layer_id{l}, 0});
        state.tensors.push_back({"own " + std::to_string(l), {1, 1}, {}, false, true, {layer_id{l}}, {use_id{l}}});
    }
    state.tensors.push_back({"tied", {1, 1}, {}, false, true, {layer_id{0}, layer_id{layers - 1}}, {}});
    return state;
}

std::vector<rank_holdings> holdings(std::vector<std::vector<int>> const& of_ranks)
{
    std::vector<rank_holdings> all;
    for (auto const& layers : of_ranks) {
        auto& holds = all.emplace_back(rank_holdings{rank_id{static_cast<int>(all.size())}, {}, {}, {}});
        for (auto const l : layers) {
            holds.layers.push_back(layer_id{l});
        }
    }
    return all;
}

std::int64_t used(rank_holdings const& holds, collection const& state, std::vector<bytes> const& sizes)
{
    std::int64_t sum = 0;
    for (std::size_t t = 0; t < state.tensors.size(); ++t) {
        auto const& layers = state.tensors[t].layers;
        bool const here =
            std::any_of(layers.begin(), layers.end(), [&](layer_id l) { return std::binary_search(holds.layers.begin(), holds.layers.end(), l); });
        sum += here ? sizes[t].count : 0;
    }
    return sum;
}

int holders(std::vector<rank_holdings> const& all, layer_id layer)
{
    return static_cast<int>(
        std::count_if(all.begin(), all.end(), [&](auto const& holds) { return std::binary_search(holds.layers.begin(), holds.layers.end(), layer); }));
}

struct small_change {
    collection state;
    in_place_memory memory;
    std::vector<rank_holdings> held;
    std::vector<rank_holdings> wanted;
    int failures;
};

/// Random places: each layer has f + 1 holders or more before and after.
small_change random_change(std::mt19937& random, int ranks, int layers)
{
    small_change of{state_of_sizes(layers), {}, {}, {}, static_cast<int>(random() % 2)};
    for (std::size_t t = 0; t < of.state.tensors.size(); ++t) {
        of.memory.committed.push_back(bytes{1 + static_cast<std::int64_t>(random() % 4)});
    }
    of.memory.all = of.memory.committed;
    auto const places = [&] {
        std::vector<std::set<int>> sets(static_cast<std::size_t>(ranks));
        for (int l = 0; l < layers; ++l) {
            for (int copies = 0; copies <= of.failures;) {
                copies += sets[random() % sets.size()].insert(l).second ? 1 : 0;
            }
        }
        std::vector<std::vector<int>> lists;
        for (auto const& set : sets) {
            lists.emplace_back(set.begin(), set.end());
        }
        return holdings(lists);
    };
    of.held = places();
    of.wanted = places();
    std::int64_t most = 0;
    for (auto const& places_of : {of.held, of.wanted}) {
        for (auto const& holds : places_of) {
            most = std::max(most, used(holds, of.state, of.memory.committed));
        }
    }
    of.memory.limit = bytes{most + static_cast<std::int64_t>(random() % 4)};
    return of;
}

/// Whether any sequence of single receptions and drops leads there, f + 1 copies of each layer staying.
bool can_change(small_change const& of)
{
    using places = std::vector<std::vector<layer_id>>;
    auto const start = [&](std::vector<rank_holdings> const& all) {
        places list;
        for (auto const& holds : all) {
            list.push_back(holds.layers);
        }
        return list;
    };
    auto const goal = start(of.wanted);
    std::set<places> seen{start(of.held)};
    std::vector<places> open{start(of.held)};
    while (!open.empty()) {
        auto const now = open.back();
        open.pop_back();
        if (now == goal) {
            return true;
        }
        auto all = of.held;
        for (std::size_t r = 0; r < all.size(); ++r) {
            all[r].layers = now[r];
        }
        for (std::size_t r = 0; r < all.size(); ++r) {
            for (layer_id layer{0}; at(layer) + 1 < of.state.tensors.size(); ++layer) {
                auto next = all;
                auto& layers = next[r].layers;
                auto const place = std::lower_bound(layers.begin(), layers.end(), layer);
                bool const has = place != layers.end() && *place == layer;
                if (has) {
                    layers.erase(place);
                } else {
                    layers.insert(place, layer);
                }
                bool const may = has ? holders(next, layer) >= of.failures + 1 : used(next[r], of.state, of.memory.committed) <= of.memory.limit->count;
                if (may && seen.insert(start(next)).second) {
                    open.push_back(start(next));
                }
            }
        }
    }
    return false;
}

}  // namespace

TEST_CASE("in_place: within memory, with all copies, to the end")
{
    std::mt19937 random{7};
    int changed = 0, impossible = 0, missed = 0, in_rounds = 0;
    for (int i = 0; i < 1500; ++i) {
        auto const of = random_change(random, 2 + static_cast<int>(random() % 2), 2 + static_cast<int>(random() % 2));
        if (auto const shortage = in_place_shortage_of(of.held, of.wanted, of.state, of.memory, of.failures)) {
            CHECK(shortage->needed > *of.memory.limit);
            (can_change(of) ? missed : impossible) += 1;
            continue;
        }
        ++changed;
        auto held = of.held;
        if (!needs_rounds(held, of.wanted, of.state, of.memory)) {
            continue;
        }
        for (int rounds = 0; !detail::hold_the_same(held, of.wanted); ++rounds) {
            REQUIRE(rounds < 50);
            auto const round = next_round(held, of.wanted, of.state, of.memory, of.failures);
            REQUIRE(round);
            in_rounds += round->more ? 1 : 0;
            for (std::size_t r = 0; r < held.size(); ++r) {
                CHECK(used(round->received[r], of.state, of.memory.committed) <= of.memory.limit->count);
                CHECK(std::includes(round->received[r].layers.begin(), round->received[r].layers.end(), held[r].layers.begin(), held[r].layers.end()));
                CHECK(std::includes(round->received[r].layers.begin(), round->received[r].layers.end(), round->after[r].layers.begin(),
                                    round->after[r].layers.end()));
                for (auto const layer : round->received[r].layers) {
                    CHECK(holders(held, layer) > 0);
                }
            }
            for (layer_id layer{0}; at(layer) + 1 < of.state.tensors.size(); ++layer) {
                CHECK(holders(round->after, layer) >= of.failures + 1);
            }
            held = round->after;
        }
    }
    CAPTURE(changed, impossible, missed, in_rounds);
    CHECK(changed > 1000);
    CHECK(impossible > 10);
    CHECK(in_rounds > 20);
    CHECK(missed * 50 < changed);  // nobody keeps a layer for others on the way
}

TEST_CASE("in_place: without a limit nothing is in rounds")
{
    auto const state = state_of_sizes(2);
    in_place_memory const memory{std::nullopt, {bytes{4}, bytes{4}, bytes{1}}, {bytes{4}, bytes{4}, bytes{1}}};
    CHECK_FALSE(needs_rounds(holdings({{0}, {1}}), holdings({{1}, {0}}), state, memory));
}

TEST_CASE("in_place: an impossible change names both numbers")
{
    auto const state = state_of_sizes(2);
    in_place_memory const memory{bytes{5}, {bytes{4}, bytes{4}, bytes{1}}, {bytes{4}, bytes{4}, bytes{1}}};
    CHECK(in_place_shortage_of(holdings({{0}, {1}}), holdings({{1}, {0}}), state, memory, 0) == in_place_shortage{rank_id{0}, bytes{9}});
    CHECK_FALSE(in_place_shortage_of(holdings({{0}, {1}, {}}), holdings({{}, {0}, {1}}), state, memory, 0));
}
