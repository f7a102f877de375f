#pragma once
// SPDX-License-Identifier: Apache-2.0

// Messages of traces and their receives, which meet by source, destination, tag and size, first with first.

#include <cstddef>
#include <cstdint>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "rheo/trace/chakra/trace_set.hpp"

namespace rheo::inline v0 {

namespace detail {

struct traced_message {
    static constexpr std::uint32_t nothing = UINT32_MAX;

    std::int32_t from;  ///< of a message that is like this one, whose receiver is played
    std::int32_t to;
    std::uint32_t sender;             ///< as it is played
    std::uint32_t send = nothing;     ///< the step of the sender that has begun
    std::uint32_t receive = nothing;  ///< the step of the receiver that has begun
    std::int64_t bytes = 0;
    bool has_entered = false;
    bool has_arrived = false;
};

template <class OnlyWhenCalled = void>
class mailboxes {
public:
    traced_message& operator[](std::uint32_t message) { return messages_[message]; }

    /// The message of an end that begins: the first that lacks it, else another one. @param ends from and to
    std::uint32_t begin(std::pair<std::int32_t, std::int32_t> ends, std::uint32_t sender, std::uint32_t step, chakra_step const& s)
    {
        bool const sends = s.type == chakra_node_type::comm_send;
        auto& box = boxes_[{ends.first, ends.second, s.tag, s.bytes}];
        auto& lack = sends ? box.without_send : box.without_receive;
        auto message = static_cast<std::uint32_t>(messages_.size());
        if (lack.empty()) {
            messages_.push_back({.from = ends.first, .to = ends.second, .sender = sender, .bytes = s.bytes});
            (sends ? box.without_receive : box.without_send).push(message);
        } else {
            message = lack.front();
            lack.pop();
        }
        (sends ? messages_[message].send : messages_[message].receive) = step;
        return message;
    }

private:
    struct mailbox {
        std::queue<std::uint32_t> without_send;
        std::queue<std::uint32_t> without_receive;
    };

    std::vector<traced_message> messages_;
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int64_t>, mailbox> boxes_;  ///< source, destination, tag, bytes
};

}  // namespace detail
}  // namespace rheo::inline v0
