// SPDX-License-Identifier: Apache-2.0
// Pipeline templates are precomputed; that they cover every number of survivors is a theorem that
// the compiler checks, and what the survivors of a loss do is a pure function.
#include <cstdio>
#include <vector>

#include "rheo/pipeline/covers.hpp"
#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/plan_templates.hpp"

// With pipelines of 2 to 4 ranks, each number of ranks from 4 to 16 makes at least two of them: any one loss
// leaves a whole copy of the model. (With {2, 3} alone 7 ranks would still do; with {3, 4} 5 would not.)
constexpr int sizes[] = {2, 3, 4};
static_assert(rheo::covers(sizes, {.from = 4, .to = 16, .failures = 1}));

int main()
{
    // Eight layers, the last one twice as expensive: exactly optimal cuts for every size.
    std::vector<rheo::seconds> const layers{{1}, {1}, {1}, {1}, {1}, {1}, {1}, {2}};
    auto const ready = rheo::plan_templates(layers, {.from = 2, .to = 4});
    for (auto const& shape : ready.templates) {
        std::printf("%d ranks: cuts", size(shape));
        for (auto const cut : shape.cuts) {
            std::printf(" %d", cut.value);
        }
        std::printf("\n");
    }
    for (int ranks = 9; ranks >= 4; --ranks) {
        auto const chosen = rheo::instantiate(ready, {.ranks = ranks, .failures = 1, .microbatches = 16});
        std::printf("%d ranks:", ranks);
        for (std::size_t p = 0; p < chosen->sizes.size(); ++p) {
            std::printf(" %d (%d microbatches)", chosen->sizes[p], chosen->shares[p]);
        }
        std::printf("\n");
    }
}
