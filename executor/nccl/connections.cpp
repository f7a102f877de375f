// SPDX-License-Identifier: Apache-2.0
#include "executor/nccl/connections.hpp"

namespace rheo::inline v0::nccl {

std::string text_of(connection const& one)
{
    std::string text = "ranks ";
    for (std::size_t i = 0; i < one.members.size(); ++i) {
        text += i == 0 ? "" : i + 1 == one.members.size() ? " and " : ", ";
        text += std::to_string(one.members[i].value);
    }
    return text;
}

}  // namespace rheo::inline v0::nccl
