// SPDX-License-Identifier: Apache-2.0
// A sum has the bits of its definition; what is fused has the bits of its parts.
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

struct shape {
    std::int64_t rows;
    std::int64_t width;
};
constexpr shape shapes[] = {{1, 1}, {3, 7}, {6, 33}, {2, 1000}, {9, 264}};

/// None, half of all elements, and a slice's rows: tokens 2 and 3 of sequences of 5.
std::vector<dropout> drops(std::int64_t rows)
{
    random_key const key{.seed = 7, .step = step_id{3}, .microbatch = microbatch_id{1}, .layer = layer_id{2}, .op = op_id{4}};
    std::vector<dropout> all{{}, {.probability = 0.5, .key = key}};
    if (rows % 2 == 0) {
        all.push_back({.probability = 0.25, .key = key, .rows = {.length = 2, .first = 2, .whole = 5}});
    }
    return all;
}

template <class T>
struct inputs {
    std::vector<T> stream, branch, gamma, beta, dy, bypass;

    explicit inputs(shape s)
        : stream{stored<T>(normal(s.rows * s.width, 1))},
          branch{stored<T>(normal(s.rows * s.width, 2))},
          gamma{stored<T>(normal(s.width, 3, 0.3F, 1.0F))},
          beta{stored<T>(normal(s.width, 4))},
          dy{stored<T>(normal(s.rows * s.width, 5))},
          bypass{stored<T>(normal(s.rows * s.width, 6))}
    {
    }
};

}  // namespace

TEMPLATE_TEST_CASE("cuda residual add: has the bits of the definition", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : shapes) {
        inputs<T> const in{s};
        for (auto const& drop : drops(s.rows)) {
            INFO(s.rows << " x " << s.width << ", p = " << drop.probability);
            std::vector<T> sum(in.stream), gradient(in.stream);
            definition::residual_add_forward<policy<T>>(
                {.rows = s.rows, .width = s.width, .stream = in.stream.data(), .branch = in.branch.data(), .drop = drop, .output = sum.data()});
            definition::residual_add_backward<policy<T>>(
                {.rows = s.rows, .width = s.width, .output_gradient = in.dy.data(), .drop = drop, .branch_gradient = gradient.data()});
            for (std::size_t const offset : {0U, 1U}) {
                auto const d = same_in_every_order([&] {
                    device::array<T> const stream{in.stream, offset}, branch{in.branch}, dy{in.dy, offset}, output{s.rows * s.width}, result{s.rows * s.width};
                    auto const forward = [&](T* to) {
                        cuda::residual_add_forward<policy<T>>(
                            device::queue(), {.rows = s.rows, .width = s.width, .stream = stream.data(), .branch = branch.data(), .drop = drop, .output = to});
                    };
                    forward(output.data());
                    cuda::residual_add_backward<policy<T>>(
                        device::queue(), {.rows = s.rows, .width = s.width, .output_gradient = dy.data(), .drop = drop, .branch_gradient = result.data()});
                    cuda::residual_add_backward<policy<T>>(
                        device::queue(), {.rows = s.rows, .width = s.width, .output_gradient = dy.data(), .drop = drop, .branch_gradient = dy.data()});
                    CHECK(all_bits(dy.host()) == all_bits(result.host()));
                    forward(stream.data());
                    CHECK(all_bits(stream.host()) == all_bits(output.host()));
                    for (auto const* a : {&stream, &branch, &dy, &output, &result}) {
                        CHECK(a->margins_kept());
                    }
                    return all_bits(output.host(), result.host());
                });
                CHECK(d == all_bits(sum, gradient));
            }
        }
    }
}

TEMPLATE_TEST_CASE("cuda residual norm: one pass has the bits of two", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : shapes) {
        inputs<T> const in{s};
        std::int64_t const count = s.rows * s.width;
        for (auto const& drop : drops(s.rows)) {
            INFO(s.rows << " x " << s.width << ", p = " << drop.probability);
            auto const run = [&](bool fused, std::size_t offset) {
                device::array<T> const stream{in.stream, offset}, branch{in.branch}, gamma{in.gamma}, beta{in.beta}, dy{in.dy}, bypass{in.bypass},
                    residual{count}, y{count}, to_stream{count}, to_branch{count};
                device::array<float> const mean{s.rows}, rstd{s.rows};
                auto const q = device::queue();
                if (fused) {
                    cuda::residual_norm_forward<policy<T>>(q, {.rows = s.rows,
                                                               .width = s.width,
                                                               .stream = stream.data(),
                                                               .branch = branch.data(),
                                                               .drop = drop,
                                                               .gamma = gamma.data(),
                                                               .beta = beta.data(),
                                                               .residual = residual.data(),
                                                               .output = y.data(),
                                                               .mean = mean.data(),
                                                               .rstd = rstd.data()});
                    cuda::residual_norm_backward<policy<T>>(q, {.rows = s.rows,
                                                                .width = s.width,
                                                                .residual = residual.data(),
                                                                .gamma = gamma.data(),
                                                                .mean = mean.data(),
                                                                .rstd = rstd.data(),
                                                                .output_gradient = dy.data(),
                                                                .bypass_gradient = bypass.data(),
                                                                .drop = drop,
                                                                .stream_gradient = to_stream.data(),
                                                                .branch_gradient = to_branch.data()});
                } else {
                    cuda::residual_add_forward<policy<T>>(
                        q, {.rows = s.rows, .width = s.width, .stream = stream.data(), .branch = branch.data(), .drop = drop, .output = residual.data()});
                    cuda::layer_norm_forward<policy<T>>(q, {.rows = s.rows,
                                                            .width = s.width,
                                                            .input = residual.data(),
                                                            .gamma = gamma.data(),
                                                            .beta = beta.data(),
                                                            .output = y.data(),
                                                            .mean = mean.data(),
                                                            .rstd = rstd.data()});
                    cuda::layer_norm_backward_input<policy<T>>(q, {.rows = s.rows,
                                                                   .width = s.width,
                                                                   .input = residual.data(),
                                                                   .gamma = gamma.data(),
                                                                   .mean = mean.data(),
                                                                   .rstd = rstd.data(),
                                                                   .output_gradient = dy.data(),
                                                                   .bypass_gradient = bypass.data(),
                                                                   .input_gradient = to_stream.data()});
                    cuda::residual_add_backward<policy<T>>(
                        q, {.rows = s.rows, .width = s.width, .output_gradient = to_stream.data(), .drop = drop, .branch_gradient = to_branch.data()});
                }
                for (auto const* a : {&stream, &branch, &gamma, &beta, &dy, &bypass, &residual, &y, &to_stream, &to_branch}) {
                    CHECK(a->margins_kept());
                }
                return all_bits(residual.host(), y.host(), to_stream.host(), to_branch.host(), mean.host(), rstd.host());
            };
            auto const parts = run(false, 0);
            CHECK(same_in_every_order([&] { return run(true, 0); }) == parts);
            CHECK(run(true, 1) == parts);
        }
    }
}

TEMPLATE_TEST_CASE("cuda residual rms norm: one pass has the bits of two", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : shapes) {
        inputs<T> const in{s};
        std::int64_t const count = s.rows * s.width;
        for (auto const& drop : drops(s.rows)) {
            INFO(s.rows << " x " << s.width << ", p = " << drop.probability);
            auto const run = [&](bool fused, std::size_t offset) {
                device::array<T> const stream{in.stream, offset}, branch{in.branch}, gamma{in.gamma}, dy{in.dy}, bypass{in.bypass}, residual{count}, y{count},
                    to_stream{count}, to_branch{count};
                device::array<float> const rstd{s.rows};
                auto const q = device::queue();
                if (fused) {
                    cuda::residual_rms_norm_forward<policy<T>>(q, {.rows = s.rows,
                                                                   .width = s.width,
                                                                   .stream = stream.data(),
                                                                   .branch = branch.data(),
                                                                   .drop = drop,
                                                                   .gamma = gamma.data(),
                                                                   .residual = residual.data(),
                                                                   .output = y.data(),
                                                                   .rstd = rstd.data()});
                    cuda::residual_rms_norm_backward<policy<T>>(q, {.rows = s.rows,
                                                                    .width = s.width,
                                                                    .residual = residual.data(),
                                                                    .gamma = gamma.data(),
                                                                    .rstd = rstd.data(),
                                                                    .output_gradient = dy.data(),
                                                                    .bypass_gradient = bypass.data(),
                                                                    .drop = drop,
                                                                    .stream_gradient = to_stream.data(),
                                                                    .branch_gradient = to_branch.data()});
                } else {
                    cuda::residual_add_forward<policy<T>>(
                        q, {.rows = s.rows, .width = s.width, .stream = stream.data(), .branch = branch.data(), .drop = drop, .output = residual.data()});
                    cuda::rms_norm_forward<policy<T>>(
                        q, {.rows = s.rows, .width = s.width, .input = residual.data(), .gamma = gamma.data(), .output = y.data(), .rstd = rstd.data()});
                    cuda::rms_norm_backward_input<policy<T>>(q, {.rows = s.rows,
                                                                 .width = s.width,
                                                                 .input = residual.data(),
                                                                 .gamma = gamma.data(),
                                                                 .rstd = rstd.data(),
                                                                 .output_gradient = dy.data(),
                                                                 .bypass_gradient = bypass.data(),
                                                                 .input_gradient = to_stream.data()});
                    cuda::residual_add_backward<policy<T>>(
                        q, {.rows = s.rows, .width = s.width, .output_gradient = to_stream.data(), .drop = drop, .branch_gradient = to_branch.data()});
                }
                for (auto const* a : {&stream, &branch, &gamma, &dy, &bypass, &residual, &y, &to_stream, &to_branch}) {
                    CHECK(a->margins_kept());
                }
                return all_bits(residual.host(), y.host(), to_stream.host(), to_branch.host(), rstd.host());
            };
            auto const parts = run(false, 0);
            CHECK(same_in_every_order([&] { return run(true, 0); }) == parts);
            CHECK(run(true, 1) == parts);
        }
    }
}
