#pragma once
// SPDX-License-Identifier: Apache-2.0

// The worker: it interprets one rank's row of a program on its stage, instruction by instruction, the very
// values that the library checks, draws and simulates. It has no knowledge of schedules and none of
// recovery; a wait that the end of its generation ends comes out as mpi::peer_lost, between two
// operations, with every accumulator and its books as the last complete operation left them.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "mpi/messenger.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/schedule/program.hpp"
#include "rheo/trace/event.hpp"
#include "runtime/job.hpp"
#include "runtime/reduction.hpp"
#include "runtime/stage.hpp"

namespace rheo::inline v0 {

/// What a section is about; it stands in every trace event.
struct section_context {
    generation_id generation;
    step_id step;
    attempt_id attempt;
    bool training = true;
};

class worker {
public:
    /// Takes the place that the plan gives this rank. @pre `state` holds the tensors of the place
    worker(job const& about, plan const& where, rank_id me, resident_state& state);

    bool has_place() const { return place_.found; }
    plan_position place() const { return place_; }
    stage& layers() { return *stage_; }
    std::deque<reduction>& reductions() { return reductions_; }
    std::int64_t contributions() const { return contributions_; }  ///< made so far, (use, microbatch) pairs

    /// Interprets a row that does `work`. `wanted` says whether a contribution is to be added, `contributed` is called for each
    /// that was, when the operation is complete, and `computed` once after each computation.
    /// Without training the loss goes to `evaluation`.
    void run(std::vector<instruction> const& row, std::span<microbatch_work const> work, section_context const& context, mpi::messenger& messages,
             std::function<bool(use_id, microbatch_id)> const& wanted, std::function<void(use_id, microbatch_id)> const& contributed,
             loss_sum& evaluation);

    /// Gives up what a section left half done, after its messages have been drained.
    void reset();

    std::function<void()> computed;  ///< called after each computation, before its output is sent

private:
    struct flight {
        std::unique_ptr<activation> kept;
        std::vector<float> gradient_in;
        std::vector<float> gradient_out;
        mpi::messenger::ticket input{}, gradient{}, output_sent{}, gradient_sent{};
        bool has_input = false, has_gradient = false, sending_output = false, sending_gradient = false;
    };

    /// Of a microbatch in the row at hand.
    struct todo {
        int instructions = 0;  ///< that still name it
        layer_id deepest{};    ///< the lowest layer that its backward reaches
    };

    void execute(instruction i, section_context const& context, mpi::messenger& messages,
                 std::function<bool(use_id, microbatch_id)> const& wanted, std::function<void(use_id, microbatch_id)> const& contributed,
                 loss_sum& evaluation);
    flight& flight_of(microbatch_id m);
    void retire(mpi::messenger& messages, bool wait);
    rank_id neighbour(int offset) const;
    int item_of(int stage, microbatch_id m) const;

    job const* job_;
    plan_position place_;
    std::vector<rank_id> ranks_;  ///< of my pipeline, by stage
    std::unique_ptr<stage> stage_;
    resident_state* state_;
    rank_id me_;
    std::map<int, flight> flights_;
    std::vector<flight> spare_;         ///< memory of microbatches that are done
    std::vector<flight> leaving_;       ///< done but for their sends
    std::deque<reduction> reductions_;  ///< of the units that this rank holds
    std::vector<reduction*> by_unit_;
    std::map<int, todo> todo_;          ///< microbatch -> what is left of it
    std::int64_t contributions_ = 0;
    seconds began_;  ///< the instruction in progress, what it waited for not counted
};

}  // namespace rheo::inline v0
