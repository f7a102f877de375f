// SPDX-License-Identifier: Apache-2.0
// The digest by vectors is that of its definition, at every length and place.
#include "kernels/digest/digest.hpp"

#include <cstring>

#include "support.hpp"

using namespace rheo;
using namespace support;

TEST_CASE("digest: the digest of a run of floats is that of its bits")
{
    for (std::int64_t n = 0; n < 70; ++n) {
        auto const values = normal(n, static_cast<unsigned>(n));
        for (std::int64_t const first : {std::int64_t{0}, std::int64_t{3}, std::int64_t{1} << 40}) {
            for (auto const role : {tensor_role::parameter, tensor_role::second_moment}) {
                REQUIRE(host::digest_of("wte.weight", role, first, values) == digest_of("wte.weight", role, first, bits(values)));
            }
        }
    }
}
