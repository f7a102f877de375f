// SPDX-License-Identifier: Apache-2.0
// A layout of ranks that want elements which nobody has: no plan makes one of the other.
// expect: rheo: this layout does not become that one; the sentence in the parameter says why
// expect: no live rank holds this box
#include "rheo/reshard/layout_check.hpp"
#include "rheo/reshard/sub_collections.hpp"

template <int Dimension>
struct halves {
    static constexpr rheo::array_layout layout()
    {
        auto const parts = rheo::collect(rheo::tensor_id{0}, rheo::slices_of({6, 4}) | rheo::cut({.dimension = Dimension, .parts = 2}));
        auto result = rheo::on(rheo::ranks_from(rheo::rank_id{0}, 2), parts, {{.name = "w", .shape = {6, 4}}});
#ifdef RHEO_MISTAKE
        if (Dimension == 0) {
            result.places.pop_back();
        }
#endif
        return result;
    }
};
static_assert(rheo::proved_reshard<halves<0>, halves<1>>);
