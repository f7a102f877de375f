// SPDX-License-Identifier: Apache-2.0
// NCCL on the device of one rank: its calls take our streams and memory, sums are exact, messages arrive, and an idle communicator can be aborted. What needs
// several ranks is in transport.sh.
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/nccl/communicator.hpp"
#include "executor/train/opened_backend.hpp"
#include "rheo/model/gpt.hpp"
#include "support/catch.hpp"
#include "unit/executor/stage/stage_steps.hpp"

using namespace rheo;

namespace {

template <class Ready>
void wait_until(Ready const& ready)
{
    auto const end = std::chrono::steady_clock::now() + std::chrono::seconds{60};
    while (!ready()) {
        REQUIRE(std::chrono::steady_clock::now() < end);
    }
}

/// A communicator of this rank alone, and where it works.
struct lone_rank {
    std::unique_ptr<compute_backend> backend;
    std::unique_ptr<device_stream> stream = backend->make_stream();
    std::shared_ptr<nccl::library const> calls = std::make_shared<nccl::library const>();
    nccl::communicator alone{calls, calls->new_id(), 1, 0};

    explicit lone_rank(run_config const& config) : backend{open_backend(config, gpt_model(stage_steps::small))}
    {
        wait_until([&] { return alone.settled(); });
    }
    template <class T>
    array<T> on_device(std::vector<T> const& values) const
    {
        array<T> copy{backend->own(), values.size()};
        backend->copy(copy.data(), values.data(), values.size() * sizeof(T));
        backend->wait();
        return copy;
    }
    /// What was put into the stream is done.
    void finish() const
    {
        wait_until([&] { return alone.settled(); });
        wait_until([&, last = stream->mark()] { return stream->passed(last); });
    }
    template <class T>
    std::vector<T> read(array<T> const& from) const
    {
        return copied_from(*backend, from.data(), from.size());
    }
    template <class T>
    void check_sum() const
    {
        std::vector<T> values(100003);
        for (std::size_t k = 0; k < values.size(); ++k) {
            values[k] = static_cast<T>(k * 0x9e3779b97f4a7c15U);
        }
        auto const mine = on_device(values);
        auto total = on_device(std::vector<T>(values.size()));
        alone.sum(std::span{mine.data(), mine.size()}, total.data(), stream->in_order());
        finish();
        CHECK(read(total) == values);
        alone.sum(std::span{total.data(), total.size()}, total.data(), stream->in_order());
        finish();
        CHECK(read(total) == values);
    }
};

}  // namespace

TEST_CASE("nccl: sums and messages of one rank")
{
    if (auto const found = nccl::find_nccl(); found.version == 0) {
        WARN("nothing is tested: " << found.error_if_none);
        return;
    }
    run_config config;
    config.run.device = compute_device::cuda;
    lone_rank rank{config};
    rank.check_sum<std::int32_t>();
    rank.check_sum<std::int64_t>();

    std::vector<std::byte> values(70001);
    for (std::size_t k = 0; k < values.size(); ++k) {
        values[k] = static_cast<std::byte>(k * 2654435761U >> 7);
    }
    auto sent = rank.on_device(values);
    auto received = rank.on_device(std::vector<std::byte>(values.size()));
    std::span const whole{received.data(), received.size()};
    rank.alone.exchange(std::vector<nccl::communicator::outgoing>{{0, std::span{sent.data(), 1}}, {0, std::span{sent.data() + 1, sent.size() - 1}}},
                        std::vector<nccl::communicator::incoming>{{0, whole.first(1)}, {0, whole.subspan(1)}}, rank.stream->in_order());
    rank.finish();
    CHECK(rank.read(received) == values);
    rank.alone.abort();
}
