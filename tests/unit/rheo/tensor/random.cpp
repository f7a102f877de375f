// SPDX-License-Identifier: Apache-2.0
#include "rheo/tensor/random.hpp"

#include <set>

#include "support/catch.hpp"

using namespace rheo;

// The known answers that come with Random123.
static_assert(philox({0, 0, 0, 0}, {0, 0}) == std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

// Each field of a key changes the stream.
constexpr random_key base{.seed = 7, .step = step_id{3}, .microbatch = microbatch_id{2}, .layer = layer_id{1}, .op = op_id{4}};

constexpr bool every_field_counts()
{
    auto other = base;
    other.seed = 8;
    bool differ = stream_of(other) != stream_of(base);
    other = base;
    other.seed = 7 + (std::uint64_t{1} << 32);
    differ = differ && stream_of(other) != stream_of(base);
    other = base;
    other.step = step_id{3 + (std::int64_t{1} << 32)};
    differ = differ && stream_of(other) != stream_of(base);
    other = base;
    other.microbatch = microbatch_id{3};
    differ = differ && stream_of(other) != stream_of(base);
    other = base;
    other.layer = layer_id{2};
    differ = differ && stream_of(other) != stream_of(base);
    other = base;
    other.op = op_id{5};
    return differ && stream_of(other) != stream_of(base);
}
static_assert(every_field_counts());
static_assert(stream_of(initial_values_key(7, tensor_id{1})) != stream_of(initial_values_key(7, tensor_id{2})));

TEST_CASE("random: streams of neighbouring keys are all different")
{
    std::set<std::array<std::uint32_t, 4>> seen;
    int count = 0;
    for (int step = 0; step < 8; ++step) {
        for (int microbatch = 0; microbatch < 8; ++microbatch) {
            for (int layer = 0; layer < 8; ++layer) {
                for (int op = 0; op < 8; ++op) {
                    auto const s =
                        stream_of({.seed = 1, .step = step_id{step}, .microbatch = microbatch_id{microbatch}, .layer = layer_id{layer}, .op = op_id{op}});
                    seen.insert({s.key[0], s.key[1], s.high[0], s.high[1]});
                    ++count;
                }
            }
        }
    }
    CHECK(seen.size() == static_cast<std::size_t>(count));
}

TEST_CASE("random: every element of a stream has words of its own")
{
    // 4096 words of 32 bits: two would be equal by chance once in 512 tries; here they are not, for good.
    auto const stream = stream_of(base);
    std::set<std::uint32_t> seen;
    for (std::uint64_t e = 0; e < 4096; ++e) {
        seen.insert(random_word(stream, e));
    }
    CHECK(seen.size() == 4096);
}

TEST_CASE("random: elements beyond 2^32 counters are distinct too")
{
    auto const stream = stream_of(base);
    CHECK(random_word(stream, 5) != random_word(stream, 5 + (std::uint64_t{1} << 34)));
}

TEST_CASE("random: words are even: each bit is set half of the time")
{
    // 65536 draws: the count of a bit has mean 32768 and deviation 128; six deviations are 768.
    auto const stream = stream_of(base);
    std::array<int, 32> set{};
    for (std::uint64_t e = 0; e < 65536; ++e) {
        auto const word = random_word(stream, e);
        for (unsigned b = 0; b < 32; ++b) {
            set[b] += static_cast<int>((word >> b) & 1U);
        }
    }
    for (int const count : set) {
        CHECK(std::abs(count - 32768) < 768);
    }
}
