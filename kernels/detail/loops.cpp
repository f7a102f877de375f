// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set level: RHEO_LOOP_LEVEL names it. Everything here has internal linkage and
// nothing from the standard library is instantiated, or the linker could give one level's code to another.
#include "kernels/detail/loops.hpp"

#include <string.h>

namespace rheo::inline v0::detail {
namespace {

// Sixteen lanes, on every processor; narrower ones take several registers for them.
using lanes = float __attribute__((vector_size(64)));
using int_lanes = std::int32_t __attribute__((vector_size(64)));
using double_lanes = double __attribute__((vector_size(64)));
constexpr count_t width = 16;

#define RHEO_INLINE static inline __attribute__((always_inline))
// An output that is an input, element for element, is no dependence between iterations; the compiler cannot know.
#if defined(__clang__)
#define RHEO_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define RHEO_INDEPENDENT _Pragma("GCC ivdep")
#endif

RHEO_INLINE lanes load(float const* p)
{
    lanes v;
    memcpy(&v, p, sizeof v);
    return v;
}

RHEO_INLINE void store(float* p, lanes v) { memcpy(p, &v, sizeof v); }

RHEO_INLINE lanes all(float value) { return lanes{} + value; }

/// The last n < 16 elements; the other lanes hold `rest`.
RHEO_INLINE lanes load_part(float const* p, count_t n, float rest)
{
    lanes v = all(rest);
    memcpy(&v, p, static_cast<size_t>(n) * sizeof(float));
    return v;
}

RHEO_INLINE void store_part(float* p, count_t n, lanes v) { memcpy(p, &v, static_cast<size_t>(n) * sizeof(float)); }

/// Lane l and lane l + 8, then 4, 2, 1.
RHEO_INLINE float fold_sum(lanes v)
{
    float a[16];
    memcpy(a, &v, sizeof v);
    for (int half = 8; half > 0; half /= 2) {
        for (int l = 0; l < half; ++l) {
            a[l] += a[l + half];
        }
    }
    return a[0];
}

RHEO_INLINE float fold_max(lanes v)
{
    float a[16];
    memcpy(a, &v, sizeof v);
    for (int l = 1; l < 16; ++l) {
        a[0] = a[l] > a[0] ? a[l] : a[0];
    }
    return a[0];
}

/// e^x: x = n ln2 + r with |r| <= ln2 / 2, polynomial of Cephes's expf. Relative error below 3e-7 for -87.33 < x <= 88;
/// zero below, e^88 above; not-a-number stays.
RHEO_INLINE lanes exp_of(lanes x)
{
    x = x > 88.0F ? all(88.0F) : x;
    int_lanes const vanishes = x < -87.33F;
    lanes const shifted = x * 1.44269504F + 12582912.0F;  // 1.5 * 2^23: the low bits are now n
    lanes const n = shifted - 12582912.0F;
    lanes const r = (x - n * 0.693359375F) - n * -2.12194440e-4F;
    lanes p = r * 1.9875691500e-4F + 1.3981999507e-3F;
    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * (r * r) + r + 1.0F;
    using uint_lanes = std::uint32_t __attribute__((vector_size(64)));
    auto const power = (reinterpret_cast<uint_lanes>(shifted) << 23) + 0x3f800000U;
    return vanishes ? all(0.0F) : p * reinterpret_cast<lanes>(power);
}

/// With u = 2 sqrt(2/pi) (x + 0.044715 x^3): gelu(x) = x / (1 + e^-u), since (1 + tanh(u/2)) / 2 = 1 / (1 + e^-u).
RHEO_INLINE lanes gelu_of(lanes x)
{
    lanes const u = 1.5957691216F * (x + 0.044715F * x * x * x);
    return x / (1.0F + exp_of(-u));
}

RHEO_INLINE lanes gelu_derivative_of(lanes x)
{
    lanes const u = 1.5957691216F * (x + 0.044715F * x * x * x);
    lanes const e = exp_of(-u);
    lanes const s = 1.0F / (1.0F + e);
    lanes const slope = 1.5957691216F * (1.0F + 0.134145F * x * x);
    // s (1 - s) = e s^2, in an order in which e s <= 1 is formed first
    return s + x * slope * ((e * s) * s);
}

// -- elementwise

void add(count_t n, float const* a, float const* b, float* out)
{
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        out[i] = a[i] + b[i];
    }
}

void add_gelu(count_t n, float const* bias, float* x, float* activated)
{
    count_t i = 0;
    for (; i + width <= n; i += width) {
        lanes v = load(x + i);
        v = bias != nullptr ? v + load(bias + i) : v;
        store(x + i, v);
        store(activated + i, gelu_of(v));
    }
    if (i < n) {
        lanes v = load_part(x + i, n - i, 0);
        v = bias != nullptr ? v + load_part(bias + i, n - i, 0) : v;
        store_part(x + i, n - i, v);
        store_part(activated + i, n - i, gelu_of(v));
    }
}

void gelu(count_t n, float const* x, float* y)
{
    count_t i = 0;
    for (; i + width <= n; i += width) {
        store(y + i, gelu_of(load(x + i)));
    }
    if (i < n) {
        store_part(y + i, n - i, gelu_of(load_part(x + i, n - i, 0)));
    }
}

void gelu_backward(count_t n, float const* x, float const* dy, float* dx)
{
    count_t i = 0;
    for (; i + width <= n; i += width) {
        store(dx + i, load(dy + i) * gelu_derivative_of(load(x + i)));
    }
    if (i < n) {
        store_part(dx + i, n - i, load_part(dy + i, n - i, 0) * gelu_derivative_of(load_part(x + i, n - i, 0)));
    }
}

void drop(count_t n, float const* x, drop_rule const& rule, float* y)
{
    auto const threshold = rule.threshold;
    auto const scale = rule.scale;
    auto const* words = rule.words;
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        y[i] = x[i] * (words[i] < threshold ? 0.0F : scale);
    }
}

void add_dropped(count_t n, float const* stream, float const* branch, drop_rule const& rule, float* out)
{
    auto const threshold = rule.threshold;
    auto const scale = rule.scale;
    auto const* words = rule.words;
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        out[i] = stream[i] + branch[i] * (words[i] < threshold ? 0.0F : scale);
    }
}

// -- random words

void random_strips(stream_parts const& stream, std::uint64_t first_strip, count_t strips, std::uint32_t* words)
{
    for (count_t s = 0; s < strips; ++s) {
        std::uint64_t const first = (first_strip + static_cast<std::uint64_t>(s)) * 16;
        std::uint32_t c0[16];
        std::uint32_t c1[16];
        std::uint32_t c2[16];
        std::uint32_t c3[16];
        for (std::uint32_t l = 0; l < 16; ++l) {
            c0[l] = static_cast<std::uint32_t>(first) + l;  // first is a multiple of 16: no carry
            c1[l] = static_cast<std::uint32_t>(first >> 32);
            c2[l] = stream.high[0];
            c3[l] = stream.high[1];
        }
        std::uint32_t k0 = stream.key[0];
        std::uint32_t k1 = stream.key[1];
        for (int round = 0; round < 10; ++round) {
            for (int l = 0; l < 16; ++l) {
                std::uint64_t const a = std::uint64_t{0xD2511F53U} * c0[l];
                std::uint64_t const b = std::uint64_t{0xCD9E8D57U} * c2[l];
                c0[l] = static_cast<std::uint32_t>(b >> 32) ^ c1[l] ^ k0;
                c1[l] = static_cast<std::uint32_t>(b);
                c2[l] = static_cast<std::uint32_t>(a >> 32) ^ c3[l] ^ k1;
                c3[l] = static_cast<std::uint32_t>(a);
            }
            k0 += 0x9E3779B9U;
            k1 += 0xBB67AE85U;
        }
        memcpy(words + s * 64, c0, sizeof c0);
        memcpy(words + s * 64 + 16, c1, sizeof c1);
        memcpy(words + s * 64 + 32, c2, sizeof c2);
        memcpy(words + s * 64 + 48, c3, sizeof c3);
    }
}

// -- rows

float dot(count_t n, float const* a, float const* b)
{
    lanes s0{};
    lanes s1{};
    count_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width) {
        s0 += load(a + i) * load(b + i);
        s1 += load(a + i + width) * load(b + i + width);
    }
    for (; i + width <= n; i += width) {
        s0 += load(a + i) * load(b + i);
    }
    if (i < n) {
        s1 += load_part(a + i, n - i, 0) * load_part(b + i, n - i, 0);
    }
    return fold_sum(s0 + s1);
}

RHEO_INLINE float row_sum(count_t n, float const* x)
{
    lanes s0{};
    lanes s1{};
    lanes s2{};
    lanes s3{};
    count_t i = 0;
    for (; i + 4 * width <= n; i += 4 * width) {
        s0 += load(x + i);
        s1 += load(x + i + width);
        s2 += load(x + i + 2 * width);
        s3 += load(x + i + 3 * width);
    }
    for (; i + width <= n; i += width) {
        s0 += load(x + i);
    }
    if (i < n) {
        s1 += load_part(x + i, n - i, 0);
    }
    return fold_sum((s0 + s1) + (s2 + s3));
}

RHEO_INLINE float row_squares(count_t n, float const* x, float mean)
{
    lanes s0{};
    lanes s1{};
    lanes s2{};
    lanes s3{};
    count_t i = 0;
    for (; i + 4 * width <= n; i += 4 * width) {
        lanes const a = load(x + i) - mean;
        lanes const b = load(x + i + width) - mean;
        lanes const c = load(x + i + 2 * width) - mean;
        lanes const d = load(x + i + 3 * width) - mean;
        s0 += a * a;
        s1 += b * b;
        s2 += c * c;
        s3 += d * d;
    }
    for (; i + width <= n; i += width) {
        lanes const a = load(x + i) - mean;
        s0 += a * a;
    }
    if (i < n) {
        lanes const a = load_part(x + i, n - i, mean) - mean;
        s1 += a * a;
    }
    return fold_sum((s0 + s1) + (s2 + s3));
}

void norm_forward(count_t n, float epsilon, float const* x, float const* gamma, float const* beta, float* y,
                  float* mean, float* rstd)
{
    float const m = row_sum(n, x) / static_cast<float>(n);
    float const r = 1.0F / __builtin_sqrtf(row_squares(n, x, m) / static_cast<float>(n) + epsilon);
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        y[i] = (x[i] - m) * r * gamma[i] + beta[i];
    }
    *mean = m;
    *rstd = r;
}

void norm_backward(count_t n, float const* x, float const* gamma, float mean, float rstd, float const* dy,
                   float const* bypass, float* dx)
{
    lanes s0{};
    lanes s1{};
    lanes p0{};
    lanes p1{};
    count_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width) {
        lanes const a = load(gamma + i) * load(dy + i);
        lanes const b = load(gamma + i + width) * load(dy + i + width);
        s0 += a;
        s1 += b;
        p0 += a * ((load(x + i) - mean) * rstd);
        p1 += b * ((load(x + i + width) - mean) * rstd);
    }
    for (; i < n; i += width) {
        count_t const part = n - i < width ? n - i : width;
        lanes const a = load_part(gamma + i, part, 0) * load_part(dy + i, part, 0);
        s0 += a;
        p0 += a * ((load_part(x + i, part, mean) - mean) * rstd);
    }
    float const sum = fold_sum(s0 + s1) / static_cast<float>(n);
    float const projected = fold_sum(p0 + p1) / static_cast<float>(n);
    if (bypass == nullptr) {
        RHEO_INDEPENDENT
        for (i = 0; i < n; ++i) {
            dx[i] = (gamma[i] * dy[i] - sum - (x[i] - mean) * rstd * projected) * rstd;
        }
    } else {
        RHEO_INDEPENDENT
        for (i = 0; i < n; ++i) {
            dx[i] = (gamma[i] * dy[i] - sum - (x[i] - mean) * rstd * projected) * rstd + bypass[i];
        }
    }
}

// -- columns: blocks of 32 rows are summed first, then the blocks in order

constexpr count_t row_block = 32;

void column_sums(count_t rows, count_t n, count_t row_size, float const* dy, float* out)
{
    float total[64] = {};
    for (count_t begin = 0; begin < rows; begin += row_block) {
        count_t const end = rows - begin < row_block ? rows : begin + row_block;
        lanes s[4] = {};
        for (count_t r = begin; r < end; ++r) {
            float const* row = dy + r * row_size;
            if (n == 64) {
                s[0] += load(row);
                s[1] += load(row + width);
                s[2] += load(row + 2 * width);
                s[3] += load(row + 3 * width);
            } else {
                for (count_t c = 0; c < n; c += width) {
                    s[c / width] += load_part(row + c, n - c < width ? n - c : width, 0);
                }
            }
        }
        float block[64];
        memcpy(block, s, sizeof s);
        for (int c = 0; c < 64; ++c) {
            total[c] += block[c];
        }
    }
    memcpy(out, total, static_cast<size_t>(n) * sizeof(float));
}

void norm_column_sums(count_t rows, count_t n, count_t row_size, float const* x, float const* mean, float const* rstd,
                      float const* dy, float* gamma, float* beta)
{
    float total_gamma[64] = {};
    float total_beta[64] = {};
    for (count_t begin = 0; begin < rows; begin += row_block) {
        count_t const end = rows - begin < row_block ? rows : begin + row_block;
        lanes g[4] = {};
        lanes b[4] = {};
        for (count_t r = begin; r < end; ++r) {
            float const m = mean[r];
            float const s = rstd[r];
            for (count_t c = 0; c < n; c += width) {
                count_t const at = r * row_size + c;
                bool const whole = n - c >= width;
                lanes const d = whole ? load(dy + at) : load_part(dy + at, n - c, 0);
                lanes const v = whole ? load(x + at) : load_part(x + at, n - c, 0);
                g[c / width] += d * ((v - m) * s);
                b[c / width] += d;
            }
        }
        float block[64];
        memcpy(block, g, sizeof g);
        for (int c = 0; c < 64; ++c) {
            total_gamma[c] += block[c];
        }
        memcpy(block, b, sizeof b);
        for (int c = 0; c < 64; ++c) {
            total_beta[c] += block[c];
        }
    }
    memcpy(gamma, total_gamma, static_cast<size_t>(n) * sizeof(float));
    memcpy(beta, total_beta, static_cast<size_t>(n) * sizeof(float));
}

// -- logarithm, sine: sums and products in double

/// ln x for normal x > 0: x = m 2^e, sqrt(1/2) <= m < sqrt(2), ln m = 2 atanh((m-1)/(m+1)) by its series. Error below 4e-16
/// of the larger of 1 and |ln x|.
RHEO_INLINE double log_of(double x)
{
    std::uint64_t bits;
    memcpy(&bits, &x, sizeof x);
    // Adding (1 - sqrt(1/2))'s bits carries into the exponent exactly when the mantissa exceeds sqrt(2).
    std::uint64_t const shifted = bits + (0x3ff0000000000000U - 0x3fe6a09e667f3bcdU);
    std::uint64_t const exponent = shifted >> 52;  // biased
    std::uint64_t const mantissa = (shifted & 0x000fffffffffffffU) + 0x3fe6a09e667f3bcdU;
    std::uint64_t const whole = exponent | 0x4330000000000000U;  // 2^52 + exponent, as a double
    double e;
    double m;
    memcpy(&e, &whole, sizeof e);
    memcpy(&m, &mantissa, sizeof m);
    e -= 4503599627370496.0 + 1023.0;
    double const s = (m - 1.0) / (m + 1.0);
    double const q = s * s;
    double p = 1.0 / 23.0;
    p = p * q + 1.0 / 21.0;
    p = p * q + 1.0 / 19.0;
    p = p * q + 1.0 / 17.0;
    p = p * q + 1.0 / 15.0;
    p = p * q + 1.0 / 13.0;
    p = p * q + 1.0 / 11.0;
    p = p * q + 1.0 / 9.0;
    p = p * q + 1.0 / 7.0;
    p = p * q + 1.0 / 5.0;
    p = p * q + 1.0 / 3.0;
    double const log_m = 2.0 * s + 2.0 * s * (q * p);
    return e * 6.93147180369123816490e-01 + (log_m + e * 1.90821492927058770002e-10);
}

/// cos(2 pi word / 2^32): folded to sin(y), |y| <= pi/2, Taylor to y^21. Error below 1e-15.
RHEO_INLINE double cos_of_turn(std::uint32_t word)
{
    double f = static_cast<double>(static_cast<std::int32_t>(word ^ 0x80000000U)) * (1.0 / 4294967296.0);  // turn - 1/2
    f = f < 0 ? -f : f;
    double const y = (0.25 - f) * 6.283185307179586476925;
    double const q = y * y;
    // Horner, from y^21 down; signs alternate
    double h = 1.0 / 51090942171709440000.0;
    h = h * q - 1.0 / 121645100408832000.0;
    h = h * q + 1.0 / 355687428096000.0;
    h = h * q - 1.0 / 1307674368000.0;
    h = h * q + 1.0 / 6227020800.0;
    h = h * q - 1.0 / 39916800.0;
    h = h * q + 1.0 / 362880.0;
    h = h * q - 1.0 / 5040.0;
    h = h * q + 1.0 / 120.0;
    h = h * q - 1.0 / 6.0;
    return -(y + y * (q * h));
}

// -- softmax

RHEO_INLINE float row_max(count_t n, float const* x)
{
    lanes m0 = all(-__builtin_inff());
    lanes m1 = m0;
    count_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width) {
        lanes const a = load(x + i);
        lanes const b = load(x + i + width);
        m0 = a > m0 ? a : m0;
        m1 = b > m1 ? b : m1;
    }
    for (; i < n; i += width) {
        lanes const a = load_part(x + i, n - i < width ? n - i : width, -__builtin_inff());
        m0 = a > m0 ? a : m0;
    }
    return fold_max(m0 > m1 ? m0 : m1);
}

float softmax(count_t n, float scale, float* s)
{
    float const largest = row_max(n, s) * scale;
    lanes sum{};
    count_t i = 0;
    for (; i + width <= n; i += width) {
        lanes const e = exp_of(load(s + i) * scale - largest);
        store(s + i, e);
        sum += e;
    }
    if (i < n) {
        lanes const e = exp_of(load_part(s + i, n - i, -__builtin_inff()) * scale - largest);
        store_part(s + i, n - i, e);
        sum += e;
    }
    float const total = fold_sum(sum);
    float const inverse = 1.0F / total;
    for (i = 0; i < n; ++i) {
        s[i] *= inverse;
    }
    // total is at least 1 unless something was not finite, and then not-a-number has to come out
    return total >= 1.0F ? static_cast<float>(static_cast<double>(largest) + log_of(static_cast<double>(total)))
                         : __builtin_nanf("");
}

void probabilities(count_t n, float scale, float log_sum, float* s)
{
    count_t i = 0;
    for (; i + width <= n; i += width) {
        store(s + i, exp_of(load(s + i) * scale - log_sum));
    }
    if (i < n) {
        store_part(s + i, n - i, exp_of(load_part(s + i, n - i, 0) * scale - log_sum));
    }
}

void score_gradient(count_t n, float const* p, float mean, float scale, float* dp)
{
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        dp[i] = p[i] * (dp[i] - mean) * scale;
    }
}

/// Blocks of 1024 exponentials are summed in float, the blocks in double: the error does not grow with the row.
double log_sum_exp(count_t n, float const* x)
{
    float const largest = row_max(n, x);
    double total = 0;
    for (count_t begin = 0; begin < n; begin += 1024) {
        count_t const end = n - begin < 1024 ? n : begin + 1024;
        lanes s0{};
        lanes s1{};
        count_t i = begin;
        for (; i + 2 * width <= end; i += 2 * width) {
            s0 += exp_of(load(x + i) - largest);
            s1 += exp_of(load(x + i + width) - largest);
        }
        for (; i < end; i += width) {
            s0 += exp_of(load_part(x + i, end - i < width ? end - i : width, -__builtin_inff()) - largest);
        }
        total += static_cast<double>(fold_sum(s0 + s1));
    }
    // total is at least 1 unless something was not finite, and then not-a-number has to come out
    return total >= 1.0 ? static_cast<double>(largest) + log_of(total) : static_cast<double>(__builtin_nanf(""));
}

void exp_minus(count_t n, float const* x, float shift, float* y)
{
    count_t i = 0;
    for (; i + width <= n; i += width) {
        store(y + i, exp_of(load(x + i) - shift));
    }
    if (i < n) {
        store_part(y + i, n - i, exp_of(load_part(x + i, n - i, 0) - shift));
    }
}

// -- exact sums

std::uint32_t largest_magnitude(count_t n, float const* g)
{
    int_lanes m0{};
    int_lanes m1{};
    int_lanes const mask = int_lanes{} + 0x7fffffff;
    count_t i = 0;
    for (; i + 2 * width <= n; i += 2 * width) {
        int_lanes const a = reinterpret_cast<int_lanes>(load(g + i)) & mask;
        int_lanes const b = reinterpret_cast<int_lanes>(load(g + i + width)) & mask;
        m0 = a > m0 ? a : m0;
        m1 = b > m1 ? b : m1;
    }
    for (; i < n; i += width) {
        int_lanes const a = reinterpret_cast<int_lanes>(load_part(g + i, n - i < width ? n - i : width, 0)) & mask;
        m0 = a > m0 ? a : m0;
    }
    m0 = m0 > m1 ? m0 : m1;
    std::int32_t lane[16];
    memcpy(lane, &m0, sizeof m0);
    for (int l = 1; l < 16; ++l) {
        lane[0] = lane[l] > lane[0] ? lane[l] : lane[0];
    }
    return static_cast<std::uint32_t>(lane[0]);
}

void add_fixed(count_t n, float const* g, double scale, std::int64_t* sums)
{
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        double const shifted = static_cast<double>(g[i]) * scale + 6755399441055744.0;  // 1.5 * 2^52
        std::int64_t bits;
        memcpy(&bits, &shifted, sizeof bits);
        sums[i] += bits - 0x4338000000000000;
    }
}

void add_integers(count_t n, std::int64_t const* source, std::int64_t* target)
{
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        target[i] += source[i];
    }
}

void to_floats(count_t n, std::int64_t const* sums, double scale, float* out)
{
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        out[i] = static_cast<float>(static_cast<double>(sums[i]) * scale);
    }
}

// -- optimizer and initial values

void adamw(count_t n, adamw_step const& step, float const* gradient, float* m, float* v, float* master)
{
    adamw_step const s = step;
    RHEO_INDEPENDENT
    for (count_t i = 0; i < n; ++i) {
        float const g = gradient[i] * s.multiplier;
        float const first = s.beta1 * m[i] + s.one_less_beta1 * g;
        float const second = s.beta2 * v[i] + s.one_less_beta2 * (g * g);
        float const change = first * s.correction1 / (__builtin_sqrtf(second * s.correction2) + s.epsilon) + s.decay * master[i];
        m[i] = first;
        v[i] = second;
        master[i] -= s.rate * change;
    }
}

double sum_of_squares(count_t n, float const* g)
{
    double lane[16] = {};
    count_t i = 0;
    for (; i + width <= n; i += width) {
        for (int l = 0; l < 16; ++l) {
            double const x = static_cast<double>(g[i + l]);
            lane[l] += x * x;
        }
    }
    for (int l = 0; i < n; ++i, ++l) {
        double const x = static_cast<double>(g[i]);
        lane[l] += x * x;
    }
    for (int half = 8; half > 0; half /= 2) {
        for (int l = 0; l < half; ++l) {
            lane[l] += lane[l + half];
        }
    }
    return lane[0];
}

void normal_values(stream_parts const& stream, count_t first, count_t n, double mean, double deviation, float* out)
{
    // a strip of 64 words makes 32 elements: words 2 e and 2 e + 1 belong to element e
    for (count_t strip = first / 32; strip * 32 < first + n; ++strip) {
        std::uint32_t words[64];
        random_strips(stream, static_cast<std::uint64_t>(strip), 1, words);
        float values[32];
        for (int l = 0; l < 32; ++l) {
            double const u = (static_cast<double>(words[2 * l]) + 1.0) * (1.0 / 4294967296.0);
            values[l] = static_cast<float>(
                mean + deviation * (__builtin_sqrt(-2.0 * log_of(u)) * cos_of_turn(words[2 * l + 1])));
        }
        count_t const begin = strip * 32 < first ? first - strip * 32 : 0;
        count_t const end = strip * 32 + 32 > first + n ? first + n - strip * 32 : 32;
        memcpy(out + strip * 32 + begin - first, values + begin, static_cast<size_t>(end - begin) * sizeof(float));
    }
}

}  // namespace

#define RHEO_JOIN(a, b) a##b
#define RHEO_TABLE(level) RHEO_JOIN(loops_, level)
#define RHEO_TEXT(level) #level
#define RHEO_NAME(level) RHEO_TEXT(level)

extern loop_table const RHEO_TABLE(RHEO_LOOP_LEVEL);
loop_table const RHEO_TABLE(RHEO_LOOP_LEVEL){
    .level = RHEO_NAME(RHEO_LOOP_LEVEL),
    .add = add,
    .add_gelu = add_gelu,
    .gelu = gelu,
    .gelu_backward = gelu_backward,
    .drop = drop,
    .add_dropped = add_dropped,
    .random_strips = random_strips,
    .dot = dot,
    .norm_forward = norm_forward,
    .norm_backward = norm_backward,
    .column_sums = column_sums,
    .norm_column_sums = norm_column_sums,
    .softmax = softmax,
    .probabilities = probabilities,
    .score_gradient = score_gradient,
    .log_sum_exp = log_sum_exp,
    .exp_minus = exp_minus,
    .largest_magnitude = largest_magnitude,
    .add_fixed = add_fixed,
    .add_integers = add_integers,
    .to_floats = to_floats,
    .adamw = adamw,
    .sum_of_squares = sum_of_squares,
    .normal_values = normal_values,
};

}  // namespace rheo::inline v0::detail
