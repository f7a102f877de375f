// SPDX-License-Identifier: Apache-2.0
#include "executor/device/back_end.hpp"

namespace rheo::inline v0 {

namespace {

template <class Storage>
std::vector<float> read(back_end& on, void const* from, std::size_t count)
{
    auto const values = copied_from(on, static_cast<Storage const*>(from), count);
    return {values.begin(), values.end()};
}

}  // namespace

std::string back_end::choose_algorithms(std::span<layer_description const>, microbatch_shape) { return {}; }
void back_end::take_over_algorithms(std::string_view) {}

std::vector<float> floats_from(back_end& on, void const* from, std::size_t count)
{
    return on.policy().storage == dtype::bf16 ? read<bfloat16>(on, from, count) : read<float>(on, from, count);
}

}  // namespace rheo::inline v0
