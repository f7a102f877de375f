// SPDX-License-Identifier: Apache-2.0
#include "executor/state/tensor_copies.hpp"

#include <algorithm>
#include <cstring>
#include <deque>
#include <span>
#include <utility>

#include "executor/device/staging_buffer.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

// Items of messages, four per tensor: its three roles, and the bundle that it is the first of.
constexpr int bundle_part = 3;
int copy_item(tensor_id t, int part) { return t.value * 4 + part; }

/// What goes from one rank to another in a round: a bundle with the digests of all tensors and the values of the small ones, and three
/// messages for each large one. A model has many small tensors, and a message that has to wait for a core is dear.
constexpr std::int64_t small_elements = 4096;
constexpr std::size_t digest_bytes = 16;

bool is_small(std::int64_t elements) { return elements <= small_elements; }

/// Bytes of a tensor in a bundle.
std::size_t bundled_bytes(std::int64_t elements) { return digest_bytes + (is_small(elements) ? 3 * sizeof(float) * static_cast<std::size_t>(elements) : 0); }

struct bundle {
    rank_id peer;
    tensor_id first;  ///< that is in it
    std::vector<std::byte> data{};
};

/// The one for a peer, in the order in which peers were first met.
bundle& bundle_for(std::vector<bundle>& all, rank_id peer, tensor_id t)
{
    auto const found = std::find_if(all.begin(), all.end(), [&](bundle const& b) { return b.peer == peer; });
    return found != all.end() ? *found : all.emplace_back(bundle{peer, t});
}

void append(std::vector<std::byte>& bytes, void const* from, std::size_t size)
{
    auto const* const data = static_cast<std::byte const*>(from);
    bytes.insert(bytes.end(), data, data + size);
}

/// A tensor on its way to this rank.
struct arrival {
    tensor_id tensor;
    rank_id from;
    tensor_storage values;  ///< in messages
    std::size_t in_bundle;  ///< where its digest, and values if it is small, begin
    std::vector<mpi::messenger::ticket> tickets{};
};

/// The copies of one round as this rank takes part in them. Buffers live until their messages were waited for.
class copy_round {
public:
    copy_round(mpi::messenger& messages, resident_state& state) : messages_{messages}, state_{state} {}

    void send(copy const& c)
    {
        auto const t = c.part.tensor;
        auto const& storage = state_.tensor(t);
        auto const digest = state_.digest(t);
        messages_.beat();
        auto& packed = bundle_for(outgoing_, c.to, t).data;
        append(packed, &digest.high, sizeof digest.high);
        append(packed, &digest.low, sizeof digest.low);
        int part = 0;
        for (auto const* values : {&storage.parameter, &storage.first_moment, &storage.second_moment}) {
            auto const data = on_host(state_.backend(), floats_, values->data(), values->size());
            if (is_small(static_cast<std::int64_t>(values->size()))) {
                append(packed, data.data(), data.size_bytes());
            } else {
                sends_.push_back(messages_.send(c.to, mpi::channel::copy, copy_item(t, part++), data));
            }
        }
    }

    void receive(copy const& c)
    {
        auto const t = c.part.tensor;
        auto const count = elements(state_.info(t).shape);
        auto const size = static_cast<std::size_t>(count);
        auto& where = state_.backend().messages();
        auto& packed = bundle_for(coming_, c.from, t).data;
        auto& a = arrivals_.emplace_back(arrival{t, c.from, {{where, size}, {where, size}, {where, size}, array<bfloat16>{where}}, packed.size()});
        packed.resize(packed.size() + bundled_bytes(count));
        int part = 0;
        for (auto* values : {&a.values.parameter, &a.values.first_moment, &a.values.second_moment}) {
            if (!is_small(count)) {
                a.tickets.push_back(messages_.receive(c.from, mpi::channel::copy, copy_item(t, part++), std::span<float>{*values}));
            }
        }
    }

    void post_bundles()
    {
        for (auto const& b : outgoing_) {
            sends_.push_back(messages_.send(b.peer, mpi::channel::copy, copy_item(b.first, bundle_part), std::span<std::byte const>{b.data}));
        }
        for (auto& b : coming_) {
            bundles_.push_back(messages_.receive(b.peer, mpi::channel::copy, copy_item(b.first, bundle_part), std::span<std::byte>{b.data}));
        }
    }

    void wait(std::function<void(tensor_id)> const& arrived)
    {
        wait_for(bundles_);
        for (auto& a : arrivals_) {
            take(a);
            arrived(a.tensor);
        }
        wait_for(sends_);
    }

private:
    void wait_for(std::vector<mpi::messenger::ticket> const& tickets)
    {
        for (auto const ticket : tickets) {
            messages_.wait(ticket);
        }
    }

    /// Puts a tensor into the state. @throws exit_error when its digest is not that of its source
    void take(arrival& a)
    {
        auto const* from = bundle_for(coming_, a.from, a.tensor).data.data() + a.in_bundle;
        state_digest expected;
        std::memcpy(&expected.high, from, sizeof expected.high);
        std::memcpy(&expected.low, from + sizeof expected.high, sizeof expected.low);
        from += digest_bytes;
        for (auto* values : {&a.values.parameter, &a.values.first_moment, &a.values.second_moment}) {
            if (a.tickets.empty()) {  // it is small
                std::memcpy(values->data(), from, values->size() * sizeof(float));
                from += values->size() * sizeof(float);
            }
        }
        wait_for(a.tickets);
        state_.put(a.tensor, std::move(a.values));
        if (state_.digest(a.tensor) != expected) {
            throw exit_error{exit_code::environment, "the copy of tensor " + state_.info(a.tensor).name + " has another digest than its source"};
        }
        messages_.beat();
    }

    mpi::messenger& messages_;
    resident_state& state_;
    std::vector<arrival> arrivals_;
    std::vector<bundle> outgoing_;
    std::vector<bundle> coming_;
    std::deque<array<float>> floats_;  ///< sent from a device by way of the host
    std::vector<mpi::messenger::ticket> sends_;
    std::vector<mpi::messenger::ticket> bundles_;
};

}  // namespace

void copy_tensors(mpi::messenger& messages, std::vector<copy> const& round, resident_state& state, std::function<void()> const& begun,
                  std::function<void(tensor_id)> const& arrived)
{
    auto const self = messages.members().self;
    copy_round mine{messages, state};
    for (auto const& c : round) {
        expects(c.part.box == whole(state.info(c.part.tensor).shape), "this executor copies whole tensors");
        if (c.from == self) {
            mine.send(c);
        } else if (c.to == self) {
            mine.receive(c);
        }
    }
    mine.post_bundles();
    begun();
    mine.wait(arrived);
}

}  // namespace rheo::inline v0
