// SPDX-License-Identifier: Apache-2.0
#include "executor/state/copy_digest.hpp"

#include "rheo/reshard/array_layout.hpp"

#if RHEO_XXHASH_DISPATCHES
#include <xxh_x86dispatch.h>  // by the widest vectors of the processor that it runs on
#else
#define XXH_INLINE_ALL
#include <xxhash.h>
#endif

namespace rheo::inline v0 {

state_digest digest_of_copy(tensor_id tensor, tensor_role role, std::int64_t place, std::span<std::byte const> data)
{
    auto const key = mix_bits(static_cast<std::uint64_t>(tensor.value) * tensor_roles + static_cast<std::uint64_t>(role));
    auto const hash = XXH3_128bits_withSeed(data.data(), data.size(), mix_bits(key + static_cast<std::uint64_t>(place)));
    return {hash.high64, hash.low64};
}

}  // namespace rheo::inline v0
