// SPDX-License-Identifier: Apache-2.0
// A message that was sent for one section is not taken for one of another, and one kind of message not for another, while both have the same sender and
// the same item. Four sections are distinguished, which is twice as many as can be on their way.
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include <mpi.h>

#include "executor/mpi/messenger.hpp"

using namespace rheo;

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    bool right = true;
    {
        auto const members = mpi::first_generation(MPI_COMM_WORLD, generation_id{0}, 1);
        rank_id const from{0};
        rank_id const to{1};
        std::vector<std::int64_t> const sent{100, 101, 102, 103};
        std::vector<std::int64_t> const of_another_kind{200, 201, 202, 203};
        mpi::messenger messages{members};
        std::vector<mpi::messenger::ticket> sends;
        for (std::size_t section = 0; section < sent.size(); ++section) {
            messages.begin_section();
            if (members.self == from) {
                sends.push_back(messages.send(to, mpi::channel::scalars, 5, std::span<std::int64_t const>{&sent[section], 1}));
                sends.push_back(messages.send(to, mpi::channel::control, 5, std::span<std::int64_t const>{&of_another_kind[section], 1}));
            }
        }
        auto const received = [&](mpi::channel kind) {
            std::int64_t value = -1;
            messages.wait(messages.receive(from, kind, 5, std::span{&value, 1}));
            return value;
        };
        auto const expect_value = [&](mpi::channel kind, std::int64_t expected, char const* what) {
            if (auto const value = received(kind); value != expected) {
                std::printf("%s: expected the message %lld, not %lld\n", what, static_cast<long long>(expected), static_cast<long long>(value));
                right = false;
            }
        };
        for (std::size_t i = 0; members.self == to && i < sent.size(); ++i) {
            auto const section = (i + 3) % 4;  // the one at hand, then each again in its turn; the kind that was sent last comes first
            expect_value(mpi::channel::control, of_another_kind[section], "of the second kind");
            expect_value(mpi::channel::scalars, sent[section], "of the first kind");
            messages.begin_section();
        }
        for (auto const ticket : sends) {
            messages.wait(ticket);
        }
    }
    MPI_Finalize();
    return right ? 0 : 1;
}
