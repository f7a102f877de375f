// SPDX-License-Identifier: Apache-2.0
// What the trainer performs after a loss, and at the start, which is a recovery without a past: revoke, shrink, link,
// exchange, copy, merge.
#include "executor/train/trainer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "executor/faults/fence.hpp"
#include "executor/records/record_text.hpp"
#include "executor/state/collectives.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

/// So many of the members have a file ready for the next loss: enough that losses together leave one, and no load on a file system at any number of ranks.
constexpr int ranks_that_prepare = 4;

}  // namespace

protocol_event trainer::perform(revoke_generation const&)
{
    auto const start = with_->clock.now();
    generation_->revoke();  // what threw peer_lost has done so already; this is for a rank that only looked
    trace(activity::revoke, start);
    recovery_.also_took(&recovery_record::revoke, start);
    return revoked{};
}

protocol_event trainer::perform(shrink const& action)
{
    with_->inject.at(fault_phase::shrink, state_.now.step, state_.now.attempt);
    auto const start = with_->clock.now();
    watchdog::wait const waits{with_->watch};
    messages_.reset();
    changes_.drop();
    generation_->revoke();  // a vote that was not settled ends the generation for those who are still in it, too
    auto const members = generation_->members.size();
    generation_ = std::make_unique<mpi::generation>(mpi::next_generation(std::move(*generation_), action.departed));
    transport_.generation_ended(generation_->members.size() < members);
    with_->record.set_reporter(is_reporter());
    checkpoints_.generation_ended(generation_->members);
    trace(activity::shrink, start);
    recovery_.also_took(&recovery_record::shrink, start);
    recovery_.shrunk(generation_->id, state_.now.step, state_.now.attempt, generation_->members, action.departed);
    return shrunk{generation_->members};
}

/// Links, or waits until that is possible: a folder on a full disk is no reason to lose the state that the ranks hold. All members try, and one that
/// succeeds is enough for all, because the others find its file. No rank acts before, so none can be left behind by it.
bool trainer::link_when_possible(link_generation const& action)
{
    auto const start = with_->clock.now();
    constexpr seconds repeated_after{60};
    auto reported = seconds{} - repeated_after;
    for (;;) {
        try {
            return fence_.link(action);
        } catch (folder_not_writable const& error) {
            auto const waited = with_->clock.since(start);
            if (with_->asked.to_stop()) {
                throw exit_error{exit_code::environment, fmt::format("{}, and the job was asked to stop while it waited for that", error.what())};
            }
            if (is_reporter() && waited - reported >= repeated_after) {
                reported = waited;
                fmt::print(stderr,
                           "rheo: the job waits for its run folder, for {:.0f} s now: {}. No rank continues before generation {} is recorded there; "
                           "no state is lost meanwhile\n",
                           waited.count, error.what(), action.ended.value + 1);
            }
        }
        with_->progress();
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
}

protocol_event trainer::perform(link_generation const& action)
{
    auto const start = with_->clock.now();
    bool const ours = link_when_possible(action);
    if (ours && mpi::survives_losses() && generation_->position_of(self_) < ranks_that_prepare) {
        fence_.prepare(action);
    }
    trace(activity::link, start);
    recovery_.also_took(&recovery_record::link, start);
    return ours ? protocol_event{linked{}} : protocol_event{fenced{}};
}

/// Rounds of a change in place add up; an attempt that failed is replaced by the next one.
void trainer::took(recovery_log::phase field, seconds start)
{
    if (state_.plan.salvage.more) {
        recovery_.also_took(field, start);
    } else {
        recovery_.took(field, start);
    }
}

protocol_event trainer::perform(exchange_holdings const& action)
{
    auto const start = with_->clock.now();
    if (messages_) {  // between two steps
        messages_->begin_section();
    }
    if (messages_ && !state_.plan.salvage.more) {
        recovery_.regroups(generation_->id, action.stamp.step, generation_->members, changes_.text());
    } else if (!messages_) {
        messages_ = std::make_unique<mpi::messenger>(*generation_, with_->heartbeat());
        messages_->set_idle_work([this] { checkpoints_.progress(*messages_); });
    }
    messages_->throw_if_failed();
    auto all = gather_holdings(*messages_, action.holds);
    trace(activity::exchange, start);
    took(&recovery_record::exchange, start);
    return holdings_exchanged{std::move(all)};
}

/// All members must have made the same plan: they have the same inputs, and this shows it.
void trainer::expect_same_plan()
{
    auto digest = digest_of(*state_.next);
    if (clocks_.follows()) {
        auto p = coming_planner().whole_step(*state_.next);
        if (auto chosen = clocks_.clocks_for(p, recovery_.is_open() && is_reporter())) {
            p.clocks = std::move(chosen->clocks);
        }
        digest += digest_of(p);
    }
    std::array<std::uint64_t, 2> const mine{digest.high, digest.low};
    if (!same_everywhere(*messages_, mine)) {
        throw std::logic_error{"the members have made different plans from the same holdings"};
    }
}

/// Its memory is free then; what it has contributed still counts.
void trainer::end_worker()
{
    earlier_contributions_ += worker_ ? worker_->contributions() : 0;
    worker_.reset();
}

/// What a section, or an earlier try of these copies, has left half done makes room for what comes: the merge makes a worker for the place to come. Its
/// accumulators are not among it; they stay, with their books.
void trainer::give_up_half_done()
{
    transport_.begin_plan({});
    with_->backend.wait();
    end_worker();
    staged_.clear();
}

/// Between two steps nothing is in them.
void trainer::drop_accumulators()
{
    for (std::size_t u = 0; u < job_->state.uses.size(); ++u) {
        resident_.drop_accumulator(use_id{static_cast<std::int32_t>(u)});
    }
}

protocol_event trainer::perform(copy_state const&)
{
    auto const start = with_->clock.now();
    auto const& next = *state_.next;
    checkpoints_.before_change();
    expect_same_plan();
    give_up_half_done();
    if (next.salvage.in_place) {
        drop_accumulators();
    }
    staged_ = transfer_state(
        *messages_, next, coming_planner().known().state, resident_, [&] { with_->inject.at(fault_phase::copy, state_.now.step, state_.now.attempt); },
        [this](tensor_id t) { book_received(t); });
    wait_for_all(*messages_);  // or those that are done would spin in the vote, on cores that the others need
    trace(activity::copy, start);
    took(&recovery_record::copy, start);
    return copied{};
}

/// Keeps or makes the tensors and accumulators of the layers, or cells, of this rank's place, and drops all others.
void trainer::keep_state_of_place(membership_plan const& next)
{
    auto const& collection = planner_.known().state;
    bool const divided = planner_.known().optimizer.shards.are_used();
    auto const mine = std::find_if(next.salvage.after.begin(), next.salvage.after.end(), [&](auto const& holds) { return holds.rank == self_; });
    auto const has_layer = [&](layer_id layer) { return std::binary_search(mine->layers.begin(), mine->layers.end(), layer); };
    auto const is_mine = [&](tensor_info const& tensor) { return tensor.is_parameter && std::any_of(tensor.layers.begin(), tensor.layers.end(), has_layer); };
    auto const tensors = job_->state.tensors.size();
    for (std::size_t t = 0; t < tensors; ++t) {
        tensor_id const id{static_cast<std::int32_t>(t)};
        auto const& tensor = collection.tensors[t];
        if (!is_mine(tensor)) {
            resident_.drop(id);
        } else if (!resident_.holds(id) && from_) {
            expects(state_.now.step == from_->step(), "only the first state of a job can be read from its checkpoint");
            resident_.put(id, from_->read(tensor));
        } else if (!resident_.holds(id)) {
            expects(state_.now.step.value == 0, "only the first state of a job can be made from the seed");
            initialise(resident_, id, job_->config.train.seed);
        }
        if (divided && !is_mine(collection.tensors[tensors + t])) {
            resident_.drop_optimizer_part(id);
        }
    }
    for (std::size_t u = 0; u < collection.uses.size(); ++u) {
        use_id const use{static_cast<std::int32_t>(u)};
        if (has_layer(collection.uses[u].layer) && !next.salvage.more) {
            resident_.accumulator(use);
        } else {
            resident_.drop_accumulator(use);
        }
    }
}

protocol_event trainer::perform(merge_staging const&)
{
    auto const start = with_->clock.now();
    auto const& next = *state_.next;
    checkpoints_.before_change();
    if (changes_.next() != nullptr) {
        planner_ = changes_.merge(state_.now.step);
    }
    keep_state_of_place(next);
    for (auto const& arrived : staged_) {
        resident_.merge(arrived.use, *arrived.sums);
    }
    with_->backend.wait();
    staged_.clear();
    auto const where = planner_.whole_step(next);
    if (next.salvage.more) {  // what steps need is not all here
        trace(activity::merge, start);
        took(&recovery_record::merge, start);
        recovery_.merged(next, where, {.goes_on = true});
        return merged{};
    }
    worker_ = std::make_unique<worker>(*job_, *with_, where, self_, resident_);
    transport_.begin_plan(worker_->connections());
    section_.work.reset();
    clocks_.merged();
    if (auto const place = position_of(where, self_); place.found && with_->device != nullptr) {
        with_->device->computes(where.pipelines[at(place.pipeline)], self_);
    }
    regroup_ = planner_.regroups(next);
    copies_.choose(next, planner_.known());
    trace(activity::merge, start);
    took(&recovery_record::merge, start);
    merge_account account{.goes_on = !state_.departing.empty()};
    for (auto const& move : next.salvage.moves) {
        account.moved += resident_.accumulator_size(job_->state.uses[at(move.use)].tensor);
    }
    if (state_.now.step.value < job_->config.train.steps) {
        account.pairs_of_step = static_cast<std::int64_t>(job_->state.uses.size()) * job_->items();
    }
    recovery_.merged(next, where, account);
    return merged{};
}

/// A tensor is here and checked: its layers, or cells, are booked when they are complete.
void trainer::book_received(tensor_id arrived)
{
    auto const& known = planner_.known().state;
    auto const& tensors = known.tensors;
    auto const is_here = [&](tensor_id t) {
        auto const own = tensor_of(known, t);
        return are_of_keepers(tensors[at(t)].committed) ? resident_.keeps(own) : resident_.holds(own);
    };
    auto const has_all = [&](layer_id layer) {
        for (std::size_t t = 0; t < tensors.size(); ++t) {
            if (tensors[t].is_parameter && std::binary_search(tensors[t].layers.begin(), tensors[t].layers.end(), layer) &&
                !is_here(tensor_id{static_cast<std::int32_t>(t)})) {
                return false;
            }
        }
        return true;
    };
    for (auto const layer : tensors[at(arrived)].layers) {
        if (has_all(layer)) {
            note(state_, received{layer});
        }
    }
}

void trainer::close_recovery(seconds first_instruction)
{
    if (first_instruction.count > 0) {
        trace(activity::first_instruction, recovery_.merged_at());
    }
    auto const closed = recovery_.close(first_instruction, static_cast<std::int64_t>(generation_->communicators()));
    changes_.finish(recovery_line(closed), is_reporter());
}

}  // namespace rheo::inline v0
