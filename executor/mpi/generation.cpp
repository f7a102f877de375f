// SPDX-License-Identifier: Apache-2.0
#include "mpi/generation.hpp"

namespace rheo::inline v0::mpi {

generation next_generation(generation const& last)
{
    generation next;
    next.id = generation_id{last.id.value + 1};
    next.me = last.me;
    next.recovery = shrink(last.recovery);
    MPI_Group before = MPI_GROUP_NULL;
    MPI_Group after = MPI_GROUP_NULL;
    MPI_Comm_group(last.recovery.handle(), &before);
    MPI_Comm_group(next.recovery.handle(), &after);
    for (int position = 0; position < next.recovery.size(); ++position) {
        int old_position = 0;
        MPI_Group_translate_ranks(after, 1, &position, before, &old_position);
        next.members.push_back(last.members[static_cast<std::size_t>(old_position)]);
    }
    MPI_Group_free(&before);
    MPI_Group_free(&after);
    next.data = shrink(next.recovery);
    next.complete = next.data.size() == next.recovery.size();
    // Nobody may revoke a new communicator before everybody has finished making it: Open MPI 5.0 ends with a
    // segmentation fault when it hears of a revocation in between. What this agreement returns means nothing.
    agree(last.recovery, 1);
    return next;
}

}  // namespace rheo::inline v0::mpi
