// SPDX-License-Identifier: Apache-2.0
// The gradients of parameters into sums of 32 bits: what sums of 64 bits say at the same scales, in every order of blocks and threads.
#include "kernels/embedding/embedding.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/rms_norm/rms_norm.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

/// The parameters of a layer of every kind, which all read the same matrices.
struct gradients {
    row_buffer gamma, beta, root_gamma, bias, tokens, positions;
    friend bool operator==(gradients const&, gradients const&) = default;
};

struct shape {
    std::int64_t rows, width;
};
// groups of 256 rows, rows of no whole chunks, and of several tiles
constexpr shape shapes[] = {{1, 1}, {3, 7}, {257, 40}, {40, 1040}};
constexpr std::int64_t vocabulary = 9;

/// dy with a value beyond every bound in its first element (1), or one that is not finite in its last row (2).
template <class T>
std::vector<T> output_gradient(shape s, int trouble)
{
    auto values = normal(s.rows * s.width, 3, 50.0F);
    if ((trouble & 1) != 0) {
        values.front() = 3e30F;
    }
    if ((trouble & 2) != 0) {
        values.back() = std::numeric_limits<float>::infinity();
    }
    return stored<T>(values);
}

template <class Sum>
using sums_of = gradient_sum_of<std::is_same_v<Sum, std::int64_t> ? dtype::i64 : dtype::i32>;

/// Into sums of one kind. @param to of gamma, beta, gamma of the root mean square, bias, tokens, positions
template <class T, class Sum>
void computed(shape s, std::vector<T> const& gradient, std::size_t offset, sums_of<Sum> const (&to)[6])
{
    constexpr auto policy_ = cuda::policy_of<T, Sum>;
    auto const ids = tokens(s.rows, vocabulary, 8);
    auto const order = order_of(ids, vocabulary);
    device::array<T> const x{stored<T>(normal(s.rows * s.width, 1)), offset}, dy{gradient, offset};
    device::array<float> const mean{normal(s.rows, 5, 0.1F)}, rstd{normal(s.rows, 6, 0.1F, 1.0F)};
    device::array<std::int32_t> const rows{order.rows}, first{order.first}, segments{order.tokens};
    device::scratch const scratch{
        std::max(cuda::layer_norm_backward_weight_workspace_bytes(s.rows, s.width), cuda::linear_backward_bias_workspace_bytes(s.rows, s.width))};
    auto const q = device::queue();
    for (int twice = 0; twice < 2; ++twice) {
        cuda::layer_norm_backward_weight<policy_>(q, scratch,
                                                  {.rows = s.rows,
                                                   .width = s.width,
                                                   .input = x.data(),
                                                   .mean = mean.data(),
                                                   .rstd = rstd.data(),
                                                   .output_gradient = dy.data(),
                                                   .gamma_gradient = to[0],
                                                   .beta_gradient = to[1]});
        cuda::rms_norm_backward_weight<policy_>(
            q, scratch, {.rows = s.rows, .width = s.width, .input = x.data(), .rstd = rstd.data(), .output_gradient = dy.data(), .gamma_gradient = to[2]});
        cuda::linear_backward_bias<policy_>(q, scratch, {.rows = s.rows, .out = s.width, .output_gradient = dy.data(), .bias_gradient = to[3]});
        cuda::token_order_on_device const on_device{
            .segments = std::ssize(order.tokens), .rows = rows.data(), .first = first.data(), .tokens = segments.data()};
        cuda::embedding_backward_weight<policy_>(q, on_device,
                                                 {.batch = 1,
                                                  .length = s.rows,
                                                  .width = s.width,
                                                  .vocabulary = vocabulary,
                                                  .tokens = nullptr,
                                                  .output_gradient = dy.data(),
                                                  .drop = {},
                                                  .token_gradient = to[4],
                                                  .position_gradient = to[5]});
    }
    CHECK((x.margins_kept() && dy.margins_kept() && scratch.counters_are_zero()));
}

template <class T>
gradients in_32_bits(shape s, std::vector<T> const& dy, std::size_t offset)
{
    row_buffer const one{1, s.width, 6};
    device_rows const gamma{one}, beta{one}, root{one}, bias{one}, ids{row_buffer{vocabulary, s.width, 6}, offset},
        positions{row_buffer{s.rows, s.width, 6}, offset};
    computed<T, std::int32_t>(s, dy, offset, {gamma.target(), beta.target(), root.target(), bias.target(), ids.target(), positions.target()});
    return {gamma.host(), beta.host(), root.host(), bias.host(), ids.host(), positions.host()};
}

}  // namespace

TEMPLATE_TEST_CASE("cuda row sums: 32-bit gradients match 64-bit ones", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : shapes) {
        for (int const trouble : {0, 1, 2}) {
            INFO(s.rows << " x " << s.width << ", trouble " << trouble);
            auto const dy = output_gradient<T>(s, trouble);
            auto const found = same_in_every_order([&] { return in_32_bits<T>(s, dy, 0); });
            if (s.rows < 256) {
                CHECK(in_32_bits<T>(s, dy, 1) == found);  // read by elements
            }
            row_buffer const* const all[] = {&found.gamma, &found.beta, &found.root_gamma, &found.bias, &found.tokens, &found.positions};
            for (std::size_t which = 0; which < 6; ++which) {
                INFO("tensor " << which);
                auto const any = [&](auto const& is) { return std::any_of(all[which]->states.begin(), all[which]->states.end(), is); };
                CHECK(any([&](auto const& state) { return overflowed(state, 8); }) == (trouble == 1));
                CHECK(any([](auto const& state) { return not_finite(state); }) == (trouble == 2));
                if (trouble == 2) {
                    continue;
                }
                check_as_in_64_bits(*all[which], [&](exact_buffer& wanted) {
                    device_sums const sums{wanted};
                    gradient_sum<fp32> to[6]{};
                    device_sums const other_gamma{exact_buffer{s.width}};
                    to[which] = sums.target();
                    if (which != 2) {
                        to[2] = other_gamma.target();
                    }
                    device_sums const other_bias{exact_buffer{s.width}};
                    if (which != 3) {
                        to[3] = other_bias.target();
                    }
                    computed<T, std::int64_t>(s, dy, 0, {to[0], to[1], to[2], to[3], to[4], to[5]});
                    wanted = sums.host();
                });
            }
        }
    }
}

TEST_CASE("cuda row sums: rows without tokens stay unchanged")
{
    shape const s{3, 8};
    auto const found = in_32_bits<bfloat16>(s, output_gradient<bfloat16>(s, 0), 0);
    auto const order = order_of(tokens(s.rows, vocabulary, 8), vocabulary);
    for (std::int32_t v = 0; v < vocabulary; ++v) {
        bool const named = std::find(order.tokens.begin(), order.tokens.end(), v) != order.tokens.end();
        CHECK((found.tokens.states[static_cast<std::size_t>(v)].max_abs > 0) == named);
    }
}
