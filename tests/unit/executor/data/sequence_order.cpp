// SPDX-License-Identifier: Apache-2.0
// The order of an epoch, the parts of sources, and the sequences of a range of tokens: each law against enumeration.
#include "executor/data/sequence_order.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "executor/data/sequence_windows.hpp"
#include "executor/data/source_mix.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

random_stream stream(std::uint64_t seed) { return stream_of({.seed = seed, .step = step_id{-3}, .layer = layer_id{-1}, .op = op_id{-1}}); }

}  // namespace

TEST_CASE("sequence_order: a shuffle is a bijection")
{
    for (std::int64_t count = 1; count <= 300; ++count) {
        std::set<std::int64_t> places;
        for (std::int64_t i = 0; i < count; ++i) {
            auto const place = shuffled(stream(7), count, i);
            REQUIRE(place >= 0);
            REQUIRE(place < count);
            REQUIRE(places.insert(place).second);
        }
    }
    std::set<std::int64_t> places;
    std::int64_t const many = (std::int64_t{1} << 50) + 12345;
    for (std::int64_t i = 0; i < 20'000; ++i) {
        auto const place = shuffled(stream(8), many, many - 1 - i);
        REQUIRE((place >= 0 && place < many && places.insert(place).second));
    }
    CHECK(*places.rbegin() - *places.begin() > many / 2);
}

TEST_CASE("sequence_order: seeds shuffle evenly")
{
    // 4,000 seeds over the 24 orders of four elements: chi-square with 23 degrees of freedom is below 49.7 with a probability of 99.9 %.
    std::map<std::vector<std::int64_t>, int> orders;
    constexpr int seeds = 4000;
    for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        std::vector<std::int64_t> order;
        for (std::int64_t i = 0; i < 4; ++i) {
            order.push_back(shuffled(stream(seed), 4, i));
        }
        ++orders[order];
    }
    CHECK(orders.size() == 24);
    double chi = 0;
    for (auto const& [order, n] : orders) {
        chi += (n - seeds / 24.0) * (n - seeds / 24.0) / (seeds / 24.0);
    }
    CHECK(chi < 49.7);
}

TEST_CASE("source_mix: parts follow the weights at every moment")
{
    std::mt19937 draw{3};
    for (int round = 0; round < 60; ++round) {
        std::vector<double> weights;
        for (int s = 0; s < 1 + round % 7; ++s) {
            weights.push_back(1.0 + static_cast<double>(draw() % 1000));
        }
        auto const sum = std::accumulate(weights.begin(), weights.end(), 0.0);
        source_mix const mix{weights};
        std::vector<std::int64_t> dealt(weights.size());
        bool numbered = true, close = true;
        for (std::int64_t n = 0; n < 3 * source_mix::cycle; ++n) {
            auto const place = mix.of(n);
            auto& of = dealt[static_cast<std::size_t>(place.source)];
            numbered = numbered && place.number == of++;
            for (std::size_t s = 0; s < weights.size(); ++s) {
                auto const wanted = weights[s] / sum * static_cast<double>(n + 1);
                // a part is rounded to a 4096th, and at most one sequence per source is ahead or behind
                auto const most = static_cast<double>(n + 1) / source_mix::cycle + static_cast<double>(weights.size());
                close = close && std::fabs(static_cast<double>(dealt[s]) - wanted) <= most;
            }
        }
        CHECK(numbered);
        CHECK(close);
    }
    std::vector<double> const halves{1, 1};
    source_mix const turns{halves};
    CHECK(turns.of(0) == source_mix::place{0, 0});
    CHECK(turns.of(1) == source_mix::place{1, 0});
    CHECK(turns.of(100'001) == source_mix::place{1, 50'000});
}

TEST_CASE("sequence_windows: each token is predicted once")
{
    for (std::int64_t length = 1; length <= 5; ++length) {
        for (std::int64_t end = 4; end <= 30; ++end) {
            sequence_windows const windows{3, end, length};
            for (std::int64_t moved = 0; moved <= windows.slack() && windows.count() > 0; ++moved) {
                std::set<std::int64_t> predicted;
                for (std::int64_t n = 0; n < windows.count(); ++n) {
                    auto const w = windows.nth(n, moved);
                    REQUIRE(w.targets == length);
                    REQUIRE((w.first >= 3 && w.first + w.targets < end));
                    for (std::int64_t i = 1; i <= w.targets; ++i) {
                        REQUIRE(predicted.insert(w.first + i).second);
                    }
                }
                CHECK(static_cast<std::int64_t>(predicted.size()) == end - 4 - windows.slack());
            }
        }
    }
}

TEST_CASE("sequence_windows: sequences stay within documents")
{
    std::mt19937 draw{5};
    for (int round = 0; round < 200; ++round) {
        std::int64_t const begin = draw() % 5;
        std::int64_t const length = 1 + draw() % 6;
        std::vector<std::int64_t> ends;
        std::vector<std::int64_t> document(static_cast<std::size_t>(begin), -1);  // of each token
        for (int d = 0; d < 1 + round; ++d) {
            for (std::uint32_t i = 0; i < 1 + draw() % 9; ++i) {
                document.push_back(d);
            }
            ends.push_back(static_cast<std::int64_t>(document.size()));
        }
        sequence_windows const windows{begin, length, ends};
        CHECK(windows.slack() == 0);
        std::set<std::int64_t> predicted;
        auto const check = [&](token_window const& w) {
            REQUIRE((w.targets >= 1 && w.targets <= length && w.first >= begin));
            auto const of = document[static_cast<std::size_t>(w.first)];
            REQUIRE(document[static_cast<std::size_t>(w.first + w.targets)] == of);
            auto const end = ends[static_cast<std::size_t>(of)];
            auto const start = of == 0 ? begin : ends[static_cast<std::size_t>(of) - 1];
            return std::pair{start, end};
        };
        for (std::int64_t n = 0; n < windows.count(); ++n) {
            auto const w = windows.nth(n);
            auto const [start, end] = check(w);
            CHECK((w.targets == length || w.first + w.targets == end - 1));
            for (std::int64_t i = 1; i <= w.targets; ++i) {
                REQUIRE(predicted.insert(w.first + i).second);
            }
        }
        std::int64_t wanted = 0;
        for (std::size_t t = static_cast<std::size_t>(begin) + 1; t < document.size(); ++t) {
            wanted += document[t] == document[t - 1] ? 1 : 0;
        }
        CHECK(static_cast<std::int64_t>(predicted.size()) == wanted);
        for (int i = 0; i < 50 && windows.count() > 0; ++i) {
            auto const w = windows.drawn(std::uint64_t{draw()} << 32 | draw());
            auto const [start, end] = check(w);
            CHECK(w.targets == std::min(length, end - start - 1));
        }
    }
}
