// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/recovery_log.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "executor/os/resident_memory.hpp"

namespace rheo::inline v0 {

void recovery_log::open(std::span<rank_id const> members)
{
    open_.emplace();
    before_.assign(members.begin(), members.end());
}

bool recovery_log::peer_lost(std::span<rank_id const> members)
{
    if (open_) {
        return false;
    }
    open(members);
    open_->detect = clock_.since(progress_);
    return true;
}

void recovery_log::took(phase field, seconds start)
{
    if (open_) {
        (*open_).*field = clock_.since(start);
    }
}

void recovery_log::also_took(phase field, seconds start)
{
    if (open_) {
        (*open_).*field += clock_.since(start);
    }
}

void recovery_log::shrunk(generation_id generation, step_id step, attempt_id attempt, std::span<rank_id const> members, std::span<rank_id const> departed)
{
    auto& r = *open_;
    r.generation = generation;
    r.step = step;
    r.attempt = attempt;
    r.ranks = static_cast<int>(members.size());
    change_.clear();  // a change that was not merged gets its own record later
    r.left.insert(r.left.end(), departed.begin(), departed.end());
    auto const is_in = [](auto const& ranks, rank_id rank) { return std::find(ranks.begin(), ranks.end(), rank) != ranks.end(); };
    r.lost.clear();
    std::copy_if(before_.begin(), before_.end(), std::back_inserter(r.lost), [&](rank_id rank) { return !is_in(members, rank) && !is_in(r.left, rank); });
}

void recovery_log::regroups(generation_id generation, step_id step, std::span<rank_id const> members, std::string const& change)
{
    open(members);
    change_ = change;
    open_->generation = generation;
    open_->step = step;
    open_->ranks = static_cast<int>(members.size());
}

void recovery_log::merged(membership_plan const& members, plan in_force, merge_account const& account)
{
    merged_at_ = clock_.now();
    if (!open_) {
        return;
    }
    in_force_ = std::move(in_force);
    auto& r = *open_;
    r.change += std::exchange(change_, {});
    r.pipelines = static_cast<int>(members.pipelines.size());
    r.copied = members.copies.certificate.moved.value + copied_in_rounds_;
    r.rounds += members.salvage.more ? 1 : 0;
    copied_in_rounds_ = account.goes_on ? r.copied : bytes{};
    r.message = members.message;
    r.moved = account.moved;
    r.pairs_missing = r.pairs_total = 0;  // a record that opened before an earlier merge, which was not settled, has its numbers
    if (account.pairs_of_step) {
        for (auto const& use : members.salvage.missing) {
            r.pairs_missing += use.done.size();
        }
        r.pairs_total = *account.pairs_of_step;
    }
    r.pairs_salvaged = r.pairs_total - r.pairs_missing;
}

recovery_record recovery_log::close(seconds first_instruction, std::int64_t communicators)
{
    open_->first_instruction = first_instruction;
    ++recoveries_;
    open_->communicators = communicators;
    open_->memory = resident_memory();
    record_->recovery(*open_);
    record_->in_force(in_force_, open_->generation);
    copied_in_rounds_ = {};
    return *std::exchange(open_, std::nullopt);
}

}  // namespace rheo::inline v0
