// SPDX-License-Identifier: Apache-2.0
#include "executor/device/backend.hpp"

namespace rheo::inline v0 {

namespace {

template <class Storage>
std::vector<float> read(compute_backend& backend, void const* from, std::size_t count)
{
    auto const values = copied_from(backend, static_cast<Storage const*>(from), count);
    return {values.begin(), values.end()};
}

}  // namespace

std::string compute_backend::choose_algorithms(std::span<layer_description const>, microbatch_shape) { return {}; }
void compute_backend::take_over_algorithms(std::string_view) {}

std::vector<float> floats_from(compute_backend& backend, void const* from, std::size_t count)
{
    return backend.policy().storage == dtype::bf16 ? read<bfloat16>(backend, from, count) : read<float>(backend, from, count);
}

}  // namespace rheo::inline v0
