#pragma once
// SPDX-License-Identifier: Apache-2.0

// What every message of a job carries besides its own name: generation, step, attempt. A message that
// was sent before a loss, or for an attempt that was given up, must never be taken for a present one:
// its content may be a partial sum that is counted elsewhere by now. Communicators of their own per
// generation already keep most of them apart; the stamp does it on every transport.

#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

struct message_stamp {
    generation_id generation;
    step_id step;
    attempt_id attempt;

    friend constexpr bool operator==(message_stamp, message_stamp) = default;
};

}  // namespace rheo::inline v0
