// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw/adamw.hpp"

#include <cstring>

#include "kernels/detail/tile_ranges.hpp"

namespace rheo::inline v0::host {

using namespace detail;

void adamw(tile_pool& pool, adamw_arguments<> const& a)
{
    expects(a.settings.step >= 1, "the steps of the optimizer count from 1");
    auto const scalars = definition::scalars_of(a.settings.beta1, a.settings.beta2, a.settings.step);
    adamw_step const step{.multiplier = static_cast<float>(a.settings.gradient_multiplier),
                          .beta1 = static_cast<float>(a.settings.beta1),
                          .one_less_beta1 = static_cast<float>(1 - a.settings.beta1),
                          .beta2 = static_cast<float>(a.settings.beta2),
                          .one_less_beta2 = static_cast<float>(1 - a.settings.beta2),
                          .correction1 = static_cast<float>(scalars.correction1),
                          .correction2 = static_cast<float>(scalars.correction2),
                          .epsilon = static_cast<float>(a.settings.epsilon),
                          .decay = static_cast<float>(a.weight_decay),
                          .rate = static_cast<float>(a.settings.learning_rate)};
    pool.run(tiles_in(a.count, element_tile), [&](std::int64_t t, int) {
        auto const range = range_of(t, element_tile, a.count);
        loops().adamw(range.count, step, a.gradient + range.begin, a.first_moment + range.begin, a.second_moment + range.begin, a.master + range.begin);
        if (a.parameter != nullptr && a.parameter != a.master) {
            std::memcpy(a.parameter + range.begin, a.master + range.begin, static_cast<std::size_t>(range.count) * sizeof(float));
        }
    });
}

double sum_of_squares(tile_pool& pool, gradient_norm_arguments const& a)
{
    std::int64_t const blocks = tiles_in(a.count, norm_block);
    double* const sums = pool.scratch_of<double>(0, blocks, order_slot);
    constexpr std::int64_t together = 16;
    pool.run(tiles_in(blocks, together), [&](std::int64_t t, int) {
        auto const some = range_of(t, together, blocks);
        for (std::int64_t b = some.begin; b < some.begin + some.count; ++b) {
            auto const range = range_of(b, norm_block, a.count);
            sums[b] = loops().sum_of_squares(range.count, a.gradient + range.begin);
        }
    });
    double total = 0;
    for (std::int64_t b = 0; b < blocks; ++b) {
        total += sums[b];
    }
    return total;
}

}  // namespace rheo::inline v0::host
