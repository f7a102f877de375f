#pragma once
// SPDX-License-Identifier: Apache-2.0

// Who lives, by as few agreements as it takes: an agreement is the "and" of one integer of all members, so each of its bits can
// say of a range of members that all of them live. Only ranges where a rank knows of a loss are split and asked about again: with f losses among
// n that is 1 + f log n agreements at most instead of n / 31, each of n log n messages.

#include <climits>
#include <cstddef>
#include <utility>
#include <vector>

namespace rheo::inline v0::mpi {

/// The "and" of what all members know, position by position.
/// @param lives what this member knows  @param agree the agreement: the "and" of all members' bits. All members make the same calls
template <class Agree>
std::vector<bool> agree_on_survivors(std::vector<bool> lives, Agree&& agree)
{
    struct range {
        std::size_t first;
        std::size_t count;
    };
    constexpr std::size_t votes = sizeof(int) * CHAR_BIT - 1;  // in the bits of one agreement
    std::vector<range> open{{0, lives.size()}};
    while (!open.empty()) {
        auto const parts_of_each = open.size() < votes / 2 ? votes / open.size() : 2;
        std::vector<range> parts;
        for (auto const [first, count] : open) {
            auto const size = (count + parts_of_each - 1) / parts_of_each;
            for (std::size_t done = 0; done < count; done += size) {
                parts.push_back({first + done, count - done < size ? count - done : size});
            }
        }
        open.clear();
        for (std::size_t begin = 0; begin < parts.size(); begin += votes) {
            auto const count = parts.size() - begin < votes ? parts.size() - begin : votes;
            int bits = 0;
            for (std::size_t i = 0; i < count; ++i) {
                bool all = true;
                for (std::size_t k = 0; k < parts[begin + i].count; ++k) {
                    all = all && lives[parts[begin + i].first + k];
                }
                bits |= static_cast<int>(all) << i;
            }
            bits = agree(bits);
            for (std::size_t i = 0; i < count; ++i) {
                auto const part = parts[begin + i];
                if ((bits >> i & 1) != 0) {
                    continue;
                }
                if (part.count == 1) {
                    lives[part.first] = false;
                } else {
                    open.push_back(part);
                }
            }
        }
    }
    return lives;
}

}  // namespace rheo::inline v0::mpi
