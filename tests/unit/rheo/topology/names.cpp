// SPDX-License-Identifier: Apache-2.0
// Names of the library beside those that C puts into the global namespace: `using namespace rheo` must leave both usable.
#include <cstring>

#include <math.h>
#include <strings.h>
#include <unistd.h>

#include "rheo/topology/tagged_index.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

struct shelf_tag;
using shelf_id = tagged_index<shelf_tag>;

}  // namespace

TEST_CASE("topology: names stand beside those of <strings.h>")
{
    CHECK(at(shelf_id{3}) == 3);
    CHECK(index("abc", 'c') != nullptr);
}
