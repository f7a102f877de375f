// SPDX-License-Identifier: Apache-2.0
#include "executor/nccl/connections.hpp"

namespace rheo::inline v0::nccl {

std::optional<shares_of_device> shares_of(int links, int groups, int multiprocessors)
{
    if (links + groups > multiprocessors) {
        return std::nullopt;
    }
    shares_of_device shares{2 * links + groups <= multiprocessors ? 2 : 1, most_blocks_of_nccl};  // a link copies: more would not be faster
    if (groups > 0) {
        shares.group = std::min((multiprocessors - links * shares.link) / groups, most_blocks_of_nccl);
    }
    return shares;
}

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
