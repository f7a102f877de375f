// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw/adamw.hpp"

#include <memory>

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

constexpr std::int64_t counts[] = {1, 4096, 7, 9000, 4097, 64};

/// A tensor's memory, on the host.
template <class T>
struct tensor {
    floats master, first, second, gradient;
    std::vector<std::int64_t> sums;
    std::vector<T> parameter;

    tensor(std::int64_t count, unsigned seed)
        : master{normal(count, seed)},
          first{normal(count, seed + 1, 0.1F)},
          second{normal(count, seed + 2, 0.1F)},
          gradient{normal(count, seed + 3, 10.0F)},
          parameter(size(count))
    {
        for (auto& v : second) {
            v = std::fabs(v);
        }
        for (float const v : normal(count, seed + 4, 1e9F)) {
            sums.push_back(static_cast<std::int64_t>(v));
        }
    }
};

/// Which of gradient, sums and parameter tensor n has: all combinations that there are, in turn.
bool has_gradient(std::size_t n) { return n % 3 != 0; }
bool has_sums(std::size_t n) { return n % 3 != 1; }
bool has_parameter(std::size_t n) { return n % 2 == 0; }

constexpr adamw_arguments<> arguments(std::int64_t step)
{
    return {.count = 0,
            .master = nullptr,
            .first_moment = nullptr,
            .second_moment = nullptr,
            .gradient = nullptr,
            .settings = {.gradient_multiplier = 0.013, .learning_rate = 3e-4, .beta2 = 0.95, .step = step}};
}

static_assert(definition::factors_of<float>(arguments(1).settings).correction1 == static_cast<float>(1 / (1 - 0.9)));

}  // namespace

TEMPLATE_TEST_CASE("cuda adamw: one launch has the bits of the definition", "", float, bfloat16)
{
    using T = TestType;
    constexpr auto policy = laws::policy<T>;
    auto const first = first_blocks(counts);
    REQUIRE(first == std::vector<std::int64_t>{0, 1, 2, 3, 6, 8, 9});
    for (std::size_t const offset : {0U, 1U}) {
        std::vector<tensor<T>> expected;
        for (unsigned n = 0; n < std::size(counts); ++n) {
            expected.emplace_back(counts[n], 10 * n);
        }
        auto const before = expected;
        auto const factors = definition::factors_of<float>(arguments(5).settings);
        std::vector<adamw_tensor<policy>> list;
        for (std::size_t n = 0; n < std::size(counts); ++n) {
            auto& t = expected[n];
            list.push_back({.count = counts[n],
                            .master = t.master.data(),
                            .first_moment = t.first.data(),
                            .second_moment = t.second.data(),
                            .gradient = has_gradient(n) ? t.gradient.data() : nullptr,
                            .sums = has_sums(n) ? t.sums.data() : nullptr,
                            .scale_log2 = 30,
                            .parameter = has_parameter(n) ? t.parameter.data() : nullptr,
                            .weight_decay = n % 2 == 0 ? 0.1F : 0.0F});
        }
        auto device_list = list;
        definition::adamw_list<policy>(
            {.tensor_count = std::ssize(list), .tensors = list.data(), .first_block = first.data(), .blocks = first.back(), .factors = &factors});
        same_in_every_order([&] {
            std::vector<std::unique_ptr<device::array<float>>> numbers;
            std::vector<std::unique_ptr<device::array<std::int64_t>>> sums;
            std::vector<std::unique_ptr<device::array<T>>> parameters;
            for (std::size_t n = 0; n < list.size(); ++n) {
                auto const& t = before[n];
                for (auto const* values : {&t.master, &t.first, &t.second, &t.gradient}) {
                    numbers.push_back(std::make_unique<device::array<float>>(*values, offset));
                }
                sums.push_back(std::make_unique<device::array<std::int64_t>>(t.sums, offset));
                parameters.push_back(std::make_unique<device::array<T>>(t.parameter, offset));
                auto& d = device_list[n];
                d.master = numbers[4 * n]->data();
                d.first_moment = numbers[4 * n + 1]->data();
                d.second_moment = numbers[4 * n + 2]->data();
                d.gradient = has_gradient(n) ? numbers[4 * n + 3]->data() : nullptr;
                d.sums = has_sums(n) ? sums[n]->data() : nullptr;
                d.parameter = has_parameter(n) ? parameters[n]->data() : nullptr;
            }
            device::array<adamw_tensor<policy>> const tensors{device_list};
            device::array<std::int64_t> const blocks{first};
            device::array<adamw_factors<float>> const shared{std::vector{factors}};
            cuda::adamw_list<policy>(
                device::queue(),
                {.tensor_count = std::ssize(list), .tensors = tensors.data(), .first_block = blocks.data(), .blocks = first.back(), .factors = shared.data()});
            for (std::size_t n = 0; n < list.size(); ++n) {
                INFO("tensor " << n);
                auto const& t = expected[n];
                CHECK(all_bits(numbers[4 * n]->host(), numbers[4 * n + 1]->host(), numbers[4 * n + 2]->host()) == all_bits(t.master, t.first, t.second));
                CHECK(sums[n]->host() == t.sums);
                CHECK(all_bits(parameters[n]->host()) == all_bits(t.parameter));
                CHECK((numbers[4 * n]->margins_kept() && numbers[4 * n + 1]->margins_kept() && numbers[4 * n + 2]->margins_kept() && sums[n]->margins_kept() &&
                       parameters[n]->margins_kept()));
            }
            return 0;
        });
    }
}

TEST_CASE("cuda adamw: a state in bf16 has the bits of the definition")
{
    auto const first = first_blocks(counts);
    auto const factors = definition::factors_of<float>(arguments(5).settings);
    for (std::size_t const offset : {0U, 1U}) {
        struct kept {
            std::vector<bfloat16> master, first, second;
        };
        std::vector<tensor<bfloat16>> drawn;
        std::vector<kept> expected;
        for (unsigned n = 0; n < std::size(counts); ++n) {
            auto const& t = drawn.emplace_back(counts[n], 10 * n);
            expected.push_back({stored<bfloat16>(t.master), stored<bfloat16>(t.first), stored<bfloat16>(t.second)});
        }
        auto const before = expected;
        std::vector<adamw_tensor<bf16_state>> list;
        for (std::size_t n = 0; n < std::size(counts); ++n) {
            list.push_back({.count = counts[n],
                            .master = expected[n].master.data(),
                            .first_moment = expected[n].first.data(),
                            .second_moment = expected[n].second.data(),
                            .gradient = drawn[n].gradient.data(),
                            .weight_decay = n % 2 == 0 ? 0.1F : 0.0F,
                            .rounding = stream_of(rounding_key(7, step_id{5}, tensor_id{static_cast<std::int32_t>(n)}))});
        }
        auto device_list = list;
        definition::adamw_list<bf16_state>(
            {.tensor_count = std::ssize(list), .tensors = list.data(), .first_block = first.data(), .blocks = first.back(), .factors = &factors});
        same_in_every_order([&] {
            std::vector<std::unique_ptr<device::array<bfloat16>>> numbers;
            std::vector<std::unique_ptr<device::array<float>>> gradients;
            for (std::size_t n = 0; n < list.size(); ++n) {
                for (auto const* values : {&before[n].master, &before[n].first, &before[n].second}) {
                    numbers.push_back(std::make_unique<device::array<bfloat16>>(*values, offset));
                }
                gradients.push_back(std::make_unique<device::array<float>>(drawn[n].gradient, offset));
                device_list[n].master = numbers[3 * n]->data();
                device_list[n].first_moment = numbers[3 * n + 1]->data();
                device_list[n].second_moment = numbers[3 * n + 2]->data();
                device_list[n].gradient = gradients[n]->data();
            }
            device::array<adamw_tensor<bf16_state>> const tensors{device_list};
            device::array<std::int64_t> const blocks{first};
            device::array<adamw_factors<float>> const shared{std::vector{factors}};
            cuda::adamw_list<bf16_state>(
                device::queue(),
                {.tensor_count = std::ssize(list), .tensors = tensors.data(), .first_block = blocks.data(), .blocks = first.back(), .factors = shared.data()});
            for (std::size_t n = 0; n < list.size(); ++n) {
                INFO("tensor " << n);
                CHECK(all_bits(numbers[3 * n]->host(), numbers[3 * n + 1]->host(), numbers[3 * n + 2]->host()) ==
                      all_bits(expected[n].master, expected[n].first, expected[n].second));
                CHECK((numbers[3 * n]->margins_kept() && numbers[3 * n + 1]->margins_kept() && numbers[3 * n + 2]->margins_kept()));
            }
            return 0;
        });
    }
}

TEST_CASE("adamw: a state in bf16 moves by small changes in the mean")
{
    // a change of a thousandth of the distance between neighbours: rounded to the nearest it would be none, for ever
    constexpr std::int64_t count = 1 << 14;
    std::vector<bfloat16> master(count, bfloat16{1.0F}), first(count, bfloat16{0.0F}), second(count, bfloat16{0.0F});
    floats const gradient(count, 1.0F);
    adamw_arguments<bf16_state> a{.count = count,
                                  .master = master.data(),
                                  .first_moment = first.data(),
                                  .second_moment = second.data(),
                                  .gradient = gradient.data(),
                                  .settings = {.learning_rate = 0x1p-18, .step = 1}};
    for (auto& step = a.settings.step; step <= 64; ++step) {
        a.rounding = stream_of(rounding_key(1, step_id{step - 1}, tensor_id{0}));
        definition::adamw(a);
    }
    double sum = 0;
    for (auto const m : master) {
        sum += double{1.0F} - double{static_cast<float>(m)};
    }
    // each step changes by the learning rate, since the gradient is always the same; the deviation of the mean is below 2^-9 2^-7 of it
    CHECK(sum / count == Approx(64 * 0x1p-18).epsilon(0.1));
}

TEST_CASE("cuda adamw: list equals single; sums equal gradients")
{
    auto t = tensor<float>{100, 1};
    auto single = t;
    auto from_sums = t;
    auto a = arguments(3);
    a.count = 100;
    a.weight_decay = 0.1;
    for (auto* some : {&single, &t, &from_sums}) {
        for (std::size_t i = 0; i < 100; ++i) {
            some->gradient[i] = value_of(some->sums[i], 28);
        }
    }
    a.master = single.master.data();
    a.first_moment = single.first.data();
    a.second_moment = single.second.data();
    a.gradient = single.gradient.data();
    definition::adamw(a);
    auto const factors = definition::factors_of<float>(a.settings);
    auto const first = first_blocks(std::vector<std::int64_t>{100});
    for (bool const turned : {false, true}) {
        auto& some = turned ? from_sums : t;
        std::vector<adamw_tensor<>> const list{{.count = 100,
                                                .master = some.master.data(),
                                                .first_moment = some.first.data(),
                                                .second_moment = some.second.data(),
                                                .gradient = turned ? nullptr : some.gradient.data(),
                                                .sums = some.sums.data(),
                                                .scale_log2 = 28,
                                                .weight_decay = 0.1F}};
        definition::adamw_list<fp32>({.tensor_count = 1, .tensors = list.data(), .first_block = first.data(), .blocks = 1, .factors = &factors});
        CHECK(all_bits(some.master, some.first, some.second) == all_bits(single.master, single.first, single.second));
    }
}

TEST_CASE("cuda sums of squares: have the bits of the host")
{
    tile_pool pool{1};
    auto const first = first_blocks(counts);
    std::vector<floats> gradients;
    std::vector<double> expected;
    for (unsigned n = 0; n < std::size(counts); ++n) {
        gradients.push_back(normal(counts[n], n, 3.0F));
        expected.push_back(host::sum_of_squares(pool, {.count = counts[n], .gradient = gradients.back().data()}));
    }
    auto const d = same_in_every_order([&] {
        std::vector<std::unique_ptr<device::array<float>>> memory;
        std::vector<cuda::norm_tensor> list;
        for (auto const& g : gradients) {
            memory.push_back(std::make_unique<device::array<float>>(g));
            list.push_back({.count = std::ssize(g), .gradient = memory.back()->data()});
        }
        device::array<cuda::norm_tensor> const tensors{list};
        device::array<std::int64_t> const blocks{first};
        device::array<double> const block_sums{first.back()}, sums{std::ssize(list)};
        cuda::sums_of_squares_by_block(device::queue(), {.tensor_count = std::ssize(list),
                                                         .tensors = tensors.data(),
                                                         .first_block = blocks.data(),
                                                         .blocks = first.back(),
                                                         .block_sums = block_sums.data()});
        auto const together = block_sums.host();
        cuda::sums_of_blocks(device::queue(), {.count = std::ssize(list), .first_block = blocks.data(), .block_sums = block_sums.data(), .sums = sums.data()});
        CHECK((block_sums.margins_kept() && sums.margins_kept()));
        device::array<double> const one_by_one{first.back()};
        for (std::size_t n = 0; n < list.size(); ++n) {
            cuda::sums_of_squares_by_block(device::queue(), list[n], one_by_one.data() + first[n]);
        }
        CHECK(one_by_one.margins_kept());
        CHECK(one_by_one.host() == together);
        return sums.host();
    });
    CHECK(d == expected);
}
