#pragma once
// SPDX-License-Identifier: Apache-2.0

// How the ranks of a group exchange inside a stage. The stage says what goes to whom; how it gets there is not its concern.

#include <cstddef>
#include <cstdint>
#include <span>

#include "executor/transport/exchange_parts.hpp"

namespace rheo::inline v0 {

enum class exchange_kind : std::uint8_t {
    gather,        ///< each member's rows, or statistics, to all
    sum,           ///< nodes of a sum to who has the rows
    sum_gradient,  ///< the same in a backward
};

class group_exchange {
public:
    using outgoing = outgoing_part<int>;  ///< peers are members
    using incoming = incoming_part<int>;

    virtual ~group_exchange() = default;

    /// Messages reach what lies where kernels compute.
    virtual bool is_direct() const { return false; }

    /// Sends and receives; all of it is done on return. Between two members messages arrive in the order in which they are listed. All members make the same
    /// calls in the same order. The processor addresses the data. @throws what the transport does when a member is lost
    virtual void exchange(exchange_kind kind, std::span<outgoing const> out, std::span<incoming const> in) = 0;
    /// The same with data that lies where kernels compute. @pre is_direct()
    virtual void exchange_directly(exchange_kind kind, std::span<outgoing const> out, std::span<incoming const> in) { exchange(kind, out, in); }
};

}  // namespace rheo::inline v0
