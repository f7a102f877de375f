#pragma once
// SPDX-License-Identifier: Apache-2.0

// By what the sections of a plan move their matrices: by messages of MPI at first, and by NCCL from the step on before which all ranks have seen that all
// communicators are up. These come up beside the steps, so neither a start nor a recovery waits for them; results are the same bits by either.

#include <memory>
#include <string>
#include <vector>

#include "executor/nccl/nccl_transport.hpp"
#include "executor/records/records.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

class section_transport {
public:
    /// @param library null: everything goes by MPI  @param multiprocessors of the device, this rank's share  @param required an end by an error where NCCL
    /// never comes up  @param patience for a communicator; 0: for ever
    section_transport(std::shared_ptr<nccl::library const> library, int multiprocessors, compute_backend& backend, records& record, bool required,
                      seconds patience);

    /// A plan comes into force, with what it connects this rank to. @pre no section is at work
    void begin_plan(std::vector<nccl::connection> all);
    /// @param lost_members no: if NCCL has failed, then by itself
    void generation_ended(bool lost_members);

    /// All members begin a section of a whole step. @throws mpi::peer_lost
    void begin_section(mpi::messenger& messages);
    /// What comes up goes on. Never waits.
    void poll();

    // What a step's reduction takes of this rank, and gives of all.
    bool is_coming_up() const { return library_ != nullptr && (state_ == state::asked || state_ == state::planned || state_ == state::coming_up); }
    bool has_failed() const { return library_ != nullptr && !failure_.empty(); }
    /// NCCL has failed on some rank: all learn why. @throws mpi::peer_lost
    void share_failure(mpi::messenger& messages);
    /// A step is settled. @throws exit_error where NCCL is required and fails, on all ranks
    void settle(bool any_is_coming_up, bool any_has_failed);

    /// Null: messages of MPI.
    transport* in_use() { return state_ == state::in_use ? &*by_nccl_ : nullptr; }

private:
    void leave();

    enum class state : std::uint8_t {
        asked,      ///< a step's reduction will say whether NCCL has failed on any rank
        planned,    ///< on none; nothing is begun
        coming_up,  ///< some communicators
        up,         ///< all of this rank
        settled,    ///< all of all ranks
        in_use,
    };

    std::shared_ptr<nccl::library const> library_;  ///< null: never, or no more
    int multiprocessors_;
    compute_backend* backend_;
    records* record_;
    bool required_;
    bool has_served_ = false;  ///< a step that is settled
    seconds patience_;
    std::vector<nccl::connection> all_;
    std::unique_ptr<nccl::nccl_transport> by_nccl_;
    std::vector<nccl::quiet_communicator> kept_;  ///< of earlier plans
    state state_ = state::asked;
    std::string failure_;  ///< why no more
};

}  // namespace rheo::inline v0
