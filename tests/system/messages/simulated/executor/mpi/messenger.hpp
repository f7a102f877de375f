#pragma once
// SPDX-License-Identifier: Apache-2.0

// In place of the executor's mpi/messenger.hpp: the same calls among simulated ranks, each a stack of its own in one thread. A rank
// runs until it waits for a message that is not there; then another one does. Messages, polls and the length of the longest
// chain of messages are counted.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <ucontext.h>

#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0::mpi {

enum class channel : std::uint8_t { activation, gradient, reduce_sums, reduce_values, scalars, control, copy, move };

struct generation {
    std::vector<rank_id> members;
    rank_id self;

    int position_of(rank_id rank) const { return static_cast<int>(std::lower_bound(members.begin(), members.end(), rank) - members.begin()); }
};

/// All simulated ranks, and what is on its way between them.
class network {
public:
    struct message {
        std::vector<std::byte> data;
        int arrives;
    };
    using address = std::tuple<rank_id, rank_id, channel, int>;

    std::map<address, std::deque<message>> mail;
    std::int64_t messages = 0;
    std::int64_t bytes = 0;
    std::int64_t polls = 0;
    std::vector<std::int64_t> sent;  ///< by each rank
    int longest = 0;                 ///< chain of messages, each sent after the one before it had come

    /// Runs all ranks to their end. @returns false when they wait for each other for ever
    bool run(int ranks, std::function<void(int)> work)
    {
        work_ = std::move(work);
        sent.assign(static_cast<std::size_t>(ranks), 0);
        contexts_ = std::vector<ucontext_t>(static_cast<std::size_t>(ranks));
        ended_.assign(static_cast<std::size_t>(ranks), false);
        stacks_.clear();
        for (auto& context : contexts_) {
            getcontext(&context);
            context.uc_stack.ss_sp = stacks_.emplace_back(std::make_unique<std::byte[]>(stack_bytes)).get();
            context.uc_stack.ss_size = stack_bytes;
            context.uc_link = &home_;
            makecontext(&context, &network::enter, 0);
        }
        running_one() = this;
        for (bool moved = true; moved;) {
            moved = false;
            for (int r = 0; r < ranks; ++r) {
                if (!ended_[static_cast<std::size_t>(r)]) {
                    rank_ = r;
                    progress_ = false;
                    swapcontext(&home_, &contexts_[static_cast<std::size_t>(r)]);
                    moved = moved || progress_;
                }
            }
        }
        return std::all_of(ended_.begin(), ended_.end(), [](bool ended) { return ended; });
    }

    /// The running rank lets the others run.
    void yield() { swapcontext(&contexts_[static_cast<std::size_t>(rank_)], &home_); }
    void made_progress() { progress_ = true; }

private:
    static constexpr std::size_t stack_bytes = 128 << 10;

    static network*& running_one()
    {
        static network* one = nullptr;
        return one;
    }
    static void enter()
    {
        auto& all = *running_one();
        auto const rank = all.rank_;
        all.progress_ = true;
        all.work_(rank);
        all.progress_ = true;
        all.ended_[static_cast<std::size_t>(rank)] = true;
    }

    std::function<void(int)> work_;
    std::vector<ucontext_t> contexts_;
    std::vector<std::unique_ptr<std::byte[]>> stacks_;
    std::vector<bool> ended_;
    ucontext_t home_{};
    int rank_ = 0;
    bool progress_ = false;
};

class messenger {
public:
    using ticket = std::size_t;

    messenger(generation const& members, network& on) : generation_{&members}, on_{&on} {}

    generation const& members() const { return *generation_; }

    template <class T>
    ticket send(rank_id to, channel kind, int item, std::span<T const> data)
    {
        auto const bytes = std::as_bytes(data);
        on_->mail[{generation_->self, to, kind, item}].push_back({{bytes.begin(), bytes.end()}, now_ + 1});
        ++on_->messages;
        ++on_->sent[static_cast<std::size_t>(generation_->self.value)];
        on_->bytes += static_cast<std::int64_t>(bytes.size());
        on_->made_progress();
        expected_.push_back({});
        return expected_.size() - 1;
    }

    template <class T>
    ticket receive(rank_id from, channel kind, int item, std::span<T> data)
    {
        expected_.push_back({{from, generation_->self, kind, item}, std::as_writable_bytes(data), true});
        return expected_.size() - 1;
    }

    void wait(ticket which)
    {
        auto const& [from, room, open] = expected_[which];
        if (!open) {
            return;
        }
        auto& box = on_->mail[from];
        while (box.empty()) {
            ++on_->polls;
            on_->yield();
        }
        auto const message = std::move(box.front());
        box.pop_front();
        if (message.data.size() > room.size()) {
            throw std::length_error{"a message is longer than the room for it"};
        }
        std::copy(message.data.begin(), message.data.end(), room.begin());
        now_ = std::max(now_, message.arrives);
        on_->longest = std::max(on_->longest, now_);
        on_->made_progress();
    }

private:
    struct expected {
        network::address from{};
        std::span<std::byte> room{};
        bool open = false;
    };
    generation const* generation_;
    network* on_;
    std::vector<expected> expected_;
    int now_ = 0;  ///< messages that led here
};

}  // namespace rheo::inline v0::mpi
