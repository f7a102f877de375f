#pragma once
// SPDX-License-Identifier: Apache-2.0

// The messages on their way between ranks, for transports that hold some: a queue per ordered pair of
// rows, or two, for activations and gradients. Each queue has one reader and one writer, so what one
// rank may do is never taken away by another, as interpret.hpp needs it.

#include <cstddef>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/transport.hpp"

namespace rheo::inline v0::detail {

template <class OnlyWhenCalled = void>
class message_queues {
public:
    /// Puts the message at the end of its queue; false when there is no place.
    constexpr bool put(fifo const& transport, std::size_t from, std::size_t to, bool up, instruction message)
    {
        auto& q = find(from, to, transport.by_direction && up);
        if (q.messages.size() - q.taken >= static_cast<std::size_t>(transport.depth)) {
            return false;
        }
        q.messages.push_back(message);
        return true;
    }

    /// Takes the message when it is the oldest of its queue.
    constexpr bool take(fifo const& transport, std::size_t from, std::size_t to, bool up, instruction message)
    {
        auto& q = find(from, to, transport.by_direction && up);
        if (q.taken == q.messages.size() || q.messages[q.taken] != message) {
            return false;
        }
        ++q.taken;
        return true;
    }

    template <class Transport>
    static constexpr bool put(Transport const&, std::size_t, std::size_t, bool, instruction)
    {
        return true;
    }
    template <class Transport>
    static constexpr bool take(Transport const&, std::size_t, std::size_t, bool, instruction)
    {
        return true;
    }

private:
    struct queue {
        std::size_t from;
        std::size_t to;
        bool up;
        std::vector<instruction> messages;
        std::size_t taken = 0;
    };

    constexpr queue& find(std::size_t from, std::size_t to, bool up)
    {
        for (auto& q : queues_) {
            if (q.from == from && q.to == to && q.up == up) {
                return q;
            }
        }
        queues_.push_back({from, to, up, {}});
        return queues_.back();
    }

    std::vector<queue> queues_;
};

}  // namespace rheo::inline v0::detail
