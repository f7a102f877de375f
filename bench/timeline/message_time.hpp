#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a message between two ranks takes from the call that starts it to the moment at which a rank that has waited for it long has it: who
// waits long sleeps between two looks, and who has sent computes and looks after nothing. So it is in a step.

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <mpi.h>

#include "executor/mpi/messenger.hpp"
#include "executor/os/launch_clock.hpp"

namespace bench {

/// The mean of both directions between ranks 0 and 1, each the median of ten; the others wait. @return the same on all ranks
inline rheo::seconds message_time(rheo::mpi::messenger& messages, rheo::launch_clock const& clock, rheo::bytes size)
{
    constexpr int times = 10;
    auto const self = messages.members().self.value;
    auto const busy = [&](double how_long) {
        for (auto const end = clock.now().count + how_long; clock.now().count < end;) {
        }
    };
    std::vector<float> data(static_cast<std::size_t>(size.count) / sizeof(float));
    std::vector<double> took[2];
    messages.begin_section();
    for (int k = 0; k < 2 * times; ++k) {
        int const from = k % 2;
        double span[2] = {0, 0};  // the call, the end
        MPI_Barrier(MPI_COMM_WORLD);
        if (self == from) {
            busy(3e-3);
            std::fill(data.begin(), data.end(), 0.01F);
            span[0] = clock.now().count;
            auto const sent = messages.send(rheo::rank_id{1 - from}, rheo::mpi::channel::activation, k, std::span<float const>{data});
            busy(2e-3);
            messages.wait(sent);
        } else if (self == 1 - from) {
            messages.wait(messages.receive(rheo::rank_id{from}, rheo::mpi::channel::activation, k, std::span{data}));
            span[1] = clock.now().count;
        }
        MPI_Allreduce(MPI_IN_PLACE, span, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        took[from].push_back(span[1] - span[0]);
    }
    double sum = 0;
    for (auto& each : took) {
        std::nth_element(each.begin(), each.begin() + times / 2, each.end());
        sum += each[times / 2];
    }
    return {sum / 2};
}

}  // namespace bench
