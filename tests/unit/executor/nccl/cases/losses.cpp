// SPDX-License-Identifier: Apache-2.0
// A communicator over the stand-in when a peer is gone, has aborted, or does something else, and two of them on one device.
#include <algorithm>
#include <optional>

#include <fcntl.h>
#include <signal.h>

#include "members.hpp"
#include "support/catch.hpp"

namespace {

constexpr std::size_t chunk = 65536;
constexpr std::size_t length = 1000003;

std::vector<std::byte> filled(std::size_t bytes, int value) { return std::vector<std::byte>(bytes, static_cast<std::byte>(value)); }

/// What a receive has left: so many bytes of the message, then poison.
void expect_poison_after(std::size_t bytes, on_device<std::byte> const& place)
{
    auto whole = filled(place.count, 0xff);
    std::fill_n(whole.begin(), bytes, std::byte{3});
    expect(place.read() == whole, "what was not received is no poison, or what was received was lost");
}

/// Two communicators of two ranks, each with a sum in a stream of its own; rank 1 issues them in the given order.
void sum_with_two(int rank, nccl::unique_id const& a, nccl::unique_id const& b, bool same_order, shared_counts const& met, bool finishes)
{
    auto first = up(a, 2, rank);
    auto second = up(b, 2, rank);
    auto* const one = rank == 0 || same_order ? &first : &second;
    auto* const other = one == &first ? &second : &first;
    stream const x;
    stream const y;
    on_device<std::int64_t> const p{std::vector<std::int64_t>(chunk, rank + 1)};
    on_device<std::int64_t> const q{std::vector<std::int64_t>(chunk, rank + 1)};
    one->sum(p.all(), p.data, x);
    other->sum(q.all(), q.data, y);
    met.meet(0, 2);
    if (finishes) {
        x.wait();
        y.wait();
        auto const total = std::vector<std::int64_t>(chunk, 3);
        expect(p.read() == total && q.read() == total, "another sum");
        return;
    }
    bool const is_done = x.is_done_within(100) || y.is_done_within(100);
    met.meet(1, 2);
    expect(!is_done && !x.is_done() && !y.is_done(), "they do not wait for each other");
    met.meet(2, 2);
    first.abort();
    second.abort();
    x.wait();
    y.wait();
}

bool sums_of_two(char const* mode, bool same_order, bool finish)
{
    auto const calls = standin();
    auto const a = calls->new_id();
    auto const b = calls->new_id();
    shared_counts const met;
    members pair{2, mode, [&](int rank) { sum_with_two(rank, a, b, same_order, met, finish); }};
    return pair.all_succeed();
}

}  // namespace

TEST_CASE("losses: an abort ends a receive, with poison")
{
    auto const id = standin()->new_id();
    shared_counts const step;
    members pair{2, "", [&](int rank) {
                     auto link = up(id, 2, rank);
                     stream const queue;
                     if (rank == 0) {  // sends one chunk, aborts, and its stream runs on
                         on_device<std::byte> const data{filled(length, 3)};
                         link.send(data.all(), 1, queue);
                         expect(!queue.is_done_within(3), "a message that nobody receives is done");
                         link.abort();
                         queue.wait();
                         ++step[0];
                         return;
                     }
                     step.wait(0, 1);
                     on_device<std::byte> const place{filled(length, 0x5a)};
                     on_device<std::byte> const after{filled(10, 0x5a)};
                     link.receive(place.all(), 0, queue);
                     cudaMemsetAsync(after.data, 0x11, after.count, queue.handle);
                     expect(!queue.is_done_within(100), "the abort of a peer was noticed");
                     expect(link.settled(), "it is not settled");
                     link.abort();
                     queue.wait();
                     expect_poison_after(chunk, place);
                     expect(after.read() == filled(10, 0x11), "the stream does not run on");
                 }};
    CHECK(pair.all_succeed());
}

TEST_CASE("losses: an abort ends what has not begun, too")
{
    auto const id = standin()->new_id();
    members pair{2, "", [&](int rank) {
                     auto link = up(id, 2, rank);
                     stream const first;
                     stream const second;
                     on_device<std::byte> const a{filled(100, 0x5a)};
                     on_device<std::int32_t> const b{std::vector<std::int32_t>(100, 5)};
                     link.receive(a.all(), 1 - rank, first);
                     link.sum(b.all(), b.data, second);
                     expect(!second.is_done_within(30), "it did not wait for the one before it");
                     link.abort();
                     second.wait();
                     first.wait();
                     expect_poison_after(0, a);
                     expect(b.read() == std::vector<std::int32_t>(100, -1), "what was to be a sum is no poison");
                 }};
    CHECK(pair.all_succeed());
}

TEST_CASE("losses: a killed peer is waited for without a word")
{
    auto const id = standin()->new_id();
    shared_counts const step;
    members pair{2, "", [&](int rank) {
                     auto link = up(id, 2, rank);
                     step.meet(0, 2);
                     if (rank == 1) {
                         ::raise(SIGKILL);
                     }
                     step.wait(1, 1);
                     stream const queue;
                     on_device<std::byte> const place{filled(length, 0x5a)};
                     link.receive(place.all(), 1, queue);
                     for (int k = 0; k < 100; ++k) {
                         expect(link.settled() && !queue.is_done(), "the loss was noticed");
                         ::usleep(500);
                     }
                     link.abort();
                     queue.wait();
                     expect_poison_after(0, place);
                 }};
    CHECK(pair.ended(1) == SIGKILL);
    ++step[1];
    CHECK(pair.ended(0) == 0);
}

TEST_CASE("losses: a killed peer is an error where that is asked for")
{
    auto const id = standin()->new_id();
    shared_counts const step;
    members pair{2, "remote_error", [&](int rank) {
                     auto const link = up(id, 2, rank);
                     stream const queue;
                     on_device<std::byte> const place{filled(length, 0x5a)};
                     if (rank == 0) {
                         link.receive(place.all(), 1, queue);
                         expect(!queue.is_done_within(3) && link.settled(), "it ended while the peer lives");
                     }
                     step.meet(0, 2);
                     if (rank == 1) {
                         ::raise(SIGKILL);
                     }
                     std::optional<nccl::error> seen;
                     for (int k = 0; k < 20000 && !seen; ++k) {
                         try {
                             link.settled();
                             ::usleep(500);
                         } catch (nccl::error const& e) {
                             seen = e;
                         }
                     }
                     expect(seen.has_value(), "the loss was not noticed");
                     expect(seen->code == nccl::remote_error, seen->what());
                     std::string const whole = "an operation of NCCL failed: remote process exited or there was a network error (a member is gone)";
                     expect(seen->what() == whole, seen->what());
                     queue.wait();
                     expect_poison_after(0, place);
                 }};
    CHECK(pair.ended(1) == SIGKILL);
    CHECK(pair.ended(0) == 0);
}

TEST_CASE("losses: messages that differ end the program")
{
    auto const id = standin()->new_id();
    for (int const wrong : {0, 1}) {
        CAPTURE(wrong);
        members pair{2, "", [&](int rank) {
                         ::dup2(::open("/dev/null", O_WRONLY), STDERR_FILENO);  // where it says why
                         auto link = up(id, 2, rank);
                         stream const queue;
                         on_device<std::int32_t> const place{100};
                         if (rank == 0) {
                             link.send(std::as_bytes(place.all()), 1, queue);
                             queue.is_done_within(3);
                             ::pause();
                         } else if (wrong == 0) {
                             link.receive(std::as_writable_bytes(place.all()).first(399), 0, queue);
                         } else {
                             link.sum(place.all(), place.data, queue);
                         }
                         queue.wait();
                     }};
        CHECK(pair.ended(1) == SIGABRT);
    }
}

TEST_CASE("losses: kernels without room hang in another order")
{
    CHECK(sums_of_two("exclude", true, true));
    CHECK(sums_of_two("exclude", false, false));
    CHECK(sums_of_two("", false, true));  // with room they run beside each other
}
