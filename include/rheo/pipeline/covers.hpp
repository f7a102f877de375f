#pragma once
// SPDX-License-Identifier: Apache-2.0

// The coverage theorem. N' ranks are covered when some choice of at least f + 1 templates takes all of
// them. For consecutive sizes n0 .. n_max that is so exactly when k = floor(N' / n0) has k >= f + 1 and
// N' <= k * n_max: k pipelines can have every total between k * n0 and k * n_max, and no other number of
// pipelines reaches further (after Oobleck, SOSP'23). Sets with holes are
// decided exactly, by the most templates that sum up to each total.

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "rheo/pipeline/template_set.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct coverage_request {
    int from;      ///< fewest ranks
    int to;        ///< most ranks, inclusive
    int failures;  ///< f: at least f + 1 pipelines

    friend constexpr bool operator==(coverage_request, coverage_request) = default;
};

struct coverage_verdict {
    int first_uncovered = 0;  ///< the least number of ranks in the range that is not covered; 0: all are
    int pipelines = 0;        ///< that were asked for

    friend constexpr bool operator==(coverage_verdict, coverage_verdict) = default;
    constexpr explicit operator bool() const { return first_uncovered == 0; }
};

/// True when some choice of at least `pipelines` of these sizes has exactly this total.
/// @pre sizes ascend strictly from 1. Cost: O(1) for consecutive sizes, else O(total x sizes).
template <class OnlyWhenCalled = void>
constexpr bool covers_total(array_view<int const> sizes, int total, int pipelines)
{
    expects(are_template_sizes(sizes), "template sizes must ascend strictly from 1 or more");
    if (sizes.empty() || total < sizes.front()) {
        return false;
    }
    if (sizes.back() - sizes.front() + 1 == static_cast<int>(sizes.size())) {
        auto const most = total / sizes.front();
        return most >= pipelines && total <= most * sizes.back();
    }
    std::vector<int> most(static_cast<std::size_t>(total) + 1, -1);  // templates that sum up to each total
    most[0] = 0;
    for (int sum = 1; sum <= total; ++sum) {
        for (auto const n : sizes) {
            if (n <= sum && most[static_cast<std::size_t>(sum - n)] >= 0) {
                most[static_cast<std::size_t>(sum)] = std::max(most[static_cast<std::size_t>(sum)], most[static_cast<std::size_t>(sum - n)] + 1);
            }
        }
    }
    return most.back() >= pipelines && most.back() > 0;
}

/// How many consecutive sizes from `smallest` on are necessary and sufficient to cover every number of ranks from (failures + 1) x
/// smallest on, without an upper bound. @pre smallest >= 1, failures >= 0
constexpr int sizes_needed(int smallest, int failures)
{
    expects(smallest >= 1, "a pipeline has at least one rank");
    expects(failures >= 0, "the number of failures to survive cannot be negative");
    return 1 + (smallest - 1 + failures) / (failures + 1);
}

/// The largest template that so many ranks can need when f + 1 pipelines are to be kept: with the sizes up to it, everything from
/// (failures + 1) x smallest up to `ranks` is covered. A model of fewer layers caps it, which covers() then judges.
/// @pre smallest >= 1, failures >= 0, ranks >= (failures + 1) x smallest
constexpr int largest_size(int ranks, int smallest, int failures)
{
    expects(smallest >= 1, "a pipeline has at least one rank");
    expects(failures >= 0, "the number of failures to survive cannot be negative");
    expects(ranks >= (failures + 1) * smallest, "these ranks do not make f + 1 pipelines of the smallest size");
    return ranks - failures * smallest;
}

/// Whether templates of these sizes cover every number of ranks in the range by at least f + 1 pipelines.
/// @pre sizes ascend strictly from 1; 1 <= from <= to; failures >= 0
template <class OnlyWhenCalled = void>
constexpr coverage_verdict covers(array_view<int const> sizes, coverage_request request)
{
    expects(are_template_sizes(sizes), "template sizes must ascend strictly from 1 or more");
    expects(1 <= request.from && request.from <= request.to, "a range of ranks must go from at least 1 upwards");
    expects(request.failures >= 0, "the number of failures to survive cannot be negative");
    for (int ranks = request.from; ranks <= request.to; ++ranks) {
        if (!covers_total(sizes, ranks, request.failures + 1)) {
            return {ranks, request.failures + 1};
        }
    }
    return {0, request.failures + 1};
}

/// The same for a set of templates.
template <class OnlyWhenCalled = void>
constexpr coverage_verdict covers(template_set_value const& ready, coverage_request request)
{
    auto const sizes = sizes_of(ready);
    return covers(array_view<int const>{sizes}, request);
}

/// The same for a type: a predicate of the compiler.
template <class Set>
constexpr coverage_verdict covers(coverage_request request)
{
    return covers(array_view<int const>{Set::sizes}, request);
}

/// The verdict as a sentence; empty when all is covered.
inline std::string to_string(coverage_verdict verdict)
{
    return verdict ? std::string{}
                   : std::to_string(verdict.first_uncovered) + " ranks cannot be covered by at least " + std::to_string(verdict.pipelines) +
                         " pipelines of these templates";
}

namespace detail {

template <int Ranks, int Pipelines>
struct ranks_covered_check {
    static_assert(Ranks == 0,
                  "rheo: this number of ranks (the check's first parameter) cannot be covered by at least this number of "
                  "pipelines (its second) of these templates");
    static constexpr bool passed = true;
};

template <coverage_verdict Verdict>
inline constexpr bool coverage_passed = ranks_covered_check<Verdict.first_uncovered, Verdict.pipelines>::passed;

}  // namespace detail

/// `static_assert(covered<set, coverage_request{.from = 4, .to = 16, .failures = 1}>)`: as covers, and
/// when it fails, the compiler's message is the sentence with the first number of ranks not covered.
template <class Set, coverage_request Request>
inline constexpr bool covered = detail::coverage_passed<covers<Set>(Request)>;

}  // namespace rheo::inline v0
