// SPDX-License-Identifier: Apache-2.0
// The backward of a norm in one launch has the bits of the two that it stands for, alone and behind a residual sum.
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"

#include "../laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t width;
};
// a warp per row, and threads for several of them in a block; groups of 256 rows; rows of more threads than columns want, and of no whole chunks
constexpr shape shapes[] = {{1, 1}, {3, 7}, {257, 40}, {6, 1096}, {2, 2056}, {1, 4608}};

enum class norm : std::uint8_t { layer, rms, residual_layer, residual_rms };
constexpr norm norms[] = {norm::layer, norm::rms, norm::residual_layer, norm::residual_rms};

/// Which of the weights' sums there are.
struct wanted {
    bool gamma = true;
    bool beta = true;
};

struct outputs {
    std::vector<std::vector<std::uint32_t>> gradients;
    exact_buffer gamma, beta;
    friend bool operator==(outputs const&, outputs const&) = default;
};

template <class T>
outputs computed(shape s, norm which, bool one_launch, wanted sums = {}, std::size_t offset = 0)
{
    std::int64_t const n = s.rows * s.width;
    device::array<T> const x{stored<T>(normal(n, 1)), offset}, gamma{stored<T>(normal(s.width, 2, 0.3F, 1.0F))}, dy{stored<T>(normal(n, 3))},
        bypass{stored<T>(normal(n, 4))}, branch{n};
    device::array<float> const mean{normal(s.rows, 5, 0.1F)}, rstd{normal(s.rows, 6, 0.1F, 1.0F)};
    device_sums const gamma_sums{exact_buffer{s.width}}, beta_sums{exact_buffer{s.width, 28}};
    device::scratch const scratch{cuda::layer_norm_backward_weight_workspace_bytes(s.rows, s.width)};
    auto const q = device::queue();
    auto const to_gamma = sums.gamma ? gamma_sums.target() : gradient_sum<bf16>{};
    auto const to_beta = sums.beta ? beta_sums.target() : gradient_sum<bf16>{};
    dropout const drop{.probability = 0.3, .key = {.seed = 7, .layer = layer_id{2}, .op = op_id{4}}};
    T* const to = bypass.data();  // the result may take the place of this one
    if (which == norm::layer) {
        layer_norm_backward_input_arguments<policy<T>> const a{.rows = s.rows,
                                                               .width = s.width,
                                                               .input = x.data(),
                                                               .gamma = gamma.data(),
                                                               .mean = mean.data(),
                                                               .rstd = rstd.data(),
                                                               .output_gradient = dy.data(),
                                                               .bypass_gradient = bypass.data(),
                                                               .input_gradient = to};
        one_launch ? cuda::layer_norm_backward(q, scratch, a, to_gamma, to_beta) : cuda::layer_norm_backward_input(q, a);
    } else if (which == norm::rms) {
        rms_norm_backward_input_arguments<policy<T>> const a{.rows = s.rows,
                                                             .width = s.width,
                                                             .input = x.data(),
                                                             .gamma = gamma.data(),
                                                             .rstd = rstd.data(),
                                                             .output_gradient = dy.data(),
                                                             .bypass_gradient = bypass.data(),
                                                             .input_gradient = to};
        one_launch ? cuda::rms_norm_backward(q, scratch, a, to_gamma) : cuda::rms_norm_backward_input(q, a);
    } else if (which == norm::residual_layer) {
        residual_norm_backward_arguments<policy<T>> const a{.rows = s.rows,
                                                            .width = s.width,
                                                            .residual = x.data(),
                                                            .gamma = gamma.data(),
                                                            .mean = mean.data(),
                                                            .rstd = rstd.data(),
                                                            .output_gradient = dy.data(),
                                                            .bypass_gradient = bypass.data(),
                                                            .drop = drop,
                                                            .stream_gradient = to,
                                                            .branch_gradient = branch.data()};
        one_launch ? cuda::residual_norm_backward(q, scratch, a, to_gamma, to_beta) : cuda::residual_norm_backward(q, a);
    } else {
        residual_rms_norm_backward_arguments<policy<T>> const a{.rows = s.rows,
                                                                .width = s.width,
                                                                .residual = x.data(),
                                                                .gamma = gamma.data(),
                                                                .rstd = rstd.data(),
                                                                .output_gradient = dy.data(),
                                                                .bypass_gradient = bypass.data(),
                                                                .drop = drop,
                                                                .stream_gradient = to,
                                                                .branch_gradient = branch.data()};
        one_launch ? cuda::residual_rms_norm_backward(q, scratch, a, to_gamma) : cuda::residual_rms_norm_backward(q, a);
    }
    if (!one_launch && (which == norm::layer || which == norm::residual_layer)) {
        cuda::layer_norm_backward_weight<policy<T>>(q, scratch,
                                                    {.rows = s.rows,
                                                     .width = s.width,
                                                     .input = x.data(),
                                                     .mean = mean.data(),
                                                     .rstd = rstd.data(),
                                                     .output_gradient = dy.data(),
                                                     .gamma_gradient = to_gamma,
                                                     .beta_gradient = to_beta});
    } else if (!one_launch && sums.gamma) {
        cuda::rms_norm_backward_weight<policy<T>>(
            q, scratch, {.rows = s.rows, .width = s.width, .input = x.data(), .rstd = rstd.data(), .output_gradient = dy.data(), .gamma_gradient = to_gamma});
    }
    for (auto const* a : {&x, &gamma, &dy, &bypass, &branch}) {
        CHECK(a->margins_kept());
    }
    CHECK(scratch.counters_are_zero());
    bool const has_branch = which == norm::residual_layer || which == norm::residual_rms;
    return {all_bits(bypass.host(), has_branch ? branch.host() : bypass.host()), gamma_sums.host(), beta_sums.host()};
}

}  // namespace

TEMPLATE_TEST_CASE("cuda norms: fused backward has the bits of two launches", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : shapes) {
        for (auto const which : norms) {
            INFO(s.rows << " x " << s.width << ", norm " << static_cast<int>(which));
            auto const apart = computed<T>(s, which, false);
            CHECK(same_in_every_order([&] { return computed<T>(s, which, true); }) == apart);
            if (s.rows < 256) {
                CHECK(computed<T>(s, which, true, {}, 1) == apart);  // read by elements
            }
        }
    }
}

TEST_CASE("cuda norms: fused backward skips null sums")
{
    for (auto const which : norms) {
        for (wanted const sums : {wanted{false, true}, wanted{true, false}, wanted{false, false}}) {
            shape const s{257, 8};
            CHECK(computed<bfloat16>(s, which, true, sums) == computed<bfloat16>(s, which, false, sums));
        }
    }
}

TEST_CASE("cuda norms: fused backward rejects overlap, low storage")
{
    using Catch::Matchers::ContainsSubstring;
    device_sums const sums{exact_buffer{8}};
    bfloat16 one[8];
    layer_norm_backward_input_arguments<bf16> const a{
        .rows = 1, .width = 8, .input = one, .gamma = one, .mean = nullptr, .rstd = nullptr, .output_gradient = one, .input_gradient = one};
    CHECK_THROWS_WITH(cuda::layer_norm_backward(device::queue(), {}, a, sums.target(), {}),
                      ContainsSubstring("does not write over the gradient that it reads"));
    bfloat16 other[8];
    rms_norm_backward_input_arguments<bf16> const b{
        .rows = 300, .width = 8, .input = one, .gamma = one, .rstd = nullptr, .output_gradient = one, .input_gradient = other};
    CHECK_THROWS_WITH(cuda::rms_norm_backward(device::queue(), {}, b, sums.target()), ContainsSubstring("workspace is too small"));
}
