// SPDX-License-Identifier: Apache-2.0
// The digest: a sum over elements, so no layout can change it, and every element counts at its place.
#include "rheo/tensor/digest.hpp"

#include <algorithm>
#include <bit>
#include <random>
#include <set>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

namespace {

std::vector<std::uint32_t> random_bits(std::size_t count, unsigned seed)
{
    std::mt19937 draw{seed};
    std::vector<std::uint32_t> bits(count);
    for (auto& b : bits) {
        b = static_cast<std::uint32_t>(draw());
    }
    return bits;
}

state_digest of(std::vector<std::uint32_t> const& bits, std::string_view name = "wte.weight", tensor_role role = tensor_role::parameter, std::int64_t first = 0)
{
    return digest_of(name, role, first, bits);
}

constexpr state_digest plus(state_digest a, state_digest b) { return a += b; }

// Sums mod 2^128: carries, order, composition.
constexpr state_digest ones{0, ~std::uint64_t{0}};
static_assert(plus(ones, {0, 1}) == state_digest{1, 0});
static_assert(plus({~std::uint64_t{0}, ~std::uint64_t{0}}, {0, 1}) == state_digest{});
static_assert(plus({1, 2}, plus(ones, {5, 6})) == plus(plus({5, 6}, {1, 2}), ones));

static_assert(mix_bits(0) == 0 && mix_bits(1) != mix_bits(2));
static_assert(hash_text("") != hash_text("a") && hash_text("ab") != hash_text("ba") && hash_text("a") != hash_text(std::string_view{"a\0", 2}));

}  // namespace

TEST_CASE("digest: a digest is the sum over parts, in any order")
{
    auto const bits = random_bits(1000, 1);
    auto const whole = of(bits);
    std::mt19937 draw{2};
    for (int round = 0; round < 50; ++round) {
        std::vector<std::size_t> bounds{0, bits.size()};
        for (int i = 0; i < 6; ++i) {
            bounds.push_back(draw() % bits.size());
        }
        std::sort(bounds.begin(), bounds.end());
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
            order.push_back(i);
        }
        std::shuffle(order.begin(), order.end(), draw);
        state_digest sum;
        for (auto const i : order) {
            sum += digest_of("wte.weight", tensor_role::parameter, static_cast<std::int64_t>(bounds[i]),
                             array_view{bits}.subspan(bounds[i], bounds[i + 1] - bounds[i]));
        }
        REQUIRE(sum == whole);
    }
}

TEST_CASE("digest: every bit, place, role and name counts")
{
    auto const bits = random_bits(40, 3);
    std::set<std::string> seen{to_string(of(bits))};
    std::size_t expected = 1;
    auto const differs = [&](state_digest d) { REQUIRE((seen.insert(to_string(d)), seen.size()) == ++expected); };
    for (std::size_t i = 0; i < bits.size(); ++i) {
        for (int bit = 0; bit < 32; ++bit) {
            auto changed = bits;
            changed[i] ^= std::uint32_t{1} << bit;
            differs(of(changed));
        }
    }
    for (std::size_t i = 0; i + 1 < bits.size(); ++i) {  // neighbours that change places
        auto changed = bits;
        std::swap(changed[i], changed[i + 1]);
        differs(of(changed));
    }
    differs(of(bits, "wte.weight", tensor_role::first_moment));
    differs(of(bits, "wte.weight", tensor_role::second_moment));
    differs(of(bits, "wte.weighu"));
    differs(of(bits, "wte.weight", tensor_role::parameter, 1));
    differs(of(std::vector<std::uint32_t>(bits.begin(), bits.end() - 1)));
    auto longer = bits;
    longer.push_back(0);
    differs(of(longer));  // an element with all bits zero counts, too
}

TEST_CASE("digest: a changed bit changes half of the digest")
{
    auto const bits = random_bits(4, 5);
    auto const base = of(bits);
    double changed = 0;
    for (int bit = 0; bit < 128; ++bit) {
        auto other = bits;
        other[static_cast<std::size_t>(bit / 32)] ^= std::uint32_t{1} << (bit % 32);
        auto const d = of(other);
        changed += std::popcount(d.high ^ base.high) + std::popcount(d.low ^ base.low);
    }
    CHECK(changed / 128 == Approx(64).margin(3));  // 128 draws of a deviation of 5.7: 6 of their mean's deviations
}

TEST_CASE("digest: a digest is written as 32 digits, high half first")
{
    CHECK(to_string(state_digest{0x0123456789abcdefU, 0xfedcba9876543210U}) == "0123456789abcdeffedcba9876543210");
    CHECK(to_string(state_digest{}) == std::string(32, '0'));
}
