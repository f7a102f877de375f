// SPDX-License-Identifier: Apache-2.0
// A layout type whose second rank has two boxes with a common element.
// expect: rheo: this is no layout; the sentence in the parameter says where and why
// expect: the box overlaps with another of the same rank
#include "rheo/reshard/layout_check.hpp"
#include "rheo/reshard/sub_collections.hpp"

struct halves {
    static constexpr rheo::array_layout layout()
    {
        auto const parts = rheo::collect(rheo::tensor_id{0}, rheo::slices_of({6, 4}) | rheo::cut({.parts = 2}));
        auto result = rheo::on(rheo::ranks_from(rheo::rank_id{0}, 2), parts, {{.name = "w", .shape = {6, 4}}});
#ifdef RHEO_MISTAKE
        result.places[1].parts.push_back({rheo::tensor_id{0}, {{2, 4}, {0, 1}}});
#endif
        return result;
    }
};
static_assert(rheo::sound_layout<halves>);
