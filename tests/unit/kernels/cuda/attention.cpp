// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention_cudnn.hpp"

#include <memory>

#include "../attention_reference.hpp"
#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

struct shape {
    std::int64_t batch;
    std::int64_t length;  // of the whole sequence
    std::int64_t width;
    std::int64_t heads;
    std::int64_t kv_heads = 0;
    std::int64_t slices = 1;
    std::int64_t first_head = 0;
    std::int64_t all_heads = 0;

    std::int64_t part() const { return length / slices; }
};
// one token; heads that tensor cores take, up to 64 and up to 128 wide, in several blocks of queries and of keys, in groups; heads that they do not
// take, of odd widths and of the widest; slices of one token, and of more than a block
constexpr shape shapes[] = {{1, 1, 8, 1}, {2, 17, 32, 2},    {1, 150, 64, 1}, {1, 131, 72, 1},     {1, 70, 32, 4, 2},     {1, 68, 256, 2, 1},
                            {1, 5, 3, 1}, {2, 40, 30, 3, 1}, {1, 35, 256, 1}, {1, 4, 16, 2, 0, 4}, {1, 140, 32, 2, 1, 2}, {1, 66, 30, 3, 0, 3}};

dropout some_dropout(double p) { return {.probability = p, .key = {.seed = 6, .layer = layer_id{2}, .op = op_id{1}}}; }

template <class T>
struct outputs {
    std::vector<T> output, gradient;
    floats log_sum_exp;

    friend bool operator==(outputs const& a, outputs const& b)
    {
        return bits(single(a.output)) == bits(single(b.output)) && bits(single(a.gradient)) == bits(single(b.gradient)) &&
               bits(a.log_sum_exp) == bits(b.log_sum_exp);
    }
};

template <class T>
struct inputs {
    shape s;
    std::vector<T> qkv, dout;

    explicit inputs(shape of)
        : s{of}, qkv{stored<T>(normal(of.batch * of.length * qkv_columns(of), 1))}, dout{stored<T>(normal(of.batch * of.length * of.width, 2))}
    {
    }
};

/// Rows [b, first .. first + part) of a matrix [batch, length, columns], of slice n.
template <class T>
std::vector<T> cut(shape const& s, std::vector<T> const& whole, std::int64_t columns, std::int64_t n)
{
    std::vector<T> rows;
    for (std::int64_t b = 0; b < s.batch; ++b) {
        auto const from = whole.begin() + (b * s.length + n * s.part()) * columns;
        rows.insert(rows.end(), from, from + s.part() * columns);
    }
    return rows;
}

template <class T>
void paste(shape const& s, std::vector<T> const& rows, std::int64_t columns, std::int64_t n, std::int64_t inner, std::vector<T>& whole)
{
    // [batch, inner, length, columns], where inner is heads or one
    for (std::int64_t b = 0; b < s.batch * inner; ++b) {
        std::copy_n(rows.begin() + b * s.part() * columns, s.part() * columns, whole.begin() + (b * s.length + n * s.part()) * columns);
    }
}

/// Those of this device that take heads of this shape; the first, where none do.
template <class T>
std::vector<cuda::tensor_cores> cores_for(shape const& s)
{
    auto const head_width = s.width / s.heads;
    std::vector result{cuda::tensor_cores::of_warps};
    if (sizeof(T) == 2 && head_width % 8 == 0 && head_width <= 128 && cuda::has(cuda::tensor_cores::of_warpgroups)) {
        result.push_back(cuda::tensor_cores::of_warpgroups);
    }
    return result;
}

/// Forward over the slices up, backward down, and all of it put together. `offset`: elements before each matrix.
template <class T>
outputs<T> computed(inputs<T> const& in, dropout const& drop, cuda::tensor_cores by = cuda::tensor_cores::of_warps, std::size_t offset = 0)
{
    auto const& s = in.s;
    auto const columns = qkv_columns(s);
    auto const pairs = columns - s.width;  // of a row of keys and values
    std::int64_t const rows = s.batch * s.part();
    std::vector<std::unique_ptr<device::array<T>>> qkv, dout, out, gradient, kept;
    std::vector<std::unique_ptr<device::array<float>>> log_sum;
    outputs<T> result{std::vector<T>(in.dout.size()), std::vector<T>(in.qkv.size()), floats(size(s.batch * s.heads * s.length))};
    earlier_slices<T const> before{};
    earlier_slices<T> kept_before{};
    for (std::int64_t n = 0; n < s.slices; ++n) {
        qkv.push_back(std::make_unique<device::array<T>>(cut(s, in.qkv, columns, n), offset));
        dout.push_back(std::make_unique<device::array<T>>(cut(s, in.dout, s.width, n)));
        out.push_back(std::make_unique<device::array<T>>(rows * s.width));
        gradient.push_back(std::make_unique<device::array<T>>(rows * columns));
        kept.push_back(std::make_unique<device::array<T>>(rows * pairs));
        log_sum.push_back(std::make_unique<device::array<float>>(rows * s.heads));
        cuda::attention_forward<policy<T>>(device::queue(),
                                           {.batch = s.batch,
                                            .length = s.part(),
                                            .width = s.width,
                                            .heads = s.heads,
                                            .kv_heads = s.kv_heads,
                                            .qkv = qkv.back()->data(),
                                            .before = before,
                                            .whole = s.length,
                                            .drop = drop,
                                            .first_head = s.first_head,
                                            .all_heads = s.all_heads,
                                            .output = out.back()->data(),
                                            .log_sum_exp = log_sum.back()->data()},
                                           by);
        before.of[size(n)] = qkv.back()->data();
        kept_before.of[size(n)] = kept.back()->data();
        before.count = kept_before.count = n + 1;
    }
    device::scratch const scratch{cuda::attention_backward_workspace_bytes(s.batch, s.heads, s.part())};
    for (std::int64_t n = s.slices; n-- > 0;) {
        before.count = kept_before.count = n;
        cuda::attention_backward<policy<T>>(device::queue(), scratch,
                                            {.batch = s.batch,
                                             .length = s.part(),
                                             .width = s.width,
                                             .heads = s.heads,
                                             .kv_heads = s.kv_heads,
                                             .qkv = qkv[size(n)]->data(),
                                             .before = before,
                                             .whole = s.length,
                                             .output = out[size(n)]->data(),
                                             .log_sum_exp = log_sum[size(n)]->data(),
                                             .output_gradient = dout[size(n)]->data(),
                                             .drop = drop,
                                             .first_head = s.first_head,
                                             .all_heads = s.all_heads,
                                             .qkv_gradient = gradient[size(n)]->data(),
                                             .kv_gradient_later = n + 1 < s.slices ? kept[size(n)]->data() : nullptr,
                                             .kv_gradient_before = kept_before},
                                            by);
        paste(s, out[size(n)]->host(), s.width, n, 1, result.output);
        paste(s, gradient[size(n)]->host(), columns, n, 1, result.gradient);
        paste(s, log_sum[size(n)]->host(), 1, n, s.heads, result.log_sum_exp);
    }
    CHECK(scratch.counters_are_zero());
    for (auto const* some : {&qkv, &dout, &out, &gradient, &kept}) {
        for (auto const& a : *some) {
            CHECK(a->margins_kept());
        }
    }
    return result;
}

outputs<bfloat16> computed_by_cudnn(inputs<bfloat16> const& in, cuda::cudnn_attention& by)
{
    auto const& s = in.s;
    auto const rows = s.batch * s.length;
    device::array<bfloat16> const qkv{in.qkv}, dout{in.dout};
    device::array<bfloat16> out{rows * s.width}, gradient{rows * qkv_columns(s)};
    device::array<float> log_sum{rows * s.heads};
    device::scratch const scratch{by.choose({s.batch, s.length, s.heads, s.kv_heads == 0 ? s.heads : s.kv_heads, s.width / s.heads})};
    by.forward(device::queue(), scratch,
               {.batch = s.batch,
                .length = s.length,
                .width = s.width,
                .heads = s.heads,
                .kv_heads = s.kv_heads,
                .qkv = qkv.data(),
                .output = out.data(),
                .log_sum_exp = log_sum.data()});
    by.backward(device::queue(), scratch,
                {.batch = s.batch,
                 .length = s.length,
                 .width = s.width,
                 .heads = s.heads,
                 .kv_heads = s.kv_heads,
                 .qkv = qkv.data(),
                 .output = out.data(),
                 .log_sum_exp = log_sum.data(),
                 .output_gradient = dout.data(),
                 .qkv_gradient = gradient.data()});
    CHECK(scratch.counters_are_zero());
    CHECK((qkv.margins_kept() && dout.margins_kept() && out.margins_kept() && gradient.margins_kept()));
    return {out.host(), gradient.host(), log_sum.host()};
}

template <class T>
attention_reference reference(inputs<T> const& in, dropout const& drop)
{
    return {in.s, widened(in.qkv), widened(in.dout), drop};
}

}  // namespace

TEMPLATE_TEST_CASE("cuda attention: matches double, whole and sliced", "", float, bfloat16)
{
    using T = TestType;
    for (auto const& s : shapes) {
        for (double const p : {0.0, 0.2}) {
            if (sizeof(T) == 4 && s.length > 70) {
                continue;  // several blocks of tensor cores, which float does not run on
            }
            inputs<T> const in{s};
            auto const r = reference(in, some_dropout(p));
            for (auto const by : cores_for<T>(s)) {
                INFO(s.batch << " x " << s.length << " x " << s.width << " in " << s.heads << " heads, " << s.slices << " slices, dropout " << p
                             << (by == cuda::tensor_cores::of_warps ? "" : ", by warpgroups"));
                auto const all = [&] { return computed(in, some_dropout(p), by); };
                auto const c = p > 0 ? same_in_every_order(all) : all();
                // As for the host (tests/unit/kernels/attention.cpp): |v|, |dout| <= 5; a score is off by (d + 2) u 5 sqrt(d), a probability relatively by `relative`,
                // twice for the running maximum. In bfloat16 a probability is rounded before it weighs, and the output is when it is stored.
                double const d = static_cast<double>(s.width / s.heads);
                double const t = static_cast<double>(s.length);
                double const score = 2 * (d + 2) * u * 5 * std::sqrt(d);
                double const relative = 2 * score + 4e-7 + (t + 4) * u + (sizeof(T) == 2 ? roundoff<T> : 0);
                double const scale = 1 / (1 - p);
                check_within(single(c.output), r.output, 5 * scale * (relative + (t + 2) * u));
                check_within(c.log_sum_exp, r.log_sum_exp, score + 4e-7 + (t + 4) * u + 10 * u);
                // That bound for gradients is far from what errors really are, since it takes every value for the largest. Of the whole, three roundings of
                // 2^-9 meet in bfloat16 (of what weighs, of the output in the mean, and of the sum), and one more for each slice; in float the host's 1e-5.
                double const whole = sizeof(T) == 2 ? (3 + static_cast<double>(s.slices - 1)) * 0x1p-9 : 1e-5;
                CHECK(relative_error(single(c.gradient), r.gradient) < whole);
                CHECK(relative_error(single(c.output), r.output) < whole);
            }
        }
    }
}

TEMPLATE_TEST_CASE("cuda attention: causal, and sequences are separate", "", float, bfloat16)
{
    using T = TestType;
    for (shape const s : {shape{2, 80, 16, 1}, shape{2, 40, 30, 3}}) {
        inputs<T> in{s};
        auto const before = computed(in, some_dropout(0));
        auto const columns = qkv_columns(s);
        std::int64_t const changed = s.length - 7;  // a token of the first sequence
        for (std::int64_t c = 0; c < columns; ++c) {
            auto& v = in.qkv[size(changed * columns + c)];
            v = static_cast<T>(static_cast<float>(v) + 1.0F);
        }
        auto const after = computed(in, some_dropout(0));
        auto const same = [&](std::int64_t row) {
            return std::equal(before.output.begin() + row * s.width, before.output.begin() + (row + 1) * s.width, after.output.begin() + row * s.width,
                              [](T a, T b) { return static_cast<float>(a) == static_cast<float>(b); });
        };
        for (std::int64_t row = 0; row < s.batch * s.length; ++row) {
            CHECK(same(row) == (row < changed || row >= s.length));
        }
        for (std::int64_t row = s.length; row < 2 * s.length; ++row) {
            for (std::int64_t c = 0; c < columns; ++c) {
                auto const i = size(row * columns + c);
                CHECK(static_cast<float>(before.gradient[i]) == static_cast<float>(after.gradient[i]));
            }
        }
    }
}

TEMPLATE_TEST_CASE("cuda attention: heads alone have the bits of all", "", float, bfloat16)
{
    using T = TestType;
    for (std::int64_t const d : {8, 5}) {  // for tensor cores in bf16, and not
        shape const whole{2, 37, 6 * d, 6, 2};
        shape const part{2, 37, 3 * d, 3, 1, 1, 3, 6};
        inputs<T> const in{whole};
        inputs<T> own{part};
        auto const all = computed(in, some_dropout(0.2));
        // of rows of q, k, v: the last three heads of q, and the last of k and of v
        auto const of_part = [&](std::int64_t c) { return c < 3 * d ? 3 * d + c : 4 * d + c + (c < 4 * d ? 0 : d); };
        outputs<T> expected{std::vector<T>(own.dout.size()), std::vector<T>(own.qkv.size()), {}};
        for (std::int64_t i = 0; i < part.batch * part.length; ++i) {
            for (std::int64_t c = 0; c < 5 * d; ++c) {
                own.qkv[size(i * 5 * d + c)] = in.qkv[size(i * 10 * d + of_part(c))];
                expected.gradient[size(i * 5 * d + c)] = all.gradient[size(i * 10 * d + of_part(c))];
            }
            for (std::int64_t c = 0; c < 3 * d; ++c) {
                own.dout[size(i * 3 * d + c)] = in.dout[size(i * 6 * d + 3 * d + c)];
                expected.output[size(i * 3 * d + c)] = all.output[size(i * 6 * d + 3 * d + c)];
            }
        }
        for (std::int64_t b = 0; b < part.batch; ++b) {
            auto const from = all.log_sum_exp.begin() + (b * 6 + 3) * part.length;
            expected.log_sum_exp.insert(expected.log_sum_exp.end(), from, from + 3 * part.length);
        }
        CHECK(computed(own, some_dropout(0.2)) == expected);
    }
}

TEST_CASE("cuda attention: cuDNN matches double, deterministic")
{
    if (!cuda::has_cudnn()) {
        WARN("there is no cuDNN here, or no frontend when this was built");
        return;
    }
    for (auto const& s : shapes) {
        if (s.slices > 1 || s.length < 2 || s.width / s.heads % 8 != 0) {
            continue;
        }
        inputs<bfloat16> const in{s};
        auto const r = reference(in, some_dropout(0));
        for (auto const order : {cuda::order_of_sums::fixed, cuda::order_of_sums::any}) {
            INFO(s.batch << " x " << s.length << " x " << s.width << " in " << s.heads << " heads"
                         << (order == cuda::order_of_sums::fixed ? "" : ", in any order"));
            cuda::cudnn_attention by{order};
            auto const c = computed_by_cudnn(in, by);
            CHECK(relative_error(single(c.gradient), r.gradient) < 3 * 0x1p-9);
            CHECK(relative_error(single(c.output), r.output) < 3 * 0x1p-9);
            CHECK(relative_error(c.log_sum_exp, r.log_sum_exp) < 1e-5);
            if (order == cuda::order_of_sums::fixed) {
                CHECK(computed_by_cudnn(in, by) == c);
            }
        }
    }
}

TEST_CASE("cuda attention: any alignment; fallback without tensor cores")
{
    shape const s{1, 40, 32, 2};
    inputs<float> const in{s};
    CHECK(computed(in, some_dropout(0.1), cuda::tensor_cores::of_warps, 1) == computed(in, some_dropout(0.1)));
    inputs<bfloat16> const narrow{s};
    auto const r = reference(narrow, some_dropout(0.1));
    CHECK(relative_error(single(computed(narrow, some_dropout(0.1), cuda::tensor_cores::of_warps, 1).gradient), r.gradient) < 3 * 0x1p-9);
}

TEST_CASE("cuda attention: invalid arguments are rejected")
{
    using Catch::Matchers::ContainsSubstring;
    CHECK_THROWS_WITH(
        cuda::attention_forward<fp32>({}, {.batch = 1, .length = 1, .width = 5, .heads = 2, .qkv = nullptr, .output = nullptr, .log_sum_exp = nullptr}),
        ContainsSubstring("multiple of its heads"));
    CHECK_THROWS_WITH(
        cuda::attention_forward<bf16>({}, {.batch = 1, .length = 1, .width = 257, .heads = 1, .qkv = nullptr, .output = nullptr, .log_sum_exp = nullptr}),
        ContainsSubstring("at most 256 elements"));
    CHECK_THROWS_WITH(cuda::attention_backward<bf16>({}, {},
                                                     {.batch = 1,
                                                      .length = 1,
                                                      .width = 8,
                                                      .heads = 1,
                                                      .qkv = nullptr,
                                                      .output = nullptr,
                                                      .log_sum_exp = nullptr,
                                                      .output_gradient = nullptr,
                                                      .qkv_gradient = nullptr}),
                      ContainsSubstring("workspace is too small"));
    CHECK_THROWS_WITH(
        cuda::attention_forward<fp32>(
            {}, {.batch = 1, .length = 1, .width = 8, .heads = 2, .qkv = nullptr, .first_head = 3, .all_heads = 4, .output = nullptr, .log_sum_exp = nullptr}),
        ContainsSubstring("among those of the model"));
}
