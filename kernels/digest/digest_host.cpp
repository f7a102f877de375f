// SPDX-License-Identifier: Apache-2.0
#include "kernels/digest/digest.hpp"

#include "kernels/detail/loops.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::host {

state_digest digest(digest_arguments const& a)
{
    expects(a.type == dtype::f32, "the host keeps its state in float");
    state_digest sum;
    auto const& first = a.where.first;
    for (std::int64_t run = 0; run < a.where.runs; ++run) {
        state_digest of_run;
        detail::loops().digest(a.key, static_cast<std::uint64_t>(first.in_parameter + run * a.where.stride_in_parameter), first.count,
                               static_cast<float const*>(a.values) + first.own + run * a.where.own_stride, &of_run.high, &of_run.low);
        sum += of_run;
    }
    return sum;
}

state_digest digest_of(std::string_view tensor, tensor_role role, std::int64_t first, std::span<float const> values)
{
    return digest(
        {.key = digest_key(tensor, role), .where = {.first = {.own = 0, .in_parameter = first, .count = std::ssize(values)}}, .values = values.data()});
}

}  // namespace rheo::inline v0::host
