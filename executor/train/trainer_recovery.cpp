// SPDX-License-Identifier: Apache-2.0
// What the trainer performs after a loss, and at the start, which is a recovery without a past: revoke, shrink, link,
// tell, copy, merge.
#include "executor/train/trainer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "executor/faults/fence.hpp"
#include "executor/state/collectives.hpp"

namespace rheo::inline v0 {

namespace {

/// So many of the members have a file ready for the next loss: enough that losses together leave one, and no load on a file system at any number of ranks.
constexpr int ranks_that_prepare = 4;

/// What this process has in memory now.
std::int64_t resident_bytes()
{
    std::ifstream file{"/proc/self/statm"};
    std::int64_t whole = 0;
    std::int64_t resident = 0;
    file >> whole >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

protocol_event trainer::perform(revoke_generation const&)
{
    auto const start = job_->clock.now();
    generation_->revoke();  // whoever threw peer_lost has done so already; this is for one who only looked
    trace(activity::revoke, start);
    recovery_->revoke += since(start);
    return revoked{};
}

protocol_event trainer::perform(shrink const& action)
{
    job_->inject.at(fault_phase::shrink, state_.now.step, state_.now.attempt);
    auto const start = job_->clock.now();
    watchdog::wait const waits{job_->watch};
    messages_.reset();
    generation_->revoke();  // a vote that was not settled ends the generation for those who are still in it, too
    generation_ = std::make_unique<mpi::generation>(mpi::next_generation(std::move(*generation_), action.departed));
    job_->record->set_reporter(is_reporter());
    checkpoints_.generation_ended(generation_->members);
    trace(activity::shrink, start);
    auto& r = *recovery_;
    r.shrink += since(start);
    r.generation = generation_->id;
    r.step = state_.now.step;
    r.attempt = state_.now.attempt;
    r.ranks = static_cast<int>(generation_->members.size());
    r.left.insert(r.left.end(), action.departed.begin(), action.departed.end());
    r.lost.clear();
    std::copy_if(before_.begin(), before_.end(), std::back_inserter(r.lost),
                 [&](rank_id rank) { return !generation_->has(rank) && std::find(r.left.begin(), r.left.end(), rank) == r.left.end(); });
    return shrunk{generation_->members};
}

/// Links, or waits until that is possible: a folder on a full disk is no reason to lose the state that the ranks hold. All members try, and one that
/// succeeds is enough for all, because the others find its file. Nobody does anything before, so nobody can be left behind by it.
bool trainer::link_when_possible(link_generation const& action)
{
    auto const start = job_->clock.now();
    constexpr double repeated_s = 60;
    double reported_s = -repeated_s;
    for (;;) {
        try {
            return fence_.link(action);
        } catch (folder_not_writable const& error) {
            auto const waited = since(start);
            if (job_->asked_to_stop && job_->asked_to_stop()) {
                throw folder_error{fmt::format("{}, and the job was asked to stop while it waited for that", error.what())};
            }
            if (is_reporter() && waited.count - reported_s >= repeated_s) {
                reported_s = waited.count;
                fmt::print(stderr,
                           "rheo: the job waits for its run folder, for {:.0f} s now: {}. No rank continues before generation {} is recorded there; "
                           "no state is lost meanwhile\n",
                           waited.count, error.what(), action.ended.value + 1);
            }
        }
        job_->progress();
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
}

protocol_event trainer::perform(link_generation const& action)
{
    auto const start = job_->clock.now();
    bool const ours = link_when_possible(action);
    if (ours && mpi::survives_losses() && generation_->position_of(self_) < ranks_that_prepare) {
        fence_.prepare(action);
    }
    trace(activity::link, start);
    if (recovery_) {
        recovery_->link += since(start);
    }
    return ours ? protocol_event{linked{}} : protocol_event{fenced{}};
}

protocol_event trainer::perform(exchange_holdings const& action)
{
    auto const start = job_->clock.now();
    if (messages_) {  // between two steps
        messages_->begin_section();
        recovery_.emplace();
        before_ = generation_->members;
        auto& r = *recovery_;
        r.generation = generation_->id;
        r.step = action.stamp.step;
        r.ranks = static_cast<int>(before_.size());
    } else {
        messages_ = std::make_unique<mpi::messenger>(*generation_, job_->heartbeat());
    }
    messages_->throw_if_failed();
    auto all = gather_holdings(*messages_, action.holds);
    trace(activity::exchange, start);
    if (recovery_) {
        recovery_->exchange = since(start);
    }
    return holdings_exchanged{std::move(all)};
}

/// All members must have made the same plan: they have the same inputs, and this shows it.
void trainer::expect_same_plan()
{
    auto digest = digest_of(*state_.next);
    if (job_->clocks != nullptr) {
        auto p = whole_step(*state_.next);
        p.clocks = clocks_for(p).clocks;
        digest += digest_of(p);
    }
    std::array<std::uint64_t, 2> const mine{digest.high, digest.low};
    if (!same_everywhere(*messages_, mine)) {
        throw std::logic_error{"the members have made different plans from the same holdings"};
    }
}

/// What a section, or an earlier try of these copies, has left half done makes room for what comes: the merge makes a worker for the place to come. Its
/// accumulators are not among it; they stay, with their books.
void trainer::give_up_half_done()
{
    job_->backend->wait();
    pairs_by_me_ += worker_ ? worker_->contributions() : 0;
    worker_.reset();
    staged_.clear();
}

protocol_event trainer::perform(copy_state const&)
{
    auto const start = job_->clock.now();
    auto const& next = *state_.next;
    expect_same_plan();
    give_up_half_done();
    staged_ = transfer(
        *messages_, next, resident_, [&] { job_->inject.at(fault_phase::copy, state_.now.step, state_.now.attempt); },
        [this](tensor_id t) { book_received(t); });
    wait_for_all(*messages_);  // or those that are done would spin in the vote, on cores that the others need
    trace(activity::copy, start);
    if (recovery_) {
        recovery_->copy = since(start);
    }
    return copied{};
}

protocol_event trainer::perform(merge_staging const&)
{
    auto const start = job_->clock.now();
    auto const& next = *state_.next;
    auto const mine = std::find_if(next.salvage.after.begin(), next.salvage.after.end(), [&](auto const& holds) { return holds.rank == self_; });
    auto const has_layer = [&](layer_id layer) { return std::binary_search(mine->layers.begin(), mine->layers.end(), layer); };
    for (std::size_t t = 0; t < job_->state.tensors.size(); ++t) {
        tensor_id const id{static_cast<std::int32_t>(t)};
        auto const& tensor = job_->state.tensors[t];
        bool const needed = tensor.is_parameter && std::any_of(tensor.layers.begin(), tensor.layers.end(), has_layer);
        if (!needed) {
            resident_.drop(id);
        } else if (!resident_.holds(id) && from_) {
            expects(state_.now.step == from_->step(), "only the first state of a job can be read from its checkpoint");
            resident_.put(id, from_->read(tensor.name));
        } else if (!resident_.holds(id)) {
            expects(state_.now.step.value == 0, "only the first state of a job can be made from the seed");
            initialise(resident_, id, job_->config.train.seed);
        }
    }
    for (std::size_t u = 0; u < job_->state.uses.size(); ++u) {
        use_id const use{static_cast<std::int32_t>(u)};
        if (has_layer(job_->state.uses[u].layer)) {
            resident_.accumulator(use);
        } else {
            resident_.drop_accumulator(use);
        }
    }
    for (auto const& arrived : staged_) {
        resident_.merge(arrived.use, *arrived.sums);
    }
    job_->backend->wait();
    staged_.clear();
    auto const where = whole_step(next);
    worker_ = std::make_unique<worker>(*job_, where, self_, resident_);
    programs_are_for_.reset();
    clocks_are_precomputed_ = clocks_are_chosen_ = false;
    if (auto const place = position_of(where, self_); place.found && job_->device != nullptr) {
        job_->device->computes(where.pipelines[at(place.pipeline)].cuts);
    }
    regroup_ = would_regroup(next, known_, rules_);
    kept_ = copies_for_keepers(next, known_);
    trace(activity::merge, start);
    merged_at_ = job_->clock.now();
    if (recovery_) {
        recovery_->merge = since(start);
        auto& r = *recovery_;
        r.pipelines = static_cast<int>(next.pipelines.size());
        r.copied_bytes = next.moved.count + copied_for_departing_;
        copied_for_departing_ = state_.departing.empty() ? 0 : r.copied_bytes;
        r.message = next.message;
        r.moved_bytes = 0;  // a record begun before an earlier merge that came to nothing has its numbers
        for (auto const& move : next.salvage.moves) {
            r.moved_bytes += resident_.accumulator_bytes(job_->state.uses[at(move.use)].tensor);
        }
        r.pairs_missing = r.pairs_total = 0;
        if (state_.now.step.value < job_->config.train.steps) {  // else there is nothing left to compute
            for (auto const& use : next.salvage.missing) {
                r.pairs_missing += use.done.size();
            }
            r.pairs_total = static_cast<std::int64_t>(job_->state.uses.size()) * job_->items();
        }
        r.pairs_salvaged = r.pairs_total - r.pairs_missing;
    }
    return merged{};
}

void trainer::close_recovery_record(seconds first_instruction)
{
    recovery_->first_instruction = first_instruction;
    if (first_instruction.count > 0) {
        trace(activity::first_instruction, merged_at_);
    }
    ++recoveries_;
    recovery_->communicators = static_cast<std::int64_t>(generation_->communicators());
    recovery_->memory_bytes = resident_bytes();
    job_->record->recovery(*recovery_);
    recovery_.reset();
    copied_for_departing_ = 0;
}

}  // namespace rheo::inline v0
