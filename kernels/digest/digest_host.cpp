// SPDX-License-Identifier: Apache-2.0
#include "kernels/digest/digest.hpp"

#include "kernels/detail/loops.hpp"

namespace rheo::inline v0::host {

state_digest digest_of(std::string_view tensor, tensor_role role, std::int64_t first, std::span<float const> values)
{
    state_digest sum;
    detail::loops().digest(digest_key(tensor, role), static_cast<std::uint64_t>(first), std::ssize(values), values.data(), &sum.high, &sum.low);
    return sum;
}

}  // namespace rheo::inline v0::host
