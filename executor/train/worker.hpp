#pragma once
// SPDX-License-Identifier: Apache-2.0

// The worker: it interprets one rank's row of a program on the stages that live there, instruction by instruction, the very
// values that the library checks, draws and simulates. It has no knowledge of schedules and none of
// recovery; a wait that the end of its generation ends comes out as mpi::peer_lost, between two
// operations, with every accumulator and its books as the last complete operation left them.
// Between two stages of one rank there is no message: the output is handed over.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "executor/clocks/instruction_clocks.hpp"
#include "executor/device/staging_buffer.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/nccl/connections.hpp"
#include "executor/stage/stage.hpp"
#include "executor/state/reduction.hpp"
#include "executor/train/job.hpp"
#include "executor/train/parts/reduction_parts.hpp"
#include "executor/train/parts/stage_neighbours.hpp"
#include "executor/train/rank_services.hpp"
#include "executor/transport/transport.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/trace/event.hpp"

namespace rheo::inline v0 {

/// What a section is about; it stands in every trace event.
struct section_context {
    generation_id generation;
    step_id step;
    attempt_id attempt;
    bool training = true;
    std::span<megahertz const> clocks{};  ///< of the row's computations; none: the highest
    bool remainder = false;               ///< what a loss has left of a step
    transport* by = nullptr;              ///< moves matrices and sums gradients; none: messages of MPI
};

class worker {
public:
    /// Takes the place that the plan gives this rank. @pre `state` holds the tensors of the place
    worker(job const& about, rank_services const& services, plan const& where, rank_id self, resident_state& state);

    bool has_place() const { return place_.found; }
    plan_position place() const { return place_; }
    std::vector<stage*> stages() const;  ///< those that live here, in their order
    std::deque<reduction>& reductions() { return reductions_; }
    /// Whom the rows of whole steps and evaluations exchange with, in the order of all ranks.
    std::vector<nccl::connection> connections() const;
    std::int64_t contributions() const { return contributions_; }  ///< made so far, (use, item) pairs
    /// What it has in a section, part by part: reduced gradients, and what the last section held at most for its items.
    memory_parts measured_memory() const;

    /// Activations that it holds now.
    bytes held_activations() const { return meter_.held(); }

    /// Interprets a row that does `work`. `wanted` says whether the contribution of an item is to be added, `contributed` gets the
    /// uses of those that were, ascending, when an operation is complete, and `computed` is called once for each computation. An item is a microbatch, or slice j
    /// of microbatch m of k slices: m k + j.
    /// Without training the loss goes to `evaluation`.
    void run(std::vector<instruction> const& row, std::span<microbatch_work const> work, section_context const& context, mpi::messenger& messages,
             std::function<bool(use_id, microbatch_id)> const& wanted, std::function<void(std::span<use_id const>, microbatch_id)> const& contributed,
             loss_sum& evaluation);

    /// How many times as long as by their profile the computations of the last section took; 0: not known.
    double slowness() const { return clocks_.slowness(); }
    computed_sums const& computed_sums_of_section() const { return clocks_.sums(); }

    std::function<void(instruction, seconds)> computed;  ///< called after each computation, before its output is sent, with when it began

private:
    /// Of an item on a stage in the row at hand.
    struct todo {
        int instructions = 0;   ///< that still name it, the forward of the next stage when that is here, and that of the last slice
        bool backward = false;  ///< its input gradient is to be computed
    };

    /// A stage of the pipeline that lives here, and where its neighbours do.
    struct place_of_stage {
        std::unique_ptr<stage> layers;
        std::vector<stage_neighbour> before = {}, after = {};  ///< members of the stages beside it; none at the ends of a copy of the model
        bool before_is_mine = false, after_is_mine = false;
        stage_boundary boundary_before = {}, boundary_after = {};  ///< with the neighbours that are other ranks
        std::vector<todo> items = {};                              ///< item -> what the row at hand has for it
    };

    using item_key = std::pair<int, int>;  ///< stage, item

    /// What is here of an item on a stage.
    struct inflight_item {
        explicit inflight_item(compute_backend& backend) : input{backend.messages()}, output{backend.messages()}, gradient_in{backend}, gradient_out{backend} {}

        std::unique_ptr<activation> kept;  ///< made once for a flight, and filled by the stage again and again
        array<std::byte> input, output;    ///< in messages, where these do not reach what is kept
        staging_buffer gradient_in, gradient_out;
        using tickets = std::vector<transport::ticket>;
        tickets input_received{}, gradient_received{}, output_sent{}, gradient_sent{};
        bool receiving_input = false, receiving_gradient = false, sending_output = false, sending_gradient = false;
    };

    /// What the instructions of a section have in common.
    struct section {
        section_context const& context;
        mpi::messenger& messages;
        transport& by;
        std::function<bool(use_id, microbatch_id)> const& wanted;
        std::function<void(std::span<use_id const>, microbatch_id)> const& contributed;
        loss_sum& evaluation;
        group_exchange* exchange;
    };

    void begin_row(std::span<instruction const> row, std::span<microbatch_work const> work);
    void run_row(std::vector<instruction> const& row, section const& in);
    void execute(instruction i, section const& in);
    void reduce(instruction i, section const& in);
    void advance_reductions(section const& in);
    void begin_forward(instruction i, inflight_item& f, section const& in);
    void end_forward(instruction i, std::span<loss_sum const> losses, section const& in);
    void begin_backward(instruction i, inflight_item& f, section const& in);
    void compute_backward(instruction i, inflight_item& f, section const& in, tile_pool* pool);
    void end_backward(instruction i, inflight_item& f, section const& in);
    void overlapped(instruction up, instruction down, section const& in);
    template <class Compute>
    void compute_and_book(stage_item item, section const& in, Compute const& compute);
    void weight_gradient(instruction i, inflight_item& f, section const& in);
    void book(std::span<use_id const> uses, microbatch_id item, section const& in);
    void count_contributions(stage& layers, microbatch_id item, layer_id lowest, section const& in);
    std::span<std::byte const> output_for_messages(place_of_stage const& here, inflight_item& f);
    std::span<std::byte> input_for_messages(place_of_stage const& here, inflight_item& f);
    void send(std::vector<stage_neighbour> const& to, mpi::channel kind, int stage, int item, std::span<std::byte const> matrix,
              inflight_item::tickets& tickets, transport& by);
    void receive(std::vector<stage_neighbour> const& from, mpi::channel kind, int stage, int item, std::span<std::byte> matrix, inflight_item::tickets& tickets,
                 transport& by);
    void show_energy();
    stage_boundary exchanged_by(instruction i) const;
    void finish(item_key key);
    inflight_item& item_of(item_key key, section const& in);
    void take_buffers(std::vector<instruction> const& row, section const& in);
    std::map<int, std::ptrdiff_t> most_in_flight(std::vector<instruction> const& row) const;
    template <class Visit>
    void for_each_item_of(instruction i, Visit const& visit) const;
    void recycle(int stage, inflight_item f);
    place_of_stage& stage_of(int number) { return stages_.at(number); }
    todo& todo_of(item_key key) { return stage_of(key.first).items[static_cast<std::size_t>(key.second)]; }
    int slices() const { return job_->shape().slices; }
    microbatch_id microbatch_of(int item) const { return microbatch_id{item / slices()}; }
    int slice_of(int item) const { return item % slices(); }
    bool ends_slices(instruction i) const { return i.kind == instruction_kind::forward && slice_of(i.item) + 1 == slices(); }
    stage_item item_for(int item, section const& in) const
    {
        return {job_->config.train.seed, in.context.step, microbatch_of(item), in.context.training, slice_of(item), nullptr, in.context.remainder, in.exchange};
    }
    layer_id lowest_of(stage const& layers, microbatch_id m) const { return std::max(layers.first_layer(), deepest_[at(m)]); }
    void wait(bool& pending, inflight_item::tickets& tickets, section const& in);
    void retire(section const& in, bool wait);
    int message_of(int stage, int item) const;

    job const* job_;
    rank_services const* with_;
    plan_position place_;
    std::vector<rank_id> group_;            ///< that runs the row together
    int stages_per_copy_ = 1;               ///< of the pipeline
    std::map<int, place_of_stage> stages_;  ///< number in the program -> stage, those that live here
    resident_state* state_;
    rank_id self_;
    activation_meter meter_;                ///< of all stages that live here
    shared_regions recompute_buffers_;      ///< of all of them, too
    std::unique_ptr<tile_pool> halves_[2];  ///< of the threads, for a forward and a backward at once; made when they are needed
    std::map<item_key, inflight_item> inflight_;
    std::map<int, std::vector<inflight_item>> free_list_;  ///< stage -> buffers of items that are done
    std::vector<std::pair<int, inflight_item>> draining_;  ///< with their stage: done but for their sends
    bool are_direct_ = false;                              ///< messages reach what items keep, as these have their buffers
    std::deque<reduction> reductions_;                     ///< of the units that this rank holds
    std::deque<reduction_part> parts_;                     ///< what each of them sums
    std::vector<std::vector<reduction*>> by_unit_;
    std::vector<layer_id> deepest_;  ///< microbatch -> the lowest layer that its backward reaches; -1: it is not worked on
    std::int64_t contributions_ = 0;
    std::vector<use_id> added_;   ///< by the operation that has just been completed
    std::vector<use_id> booked_;  ///< of these, what was booked before, in a group's exchanges
    instruction_clocks clocks_;   ///< of the row at hand
    seconds began_;               ///< the instruction in progress, what it waited for not counted
};

}  // namespace rheo::inline v0
