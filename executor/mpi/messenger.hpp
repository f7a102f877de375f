#pragma once
// SPDX-License-Identifier: Apache-2.0

// Non-blocking point-to-point messages of one generation. Every wait polls, and ends with peer_lost as soon
// as the generation is broken, no matter which rank was to send the message. Before peer_lost is thrown the
// generation is revoked, so that no rank waits for this one, and everything pending is completed, so
// that no buffer is written to after the unwinding has freed it. A tag says what a message is
// and in which section of the generation it was sent; a section is entered by all members together, once
// per try of a step, so an old message cannot be taken for a new one: (communicator, tag) is
// (generation, step and attempt, kind, item).

#include <atomic>
#include <chrono>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "executor/mpi/generation.hpp"
#include "executor/mpi/polling.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::mpi {

enum class channel : std::uint8_t { activation, gradient, reduce_sums, reduce_values, scalars, control, copy, move, shards, parameters, replica };

class messenger {
public:
    using ticket = std::size_t;

    /// @param heartbeat counted up while a wait polls, and by alive()
    /// @pre the generation outlives the messenger
    explicit messenger(generation const& members, std::atomic<std::uint64_t>* heartbeat = nullptr) : generation_{&members}, heartbeat_{heartbeat} {}
    ~messenger() { drain(); }
    messenger(messenger const&) = delete;
    messenger& operator=(messenger const&) = delete;

    /// Called now and then while a wait polls: for what goes on beside it. May throw peer_lost; must not wait.
    void set_idle_work(std::function<void()> idle_work) { idle_work_ = std::move(idle_work); }

    /// Who works long between two messages says here that it continues.
    void beat() noexcept
    {
        if (heartbeat_ != nullptr) {
            heartbeat_->fetch_add(1, std::memory_order_relaxed);
        }
    }

    /// Begins a section: messages sent in it match only receives of the same section. Between two settled votes there are
    /// at most two, and no message outlives a settled vote, so four numbers tell them apart. Messages of the channel `replica` belong to no section.
    void begin_section() { section_ = (section_ + 1) % sections; }

    /// The largest item that a message can name: MPIs differ in the bits of their tags, the standard asks for 15 only.
    static int largest_item();

    /// The buffer must live until the ticket is done. @pre item <= largest_item()
    template <class T>
    ticket send(rank_id to, channel kind, int item, std::span<T const> data)
    {
        return start_send(to, tag_of(kind, item), data.data(), data.size_bytes());
    }

    /// The same, but done only when the receive of the message has begun.
    template <class T>
    ticket send_synchronously(rank_id to, channel kind, int item, std::span<T const> data)
    {
        return start_send(to, tag_of(kind, item), data.data(), data.size_bytes(), true);
    }

    template <class T>
    ticket receive(rank_id from, channel kind, int item, std::span<T> data)
    {
        static_assert(std::is_trivially_copyable_v<T>);
        return start_receive(from, tag_of(kind, item), data.data(), data.size_bytes());
    }

    /// True when the message is there (receive) or its buffer is free (send). Makes progress. @throws peer_lost
    bool done(ticket which);

    /// Looks at several messages at once, for what a look at one of them costs. Makes progress. @pre none was done before
    /// @returns the places of those that are done, until the next call. @throws peer_lost
    std::vector<std::size_t> const& done_among(std::span<ticket const> all);

    /// Polls until the message is done. @throws peer_lost
    void wait(ticket which);

    /// Polls until `ready()`. @throws peer_lost
    template <class Ready>
    void wait_until(Ready&& ready)
    {
        if (ready()) {
            return;
        }
        auto const since = std::chrono::steady_clock::now();
        polling pace;
        do {
            pause(pace);
        } while (!ready());
        waited_ += std::chrono::steady_clock::now() - since;
    }

    /// How long, in all, waits have waited for others; what was there when it was asked for counts nothing.
    std::chrono::steady_clock::duration waited() const { return waited_; }

    /// What this rank has had to do with messages so far. Tests hold it against the number of ranks.
    struct work {
        std::int64_t sent = 0;   ///< messages
        std::int64_t bytes = 0;  ///< in them
        std::int64_t polls = 0;  ///< of waits for something that was not there yet
    };
    work const& done_so_far() const { return work_; }

    /// Looks whether the generation is broken. @throws peer_lost
    void throw_if_failed()
    {
        if (generation_->broken()) {
            lose();
        }
    }

    /// Looks whether ranks were lost that this one has not heard of: the MPI learns of losses in calls that make progress, and a rank that computes
    /// makes few. Costs a look at the network. @throws peer_lost
    void look_for_losses();

    /// Ends the generation for all, for one who cannot go on with it. @throws peer_lost
    [[noreturn]] void lose();

    generation const& members() const { return *generation_; }

private:
    static constexpr int channels = 11;
    static constexpr int sections = 4;

    struct pending {
        std::vector<MPI_Request> requests;
        bool in_use = false;
    };

    int tag_of(channel kind, int item) const
    {
        expects(item >= 0 && item <= largest_item_, "a message's item number is larger than the tags of this MPI can hold");
        auto const section = kind == channel::replica ? 0 : section_;
        return (item * sections + section) * channels + static_cast<int>(kind);
    }

    ticket start_send(rank_id to, int tag, void const* data, std::size_t size, bool synchronous = false);
    ticket start_receive(rank_id from, int tag, void* data, std::size_t size);
    ticket fresh();
    bool look_at_requests();    ///< whether one of them has ended
    void pause(polling& pace);  ///< looks at the generation now and then. @throws peer_lost
    void expect_success(int code, char const* call);
    void drain() noexcept;

    generation const* generation_;
    std::atomic<std::uint64_t>* heartbeat_;
    std::vector<pending> pending_;
    std::vector<ticket> free_;
    std::vector<MPI_Request*> requests_;  ///< of done_among, as the following
    std::vector<MPI_Request> handles_;
    std::vector<int> indices_;
    std::vector<MPI_Status> statuses_;
    std::vector<std::size_t> done_;
    std::chrono::steady_clock::duration waited_{};
    work work_{};
    std::function<void()> idle_work_{};
    int section_ = 0;
    int largest_item_ = largest_item();
};

}  // namespace rheo::inline v0::mpi
