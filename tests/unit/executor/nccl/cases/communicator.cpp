// SPDX-License-Identifier: Apache-2.0
// A communicator over the stand-in, in processes of their own: messages, sums, and what each of its calls may say before it is through.
#include "executor/nccl/communicator.hpp"

#include <cstdint>

#include "members.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace {

std::vector<std::byte> pattern(std::size_t bytes, int seed)
{
    std::vector<std::byte> all(bytes);
    for (std::size_t k = 0; k < bytes; ++k) {
        all[k] = static_cast<std::byte>((k * 2654435761U + static_cast<std::size_t>(seed) * 97) >> 7);
    }
    return all;
}

std::vector<std::size_t> const sizes{0, 1, 65536, 1000003, 65537};

/// All messages put at once; then they are what was sent, and nothing beside them was written.
void receive_all(nccl::communicator const& link, int from)
{
    constexpr std::size_t beyond = 64;
    stream const queue;
    std::vector<on_device<std::byte>> places;
    for (auto const size : sizes) {
        places.emplace_back(std::vector<std::byte>(size + beyond, std::byte{0x5a}));
    }
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        link.receive(places[k].all().first(sizes[k]), from, queue);
    }
    queue.wait();
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        auto whole = pattern(sizes[k], static_cast<int>(k) + from);
        whole.resize(sizes[k] + beyond, std::byte{0x5a});
        expect(places[k].read() == whole, "message " + std::to_string(k) + " is not what was sent");
    }
}

void send_all(nccl::communicator const& link, int to)
{
    stream const queue;
    std::vector<on_device<std::byte>> places;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        places.emplace_back(pattern(sizes[k], static_cast<int>(k) + 1 - to));
    }
    for (auto const& place : places) {
        link.send(place.all(), to, queue);
    }
    queue.wait();
}

template <class T>
T term(int rank, std::size_t k)
{
    auto const bits = (k + 1) * 0x9e3779b97f4a7c15U * (static_cast<std::size_t>(rank) + 3);
    return static_cast<T>(static_cast<std::int64_t>(bits) >> (sizeof(T) == 4 ? 36 : 4));  // five of them do not wrap around
}

template <class T>
void check_sum(nccl::communicator const& all, int rank, std::size_t count, bool in_place)
{
    std::vector<T> mine(count);
    std::vector<T> plain(count, T{0});
    for (std::size_t k = 0; k < count; ++k) {
        mine[k] = term<T>(rank, k);
        for (int r = 0; r < all.ranks(); ++r) {
            plain[k] += term<T>(r, k);
        }
    }
    on_device<T> const from{mine};
    on_device<T> const to{std::vector<T>(count, T{7})};
    stream const queue;
    all.sum(from.all(), in_place ? from.data : to.data, queue);
    queue.wait();
    auto const what = std::to_string(count) + " of " + std::to_string(sizeof(T)) + " bytes" + (in_place ? " in place" : "");
    expect((in_place ? from : to).read() == plain, "another sum: " + what);
    expect(in_place || from.read() == mine, "the terms were changed: " + what);
}

}  // namespace

TEST_CASE("communicator: messages arrive whole and in order")
{
    auto const id = standin()->new_id();
    members pair{2, "", [&](int rank) {
                     auto const link = up(id, 2, rank);
                     rank == 0 ? send_all(link, 1) : receive_all(link, 0);
                     rank == 0 ? receive_all(link, 1) : send_all(link, 0);
                 }};
    CHECK(pair.all_succeed());
}

TEST_CASE("communicator: a send is done when all of it was received")
{
    for (std::size_t const size : {std::size_t{1}, std::size_t{0}, std::size_t{200000}}) {
        CAPTURE(size);
        auto const id = standin()->new_id();
        shared_counts const seen;
        members pair{2, "", [&](int rank) {
                         auto const link = up(id, 2, rank);
                         stream const queue;
                         on_device<std::byte> const place{size};
                         if (rank == 0) {
                             link.send(place.all(), 1, queue);
                             expect(!queue.is_done_within(30), "it is done before the receiver has begun");
                             ++seen[0];
                         } else {
                             seen.wait(0, 1);
                             link.receive(place.all(), 0, queue);
                         }
                         queue.wait();
                     }};
        CHECK(pair.all_succeed());
    }
}

TEST_CASE("communicator: members of a group exchange at once")
{
    constexpr int ranks = 3;
    auto const id = standin()->new_id();
    // each sends before it receives, and no send is done before it was received
    members group{ranks, "", [&](int rank) {
                      auto const all = up(id, ranks, rank);
                      stream const queue;
                      auto const size_of = [](int from, int to) { return static_cast<std::size_t>(70000 * (from + 1) + to); };
                      std::vector<on_device<std::byte>> sent;
                      std::vector<on_device<std::byte>> received;
                      std::vector<nccl::communicator::outgoing> out;
                      std::vector<nccl::communicator::incoming> in;
                      for (int k = 0; k < ranks; ++k) {
                          for (int turn = 0; turn < 2 && k != rank; ++turn) {
                              out.push_back({k, sent.emplace_back(pattern(size_of(rank, k), rank + 10 * turn)).all()});
                              in.push_back({k, received.emplace_back(size_of(k, rank)).all()});
                          }
                      }
                      all.exchange(out, in, queue);
                      queue.wait();
                      for (std::size_t k = 0; k < in.size(); ++k) {
                          auto const turn = static_cast<int>(k % 2);
                          expect(received[k].read() == pattern(in[k].data.size(), in[k].from + 10 * turn), "a message is not what was sent");
                      }
                  }};
    CHECK(group.all_succeed());
}

TEST_CASE("communicator: operations run in the order of issue")
{
    auto const id = standin()->new_id();
    members pair{2, "", [&](int rank) {  // in two streams, and the second is asked first
                     auto const link = up(id, 2, rank);
                     stream const first;
                     stream const second;
                     on_device<std::byte> const a{std::vector<std::byte>(100000, std::byte(rank == 0 ? 1 : 9))};
                     on_device<std::byte> const b{std::vector<std::byte>(100000, std::byte(rank == 0 ? 2 : 9))};
                     if (rank == 0) {
                         link.send(a.all(), 1, first);
                         link.send(b.all(), 1, first);
                     } else {
                         link.receive(a.all(), 0, first);
                         link.receive(b.all(), 0, second);
                         second.wait();
                     }
                     first.wait();
                     expect(a.read() == std::vector<std::byte>(100000, std::byte{1}), "the first is another");
                     expect(b.read() == std::vector<std::byte>(100000, std::byte{2}), "the second is another");
                 }};
    CHECK(pair.all_succeed());
}

TEST_CASE("communicator: sums are those of plain arithmetic")
{
    for (int const ranks : {1, 2, 3, 5}) {
        CAPTURE(ranks);
        auto const id = standin()->new_id();
        members group{ranks, "", [&](int rank) {
                          auto const all = up(id, ranks, rank);
                          for (std::size_t const count : {1U, 1000U, 40001U}) {
                              for (bool const in_place : {false, true}) {
                                  check_sum<std::int32_t>(all, rank, count, in_place);
                                  check_sum<std::int64_t>(all, rank, count, in_place);
                              }
                          }
                      }};
        CHECK(group.all_succeed());
    }
}

TEST_CASE("communicator: a call in progress goes on when it is asked")
{
    auto const id = standin()->new_id();
    members pair{2, "in_progress=3", [&](int rank) {
                     auto const unsettled = [](nccl::communicator const& of) {
                         int polls = 0;
                         for (; !of.settled(); ++polls) {
                         }
                         return polls;
                     };
                     nccl::communicator const link{standin(), id, 2, rank};
                     expect(unsettled(link) >= 3, "it came up too early");
                     stream const queue;
                     on_device<std::byte> const place{pattern(70000, rank)};
                     rank == 0 ? link.send(place.all(), 1, queue) : link.receive(place.all(), 0, queue);
                     expect(queue.is_done_within(2), "the message is in its stream before that was asked");
                     try {
                         link.send(place.all(), 1 - rank, queue);
                         expect(false, "a second call was taken before the first was through");
                     } catch (nccl::error const& e) {
                         expect(e.code == nccl::invalid_argument, e.what());
                     }
                     expect(unsettled(link) == 3, "the message was not in progress for three polls");
                     queue.wait();
                     expect(place.read() == pattern(70000, 0), "another message");
                     on_device<std::int64_t> const mine{std::vector<std::int64_t>{rank + 1}};
                     link.sum(mine.all(), mine.data, queue);
                     expect(unsettled(link) == 3, "the sum was not in progress for three polls");
                     queue.wait();
                     expect(mine.read().front() == 3, "another sum");
                 }};
    CHECK(pair.all_succeed());
}

TEST_CASE("communicator: one that cannot come up is an error")
{
    members alone{1, "init_fails", [](int) {
                      auto const calls = standin();
                      try {
                          nccl::communicator const none{calls, calls->new_id(), 1, 0};
                      } catch (nccl::error const& e) {
                          expect(e.code == nccl::system_error, "another code");
                          std::string const whole = "ncclCommInitRankConfig failed: unhandled system error (the stand-in was asked to fail)";
                          expect(e.what() == whole, e.what());
                          return;
                      }
                      expect(false, "it was made");
                  }};
    CHECK(alone.all_succeed());
}

TEST_CASE("communicator: one that never comes up can be aborted")
{
    auto const id = standin()->new_id();
    for (auto const* mode : {"init_never", ""}) {  // and without the others
        CAPTURE(mode);
        members alone{1, mode, [&](int) {
                          nccl::communicator waits{standin(), id, *mode != '\0' ? 1 : 2, 0};
                          for (int k = 0; k < 100; ++k) {
                              expect(!waits.settled(), "it came up");
                          }
                          waits.abort();
                      }};
        CHECK(alone.all_succeed());
    }
}

TEST_CASE("communicator: what it begins is written to a log")
{
    temporary_folder const folder;
    auto const id = standin()->new_id();
    members pair{2, "log=" + (folder.path / "log").string(), [&](int rank) {
                     auto const link = up(id, 2, rank);
                     stream const queue;
                     on_device<std::int32_t> const place{std::vector<std::int32_t>(3, rank)};
                     link.sum(place.all(), place.data, queue);
                     queue.wait();
                 }};
    CHECK(pair.all_succeed());
    std::istringstream lines{folder.read("log")};
    int count = 0;
    int pid = 0;
    int bytes = 0;
    std::string kind;
    for (std::string of; lines >> pid >> kind >> bytes >> of; ++count) {
        CHECK(kind == "all_reduce");
        CHECK(bytes == 12);
        CHECK(of.size() == 16);
    }
    CHECK(count == 2);
}
