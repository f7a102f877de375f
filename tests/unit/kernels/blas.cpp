// SPDX-License-Identifier: Apache-2.0
#include "kernels/blas.hpp"

#include "support.hpp"

using namespace rheo;

TEST_CASE("blas: OpenBLAS uses the chosen core type")
{
    INFO(blas_description());
    CHECK_FALSE(blas_core_type().empty());
    if (std::getenv("OPENBLAS_CORETYPE") == nullptr && !blas_core_type_for_this_cpu().empty()) {
        CHECK(blas_core_type() == blas_core_type_for_this_cpu());
        CHECK_NOTHROW(open_blas(blas_core_type_for_this_cpu()));
    }
    CHECK_NOTHROW(open_blas(""));
    CHECK_NOTHROW(open_blas(blas_core_type()));
    CHECK_THROWS_AS(open_blas("Prescott2"), blas_error);
    CHECK(std::getenv("OPENBLAS_NUM_THREADS") == nullptr);
}

TEST_CASE("blas: sgemm is the product that its arguments say")
{
    std::int64_t const m = 5;
    std::int64_t const n = 7;
    std::int64_t const k = 9;
    for (bool const ta : {false, true}) {
        for (bool const tb : {false, true}) {
            auto const a = support::normal(m * k, 1);
            auto const b = support::normal(k * n, 2);
            auto c = support::normal(m * n, 3);
            support::doubles expected;
            support::doubles bound;
            for (std::int64_t i = 0; i < m; ++i) {
                for (std::int64_t j = 0; j < n; ++j) {
                    double sum = 0.5 * static_cast<double>(c[support::size(i * n + j)]);
                    double size = std::fabs(sum);
                    for (std::int64_t l = 0; l < k; ++l) {
                        double const term = 2.0 * static_cast<double>(a[support::size(ta ? l * m + i : i * k + l)]) *
                                            static_cast<double>(b[support::size(tb ? j * k + l : l * n + j)]);
                        sum += term;
                        size += std::fabs(term);
                    }
                    expected.push_back(sum);
                    bound.push_back(static_cast<double>(k + 3) * support::u * size);  // k products and sums, scale, beta
                }
            }
            sgemm({.m = m,
                   .n = n,
                   .k = k,
                   .a_is = transposed{ta},
                   .b_is = transposed{tb},
                   .a = a.data(),
                   .a_row = ta ? m : k,
                   .b = b.data(),
                   .b_row = tb ? k : n,
                   .beta = 0.5F,
                   .c = c.data(),
                   .c_row = n,
                   .alpha = 2.0F});
            support::check_within(c, expected, bound);
        }
    }
}
