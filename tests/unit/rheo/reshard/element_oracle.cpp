// SPDX-License-Identifier: Apache-2.0
// Plans against elements: random layouts of up to four dimensions (parts without elements, uneven cuts, block-cyclic ones, flat ranges, copies, padding, roles
// apart), dead ranks, nodes, rounds, formats that are converted, sums of addends, plans in place. Every element is followed by itself; what must move, who takes which place and the least largest send
// are computed again, the last by a maximum flow (Boost.Graph where it is there). Nothing of verify() is used.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "../../../support/random_layouts.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "support/catch.hpp"

#if __has_include(<boost/graph/push_relabel_max_flow.hpp>)
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#define RHEO_TESTS_HAVE_BOOST 1
#else
#define RHEO_TESTS_HAVE_BOOST 0
#endif

using namespace rheo;
using random_layouts::below;

namespace {

/// Tensor, role, row-major index in the tensor without padding.
using element = std::tuple<int, int, std::int64_t>;
using elements_of_rank = std::map<int, std::set<element>>;

/// Calls use(element) for each one of the box, padding left out.
template <class Use>
void each_element(layout_tensor const& tensor, tensor_id number, nd_box const& box, role_set roles, Use const& use)
{
    std::vector<std::int64_t> indices{0};
    for (int d = 0; d < box.dimensions; ++d) {
        std::vector<std::int64_t> next;
        for (auto const base : indices) {
            for (auto i = box[d].begin; i < std::min(box[d].end, tensor.shape[d]); ++i) {
                next.push_back(base * tensor.shape[d] + i);
            }
        }
        indices = next;
    }
    for (int r = 0; r < tensor_roles; ++r) {
        if (roles.has(static_cast<tensor_role>(r)) && tensor.element[static_cast<std::size_t>(r)].size.count > 0) {
            for (auto const index : indices) {
                use(element{number.value, r, index});
            }
        }
    }
}

elements_of_rank elements_in(array_layout const& layout)
{
    elements_of_rank all;
    for (auto const& place : layout.places) {
        for (auto const rank : place.ranks) {
            auto& mine = all[rank.value];
            for (auto const& part : place.parts) {
                each_element(layout.tensors[at(part.tensor)], part.tensor, part.box, part.roles, [&](element const& e) { mine.insert(e); });
            }
        }
    }
    return all;
}

std::int64_t size_in(array_layout const& layout, element const& e)
{
    return layout.tensors[static_cast<std::size_t>(std::get<0>(e))].element[static_cast<std::size_t>(std::get<1>(e))].size.count;
}

bool is_sum(reshard_request const& request, element const& e)
{
    return request.from.tensors[static_cast<std::size_t>(std::get<0>(e))].addends.has(static_cast<tensor_role>(std::get<1>(e)));
}

/// As it travels: an addend as it is held, else in the smaller format.
std::int64_t size_of(reshard_request const& request, element const& e)
{
    auto const held = size_in(request.from, e);
    return is_sum(request, e) ? held : std::min(held, size_in(request.to, e));
}

#if RHEO_TESTS_HAVE_BOOST
/// Whether all items find room: items are bytes that may go to any of some bins of one capacity.
bool fits(std::map<unsigned, std::int64_t> const& items, std::int64_t capacity)
{
    using traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
    using graph = boost::adjacency_list<
        boost::vecS, boost::vecS, boost::directedS, boost::no_property,
        boost::property<boost::edge_capacity_t, std::int64_t,
                        boost::property<boost::edge_residual_capacity_t, std::int64_t, boost::property<boost::edge_reverse_t, traits::edge_descriptor>>>>;
    constexpr std::size_t source = 0;
    constexpr std::size_t sink = 1;
    constexpr std::size_t first_bin = 2;
    graph g(first_bin + 32 + items.size());
    auto capacities = get(boost::edge_capacity, g);
    auto reverse = get(boost::edge_reverse, g);
    auto const arc = [&](std::size_t from, std::size_t to, std::int64_t most) {
        auto const there = add_edge(from, to, g).first;
        auto const back = add_edge(to, from, g).first;
        capacities[there] = most;
        capacities[back] = 0;
        reverse[there] = back;
        reverse[back] = there;
    };
    std::int64_t all = 0;
    auto node = first_bin + 32;
    for (auto const& [bins, size] : items) {
        all += size;
        arc(source, node, size);
        for (unsigned b = 0; b < 32; ++b) {
            if ((bins >> b & 1U) != 0) {
                arc(node, first_bin + b, size);
            }
        }
        ++node;
    }
    for (unsigned b = 0; b < 32; ++b) {
        arc(first_bin + b, sink, capacity);
    }
    return push_relabel_max_flow(g, source, sink) == all;
}
#else
/// By Hall's theorem for flows: no set of bins must take more than it has room for.
bool fits(std::map<unsigned, std::int64_t> const& items, std::int64_t capacity)
{
    unsigned every = 0;
    for (auto const& [bins, size] : items) {
        every |= bins;
    }
    for (unsigned some = every;; some = (some - 1) & every) {
        std::int64_t only_there = 0;
        for (auto const& [bins, size] : items) {
            only_there += (bins & ~some) == 0 ? size : 0;
        }
        if (only_there > capacity * std::popcount(some)) {
            return false;
        }
        if (some == 0) {
            return true;
        }
    }
}
#endif

std::int64_t least_largest_load(std::map<unsigned, std::int64_t> const& items)
{
    std::int64_t high = 0;
    for (auto const& [bins, size] : items) {
        high += size;
    }
    std::int64_t low = 0;
    while (low < high) {
        auto const middle = (low + high) / 2;
        if (fits(items, middle)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/// The cheapest way to give each row a column of its own, by dynamic programming over sets of columns; nothing when there are too few.
std::optional<std::int64_t> cheapest(std::vector<std::vector<std::optional<std::int64_t>>> const& costs)
{
    auto const columns = costs.empty() ? 0U : static_cast<unsigned>(costs.front().size());
    std::map<unsigned, std::int64_t> best{{0U, 0}};
    for (auto const& row : costs) {
        std::map<unsigned, std::int64_t> next;
        for (auto const& [taken, cost] : best) {
            for (unsigned c = 0; c < columns; ++c) {
                if ((taken >> c & 1U) == 0 && row[c]) {
                    auto const sum = cost + *row[c];
                    auto const [known, is_new] = next.try_emplace(taken | 1U << c, sum);
                    known->second = is_new ? sum : std::min(known->second, sum);
                }
            }
        }
        best = next;
    }
    std::optional<std::int64_t> least;
    for (auto const& [taken, cost] : best) {
        least = std::min(least.value_or(cost), cost);
    }
    return least;
}

struct problem {
    reshard_request request;
    std::vector<rank_id> live;
    elements_of_rank at_first;  ///< held by any rank
    elements_of_rank held;      ///< by live ranks
    elements_of_rank wanted;    ///< by place
    bool has_nodes;

    explicit problem(reshard_request const& of)
        : request{of}, live{of.live}, at_first{elements_in(of.from)}, held{at_first}, wanted{elements_in(of.to)}, has_nodes{!of.node_of.empty()}
    {
        std::erase_if(held, [&](auto const& one) { return std::find(live.begin(), live.end(), rank_id{one.first}) == live.end(); });
    }

    int node(int rank) const { return has_nodes ? request.node_of[static_cast<std::size_t>(rank)].value : 0; }

    bool is_live(int rank) const { return std::find(live.begin(), live.end(), rank_id{rank}) != live.end(); }

    std::int64_t missing(int place, int rank) const
    {
        std::int64_t sum = 0;
        auto const found = held.find(rank);
        for (auto const& e : wanted.at(place)) {
            auto const own = found != held.end() && found->second.count(e) != 0;
            sum += size_of(request, e) * (is_sum(request, e) ? adders(e) - (own ? 1 : 0) : own ? 0 : 1);
        }
        return sum;
    }

    std::int64_t adders(element const& e) const
    {
        return std::count_if(held.begin(), held.end(), [&](auto const& one) { return one.second.count(e) != 0; });
    }

    bool is_held(element const& e) const
    {
        return std::any_of(held.begin(), held.end(), [&](auto const& one) { return one.second.count(e) != 0; });
    }

    /// The fewest bytes that any choice of ranks has to move; nothing when there are too few ranks or nodes.
    std::optional<std::int64_t> least_needed() const
    {
        if (request.ranks == rank_choice::pinned) {
            std::int64_t sum = 0;
            for (auto const& [place, want] : wanted) {
                if (!is_live(place)) {
                    return std::nullopt;
                }
                sum += missing(place, place);
            }
            return sum;
        }
        if (request.ranks == rank_choice::any) {
            return cheapest(costs_of(places_on(std::nullopt), ranks_on(std::nullopt)));
        }
        std::set<int> place_nodes;
        std::set<int> live_nodes;
        for (auto const& [place, want] : wanted) {
            place_nodes.insert(node(place));
        }
        for (auto const rank : live) {
            live_nodes.insert(node(rank.value));
        }
        std::vector<std::vector<std::optional<std::int64_t>>> costs;
        for (auto const from : place_nodes) {
            costs.emplace_back();
            for (auto const to : live_nodes) {
                costs.back().push_back(cheapest(costs_of(places_on(from), ranks_on(to))));
            }
        }
        return cheapest(costs);
    }

    std::vector<int> places_on(std::optional<int> on) const
    {
        std::vector<int> places;
        for (auto const& [place, want] : wanted) {
            if (!on || node(place) == *on) {
                places.push_back(place);
            }
        }
        return places;
    }

    std::vector<int> ranks_on(std::optional<int> on) const
    {
        std::vector<int> ranks;
        for (auto const rank : live) {
            if (!on || node(rank.value) == *on) {
                ranks.push_back(rank.value);
            }
        }
        return ranks;
    }

    std::vector<std::vector<std::optional<std::int64_t>>> costs_of(std::vector<int> const& places, std::vector<int> const& ranks) const
    {
        std::vector<std::vector<std::optional<std::int64_t>>> costs;
        for (auto const place : places) {
            costs.emplace_back();
            for (auto const rank : ranks) {
                costs.back().push_back(missing(place, rank));
            }
        }
        return costs;
    }
};

std::int64_t largest_row(reshard_request const& request)
{
    std::int64_t most = 0;
    for (auto const& tensor : request.to.tensors) {
        int d = 0;
        while (d + 1 < tensor.shape.dimensions && tensor.shape[d] <= 1) {
            ++d;
        }
        if (!is_empty(whole(tensor.shape))) {
            most = std::max(most, elements(whole(tensor.shape)) / tensor.shape[d] * element_bytes(tensor, all_roles).count);
        }
    }
    return most;
}

/// The fewest rounds for elements of such sizes, each a whole part of the larger ones. @param sizes size -> bytes
std::int64_t least_rounds(std::map<std::int64_t, std::int64_t> const& sizes, std::int64_t budget)
{
    std::int64_t most = 0;
    std::int64_t sum = 0;
    for (auto one = sizes.rbegin(); one != sizes.rend(); ++one) {
        sum += one->second;
        auto const room = budget / one->first * one->first;
        most = std::max(most, (sum + room - 1) / room);
    }
    return most;
}

/// Ranks of a node that do not hold the same, on the node with the most: each kind is rounded to a row by itself. Those with addends are all different.
std::int64_t most_classes(problem const& p)
{
    auto const has_sum = [&](std::set<element> const& all) {
        return std::any_of(all.begin(), all.end(), [&](element const& e) { return is_sum(p.request, e); });
    };
    std::map<int, std::set<std::pair<int, std::set<element>>>> kinds;  // of each node
    for (auto const& [rank, has] : p.held) {
        kinds[p.node(rank)].insert({has_sum(has) ? rank : -1, has});
    }
    std::size_t most = 1;
    for (auto const& [node, of] : kinds) {
        most = std::max(most, of.size());
    }
    return static_cast<std::int64_t>(most);
}

/// Follows every element of a plan.
void check_plan(problem const& p, reshard_plan const& plan)
{
    auto const& request = p.request;
    auto const needed = p.least_needed();
    REQUIRE(needed);
    CHECK(plan.certificate.needed == bounded_bytes{bytes{*needed}, bytes{*needed}});
    CHECK(plan.certificate.moved == bounded_bytes{bytes{*needed}, bytes{*needed}});

    auto const is_elsewhere = [&](int rank, element const& e) {  // on another node than the rank, only
        return std::none_of(p.held.begin(), p.held.end(), [&](auto const& one) { return p.node(one.first) == p.node(rank) && one.second.count(e) != 0; });
    };
    std::map<unsigned, std::int64_t> by_holders;  // set of ranks -> bytes
    std::map<unsigned, std::int64_t> by_nodes;    // set of nodes -> bytes that have to leave one
    std::map<int, std::int64_t> missing;
    std::map<int, std::map<std::int64_t, std::int64_t>> missing_by_size;
    std::map<int, std::set<std::pair<element, int>>> comes;  // an addend with its holder, others with -1
    std::int64_t between = 0;
    std::set<int> takers;
    for (auto const& [place, want] : p.wanted) {
        auto const rank = rank_at(plan, rank_id{place}).value;
        REQUIRE(p.is_live(rank));
        REQUIRE(takers.insert(rank).second);
        auto const own = p.held.find(rank);
        auto const needs = [&](element const& e, int of, unsigned holders, unsigned nodes, bool far) {
            comes[rank].insert({e, of});
            auto const size = size_of(request, e);
            by_holders[holders] += size;
            missing[rank] += size;
            missing_by_size[rank][size] += size;
            if (far) {
                by_nodes[nodes] += size;
                between += size;
            }
        };
        for (auto const& e : want) {
            unsigned holders = 0;
            unsigned nodes = 0;
            for (auto const& [other, has] : p.held) {
                auto const holds = has.count(e) != 0;
                holders |= holds ? 1U << other : 0U;
                nodes |= holds ? 1U << p.node(other) : 0U;
                if (holds && other != rank && is_sum(request, e)) {
                    needs(e, other, 1U << other, 1U << p.node(other), p.node(other) != p.node(rank));
                }
            }
            if (!is_sum(request, e) && (own == p.held.end() || own->second.count(e) == 0)) {
                needs(e, -1, holders, nodes, is_elsewhere(rank, e));
            }
        }
    }

    std::map<int, std::int64_t> sent;
    std::map<int, std::int64_t> leaves;  // a node
    std::map<std::pair<int, int>, std::int64_t> in_round;
    std::map<std::pair<int, element>, std::map<int, int>> addends;  // receiver and element -> holder -> round
    std::int64_t rounds = 0;
    for (auto const& t : plan.transfers) {
        std::int64_t size = 0;
        each_element(plan.tensors[at(t.tensor)], t.tensor, t.box, t.roles, [&](element const& e) {
            REQUIRE(p.held.count(t.from.value) == 1);
            REQUIRE(p.held.at(t.from.value).count(e) == 1);                                      // from a live holder
            REQUIRE(comes[t.to.value].erase({e, is_sum(request, e) ? t.from.value : -1}) == 1);  // once, and only what is missing
            if (is_sum(request, e)) {
                addends[{t.to.value, e}][t.from.value] = t.round;
            } else if (p.node(t.from.value) != p.node(t.to.value)) {
                REQUIRE(is_elsewhere(t.to.value, e));  // the own node first
            }
            size += size_of(request, e);
        });
        REQUIRE(t.size.count == size);
        REQUIRE(size > 0);
        REQUIRE(t.round + 1 >= rounds);
        rounds = t.round + 1;
        sent[t.from.value] += size;
        in_round[{t.round, t.to.value}] += size;
        leaves[p.node(t.from.value)] += p.node(t.from.value) != p.node(t.to.value) ? size : 0;
    }
    for (auto const& [rank, rest] : comes) {
        REQUIRE(rest.empty());
    }
    for (auto const& [key, by_rank] : addends) {
        int round = 0;
        for (auto const& [from, its] : by_rank) {
            REQUIRE(its >= std::exchange(round, its));  // in the order of ranks
        }
    }
    for (auto const& kept : plan.kept) {
        for (auto const rank : kept.ranks) {
            for (auto const& part : kept.parts) {
                each_element(plan.tensors[at(part.tensor)], part.tensor, part.box, part.roles,
                             [&](element const& e) { REQUIRE(p.held.at(rank.value).count(e) == 1); });
            }
        }
    }

    auto const most = [](auto const& sums) {
        std::int64_t largest = 0;
        for (auto const& [key, size] : sums) {
            largest = std::max(largest, size);
        }
        return largest;
    };
    auto const& is = plan.certificate;
    auto const row = largest_row(request);
    CHECK(is.largest_send.value.count == most(sent));
    if (!p.has_nodes) {
        CHECK(is.largest_send.bound.count == least_largest_load(by_holders));
    } else {
        CHECK(is.largest_send.bound.count >= least_largest_load(by_holders));
        CHECK(most(leaves) < least_largest_load(by_nodes) + most_classes(p) * std::max<std::int64_t>(row, 1));
    }
    CHECK(most(sent) < is.largest_send.bound.count + std::max<std::int64_t>(row, 1));
    CHECK(is.largest_receive == bounded_bytes{bytes{most(missing)}, bytes{most(missing)}});
    CHECK(is.between_nodes == bounded_bytes{bytes{between}, bytes{between}});
    auto const budget = request.round_budget ? request.round_budget->count : std::max<std::int64_t>(1, most(missing));
    CHECK(most(in_round) <= budget);
    CHECK(is.rounds.value == rounds);
    std::int64_t least = most(missing) > 0 ? 1 : 0;
    for (auto const& [rank, sizes] : missing_by_size) {
        least = std::max(least, least_rounds(sizes, budget));
    }
    CHECK(is.rounds.bound == least);
    if (request.memory_limit) {
        CHECK(rounds >= least);
    } else {
        CHECK(rounds == least);
    }
}

/// Follows the memory of every rank while a plan runs in place.
void check_in_place(problem const& p, reshard_plan const& plan)
{
    auto const& request = p.request;
    auto has = p.at_first;
    auto const size_at = [&](int rank, element const& e) {
        auto const first = p.at_first.find(rank);
        return size_in(first != p.at_first.end() && first->second.count(e) != 0 ? request.from : request.to, e);
    };
    std::map<int, std::int64_t> used;
    std::map<element, std::int64_t> copies;
    for (auto const& [rank, all] : has) {
        for (auto const& e : all) {
            used[rank] += size_at(rank, e);
            copies[e] += p.is_live(rank) ? 1 : 0;
        }
    }
    auto const at_first = copies;
    std::int64_t peak = 0;
    auto const look = [&] {
        for (auto const& [rank, size] : used) {
            peak = std::max(peak, size);
        }
    };
    look();
    std::int64_t bound = peak;
    for (auto const& [place, want] : p.wanted) {
        std::int64_t size = 0;
        for (auto const& e : want) {
            size += size_in(request.to, e);
        }
        bound = std::max(bound, size);
    }
    std::size_t drop = 0;
    for (int round = -1; round < plan.certificate.rounds.value; ++round) {
        for (auto const& t : plan.transfers) {
            if (t.round == round) {
                each_element(plan.tensors[at(t.tensor)], t.tensor, t.box, t.roles, [&](element const& e) { REQUIRE(has[t.from.value].count(e) == 1); });
            }
        }
        for (auto const& t : plan.transfers) {
            if (t.round == round) {
                each_element(plan.tensors[at(t.tensor)], t.tensor, t.box, t.roles, [&](element const& e) {
                    REQUIRE(has[t.to.value].insert(e).second);
                    used[t.to.value] += size_at(t.to.value, e);
                    ++copies[e];
                });
            }
        }
        look();
        for (; drop < plan.dropped.size() && plan.dropped[drop].round == round; ++drop) {
            auto const& one = plan.dropped[drop];
            each_element(plan.tensors[at(one.part.tensor)], one.part.tensor, one.part.box, one.part.roles, [&](element const& e) {
                REQUIRE(has[one.rank.value].erase(e) == 1);
                used[one.rank.value] -= size_at(one.rank.value, e);
                REQUIRE(--copies[e] >= std::min<std::int64_t>(at_first.at(e), request.failures + 1));
            });
        }
    }
    REQUIRE(drop == plan.dropped.size());
    for (auto const& [place, want] : p.wanted) {
        for (auto const& e : want) {
            REQUIRE(has[rank_at(plan, rank_id{place}).value].count(e) == 1);
        }
    }
    CHECK(plan.certificate.peak == bounded_bytes{bytes{peak}, bytes{bound}});
    CHECK(bytes{peak} <= *request.memory_limit);
}

/// Why there can be no plan, as one of these; none: there must be one.
std::set<reshard_error> reasons(problem const& p)
{
    std::set<reshard_error> all;
    auto const& request = p.request;
    if (request.ranks != rank_choice::pinned && p.wanted.size() > p.live.size()) {
        all.insert(reshard_error::few_ranks);
    }
    if (!p.least_needed()) {
        all.insert(request.ranks == rank_choice::pinned        ? reshard_error::dead_rank
                   : request.ranks == rank_choice::whole_nodes ? reshard_error::uneven_nodes
                                                               : reshard_error::few_ranks);
    }
    for (auto const& [place, want] : p.wanted) {
        for (auto const& e : want) {
            if (!p.is_held(e)) {
                all.insert(reshard_error::lost);
            }
            for (auto const& [rank, has] : p.at_first) {
                if (is_sum(request, e) && has.count(e) != 0 && !p.is_live(rank)) {
                    all.insert(reshard_error::lost_addend);
                }
            }
        }
    }
    return all;
}

/// Some roles in formats that are converted, some as addends of a sum.
void draw_formats(reshard_request& request, std::mt19937& draw)
{
    constexpr std::pair<dtype, dtype> converted[] = {{dtype::f32, dtype::bf16}, {dtype::bf16, dtype::f32}};
    constexpr std::pair<dtype, dtype> added[] = {
        {dtype::f32, dtype::f32}, {dtype::bf16, dtype::f32}, {dtype::f64, dtype::f64}, {dtype::i32, dtype::i32}, {dtype::i64, dtype::i64}};
    for (std::size_t t = 0; t < request.to.tensors.size(); ++t) {
        for (std::size_t r = 0; r < static_cast<std::size_t>(tensor_roles); ++r) {
            if (request.to.tensors[t].element[r].size.count == 0 || draw() % 3 != 0) {
                continue;
            }
            auto formats = converted[draw() % 2];
            if (draw() % 2 == 0) {
                formats = added[draw() % 5];
                request.from.tensors[t].addends = request.from.tensors[t].addends | role_set{static_cast<tensor_role>(r)};
            }
            request.from.tensors[t].element[r] = formats.first;
            request.to.tensors[t].element[r] = formats.second;
        }
    }
}

reshard_request random_request(std::mt19937& draw)
{
    auto const tensors = random_layouts::random_tensors(draw);
    auto const ranks = 1 + below(draw, 6);
    reshard_request request{.from = random_layouts::random_layout(random_layouts::padded_at_random(tensors, draw), ranks, draw),
                            .to = random_layouts::random_layout(random_layouts::padded_at_random(tensors, draw), 1 + below(draw, 6), draw)};
    auto const all = std::max(ranks, static_cast<int>(request.to.places.size())) + below(draw, 2);
    request.ranks = static_cast<rank_choice>(draw() % 3);
    for (int r = 0; r < all; ++r) {
        request.live.push_back(rank_id{r});
    }
    if (draw() % 3 == 0) {
        request.live = random_layouts::some_ranks(all, draw);
        if (request.ranks == rank_choice::pinned && draw() % 4 != 0) {
            std::erase_if(request.to.places, [&](sub_collection const& place) {
                return std::find(request.live.begin(), request.live.end(), place.ranks.front()) == request.live.end();
            });
        }
    }
    if (request.ranks == rank_choice::whole_nodes || draw() % 2 == 0) {
        auto const node_size = 1 + below(draw, 3);
        for (int r = 0; r < all; ++r) {
            request.node_of.push_back(node_id{r / node_size});
        }
    }
    if (draw() % 2 == 0) {
        request.round_budget = bytes{8 * (1 + below(draw, 12)) + (draw() % 2 == 0 ? 0 : below(draw, 24))};
    }
    if (draw() % 3 == 0) {
        draw_formats(request, draw);
    }
    return request;
}

void check_many(unsigned seed, int count)
{
    std::mt19937 draw{seed};
    int planned = 0;
    for (int round = 0; round < count; ++round) {
        auto const request = random_request(draw);
        CAPTURE(round);
        problem const p{request};
        auto const out = try_reshard(request);
        auto const why = reasons(p);
        INFO(describe(out.fault).view());
        if (!why.empty()) {
            CHECK(why.count(out.fault.error) == 1);
            continue;
        }
        REQUIRE_FALSE(out.fault);
        check_plan(p, out.plan);
        ++planned;
    }
    CHECK(planned > count / 2);
}

/// Memory limits between the bound and what a plan takes that is not in place.
void check_many_in_place(unsigned seed, int count)
{
    std::mt19937 draw{seed};
    int planned = 0;
    int dropped = 0;
    for (int round = 0; round < count; ++round) {
        auto request = random_request(draw);
        CAPTURE(round);
        request.failures = below(draw, 3);
        for (std::size_t t = 0; t < request.to.tensors.size(); ++t) {  // nothing is converted or added in place
            request.from.tensors[t].addends = role_set{std::uint8_t{0}};
            request.from.tensors[t].element = request.to.tensors[t].element;
        }
        auto const loose = try_reshard(request);
        if (loose.fault) {
            continue;
        }
        auto const& peak = loose.plan.certificate.peak;
        auto const above = static_cast<std::uint64_t>(peak.value.count - peak.bound.count);
        request.memory_limit = bytes{peak.bound.count + static_cast<std::int64_t>(draw() % (above + 1))};
        auto const out = try_reshard(request);
        INFO(describe(out.fault).view());
        if (out.fault.error == reshard_error::little_memory) {
            CHECK(out.fault.limit > request.memory_limit->count);
            continue;
        }
        REQUIRE_FALSE(out.fault);
        if (request.memory_limit == peak.value) {
            CHECK(out.plan.certificate.rounds == loose.plan.certificate.rounds);
        }
        problem const p{request};
        check_plan(p, out.plan);
        check_in_place(p, out.plan);
        ++planned;
        dropped += static_cast<int>(out.plan.dropped.size());
    }
    CHECK(planned > count / 4);
    CHECK(dropped > planned);
}

}  // namespace

TEST_CASE("element_oracle: every element of random plans") { check_many(24, 1500); }

TEST_CASE("element_oracle: memory and copies in place") { check_many_in_place(5, 700); }

TEST_CASE("element_oracle: every element of many random plans", "[.long]")
{
    check_many(2024, 40000);
    check_many_in_place(2025, 20000);
}
