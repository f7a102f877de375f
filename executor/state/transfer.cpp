// SPDX-License-Identifier: Apache-2.0
#include "executor/state/transfer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <span>
#include <utility>

#include "executor/device/staging_buffer.hpp"
#include "executor/state/collectives.hpp"

namespace rheo::inline v0 {

namespace {

std::vector<std::int64_t> to_words(rank_holdings const& holds)
{
    std::vector<std::int64_t> words{holds.rank.value, holds.version.value, static_cast<std::int64_t>(holds.layers.size())};
    for (auto const layer : holds.layers) {
        words.push_back(layer.value);
    }
    words.push_back(static_cast<std::int64_t>(holds.uses.size()));
    for (auto const& use : holds.uses) {
        words.push_back(use.use.value);
        words.push_back(static_cast<std::int64_t>(use.done.words.size()));
        for (auto const word : use.done.words) {
            words.push_back(std::bit_cast<std::int64_t>(word));
        }
    }
    return words;
}

rank_holdings from_words(std::vector<std::int64_t> const& words)
{
    std::size_t next = 0;
    auto const take = [&] { return words.at(next++); };
    rank_holdings holds;
    holds.rank.value = static_cast<std::int32_t>(take());
    holds.version.value = take();
    for (auto count = take(); count > 0; --count) {
        holds.layers.push_back(layer_id{static_cast<std::int32_t>(take())});
    }
    for (auto count = take(); count > 0; --count) {
        use_holding use{use_id{static_cast<std::int32_t>(take())}, {}};
        for (auto length = take(); length > 0; --length) {
            use.done.words.push_back(std::bit_cast<std::uint64_t>(take()));
        }
        holds.uses.push_back(std::move(use));
    }
    return holds;
}

// Items of messages: four per tensor (three roles, and the bundle that it is the first of), three per use (sums, state, states of rows).
int copy_item(tensor_id t, int part) { return t.value * 4 + part; }
int move_item(use_id use, int part) { return use.value * 3 + part; }

/// An accumulator's state as it travels.
using packed_state = std::array<std::int64_t, 5>;

packed_state packed(gradient_accumulator const& from)
{
    auto const& state = from.state;
    return {state.scale_log2, std::bit_cast<std::int32_t>(state.max_abs), state.overflow ? 1 : 0, state.not_finite ? 1 : 0, from.not_finite_at.value};
}

void unpack(packed_state const& words, gradient_accumulator& into)
{
    into.state = {.scale_log2 = static_cast<int>(words[0]),
                  .max_abs = std::bit_cast<float>(static_cast<std::int32_t>(words[1])),
                  .overflow = words[2] != 0,
                  .not_finite = words[3] != 0};
    into.not_finite_at.value = static_cast<std::int32_t>(words[4]);
}

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

}  // namespace

std::vector<rank_holdings> gather_holdings(mpi::messenger& messages, rank_holdings const& mine)
{
    std::vector<rank_holdings> all;
    for (auto const& words : all_gather(messages, to_words(mine))) {
        all.push_back(from_words(words));
    }
    return all;
}

std::vector<staged_accumulator> transfer(mpi::messenger& messages, recovery_plan const& plan, resident_state& state, std::function<void()> const& begun,
                                         std::function<void(tensor_id)> const& arrived)
{
    auto const self = messages.members().self;
    std::vector<mpi::messenger::ticket> sends;
    std::deque<packed_state> states;
    std::deque<array<float>> floats;
    std::deque<array<std::int64_t>> integers;
    std::deque<array<std::int32_t>> short_integers;
    std::deque<array<row_sum_state>> rows;
    auto const sent = [&]<class T>(std::deque<array<T>>& copies, array<T> const& from) { return on_host(state.backend(), copies, from.data(), from.size()); };
    state.backend().wait();
    for (auto const& round : plan.rounds) {
        std::vector<arrival> arrivals;
        std::vector<bundle> outgoing;
        std::vector<bundle> coming;
        for (auto const& c : round) {
            auto const t = c.part.tensor;
            expects(c.part.box == whole(state.info(t).shape), "this executor copies whole tensors");
            auto const count = elements(state.info(t).shape);
            if (c.from == self) {
                auto const& storage = state.tensor(t);
                auto const digest = state.digest(t);
                messages.beat();
                auto& packed = bundle_for(outgoing, c.to, t).data;
                append(packed, &digest.high, sizeof digest.high);
                append(packed, &digest.low, sizeof digest.low);
                int part = 0;
                for (auto const* values : {&storage.parameter, &storage.first_moment, &storage.second_moment}) {
                    auto const data = sent(floats, *values);
                    if (is_small(count)) {
                        append(packed, data.data(), data.size_bytes());
                    } else {
                        sends.push_back(messages.send(c.to, mpi::channel::copy, copy_item(t, part++), data));
                    }
                }
            } else if (c.to == self) {
                auto const size = static_cast<std::size_t>(count);
                auto& where = state.backend().messages();
                auto& packed = bundle_for(coming, c.from, t).data;
                auto& a = arrivals.emplace_back(arrival{t, c.from, {{where, size}, {where, size}, {where, size}, array<bfloat16>{where}}, packed.size()});
                packed.resize(packed.size() + bundled_bytes(count));
                int part = 0;
                for (auto* values : {&a.values.parameter, &a.values.first_moment, &a.values.second_moment}) {
                    if (!is_small(count)) {
                        a.tickets.push_back(messages.receive(c.from, mpi::channel::copy, copy_item(t, part++), std::span<float>{*values}));
                    }
                }
            }
        }
        for (auto const& b : outgoing) {
            sends.push_back(messages.send(b.peer, mpi::channel::copy, copy_item(b.first, 3), std::span<std::byte const>{b.data}));
        }
        std::vector<mpi::messenger::ticket> bundles;
        for (auto& b : coming) {
            bundles.push_back(messages.receive(b.peer, mpi::channel::copy, copy_item(b.first, 3), std::span<std::byte>{b.data}));
        }
        begun();
        for (auto const ticket : bundles) {
            messages.wait(ticket);
        }
        for (auto& a : arrivals) {
            auto const* from = bundle_for(coming, a.from, a.tensor).data.data() + a.in_bundle;
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
            for (auto const ticket : a.tickets) {
                messages.wait(ticket);
            }
            state.put(a.tensor, std::move(a.values));
            if (state.digest(a.tensor) != expected) {
                throw transfer_error{"the copy of tensor " + state.info(a.tensor).name + " has another digest than its source"};
            }
            messages.beat();
            arrived(a.tensor);
        }
        for (auto const ticket : sends) {
            messages.wait(ticket);
        }
        sends.clear();
        floats.clear();
    }

    std::vector<staged_accumulator> staged;
    staged.reserve(plan.salvage.moves.size());
    std::vector<packed_state> incoming(plan.salvage.moves.size());
    std::vector<mpi::messenger::ticket> receipts;
    for (std::size_t i = 0; i < plan.salvage.moves.size(); ++i) {
        auto const& move = plan.salvage.moves[i];
        if (move.from == self) {
            auto& mine = state.accumulator(move.use);
            states.push_back(packed(mine));
            if (mine.rows.empty()) {
                sends.push_back(messages.send(move.to, mpi::channel::move, move_item(move.use, 0), sent(integers, mine.sums)));
            } else {
                sends.push_back(messages.send(move.to, mpi::channel::move, move_item(move.use, 0), sent(short_integers, mine.sums_in_32)));
                sends.push_back(messages.send(move.to, mpi::channel::move, move_item(move.use, 2), std::as_bytes(sent(rows, mine.rows))));
            }
            sends.push_back(messages.send(move.to, mpi::channel::move, move_item(move.use, 1), std::span<std::int64_t const>{states.back()}));
        } else if (move.to == self) {
            auto const t = state.info().uses[at(move.use)].tensor;
            auto const count = static_cast<std::size_t>(elements(state.info(t).shape));
            bool const in_rows = state.sums_in_rows(state.info(t));
            auto& s = staged.emplace_back(staged_accumulator{move.use});
            auto& where = state.backend().messages();
            s.sums.reset(new gradient_accumulator{
                {where, in_rows ? 0 : count}, {where, in_rows ? count : 0}, {where, in_rows ? state.scales_of(t).size() : 0}, *s.state});
            if (in_rows) {
                receipts.push_back(messages.receive(move.from, mpi::channel::move, move_item(move.use, 0), std::span<std::int32_t>{s.sums->sums_in_32}));
                receipts.push_back(messages.receive(move.from, mpi::channel::move, move_item(move.use, 2),
                                                    std::as_writable_bytes(std::span{s.sums->rows.data(), s.sums->rows.size()})));
            } else {
                receipts.push_back(messages.receive(move.from, mpi::channel::move, move_item(move.use, 0), std::span<std::int64_t>{s.sums->sums}));
            }
            receipts.push_back(messages.receive(move.from, mpi::channel::move, move_item(move.use, 1), std::span<std::int64_t>{incoming[i]}));
        }
    }
    begun();
    for (auto const ticket : receipts) {
        messages.wait(ticket);
    }
    for (auto const ticket : sends) {
        messages.wait(ticket);
    }
    for (std::size_t i = 0, s = 0; i < plan.salvage.moves.size(); ++i) {
        if (plan.salvage.moves[i].to == self) {
            unpack(incoming[i], *staged[s++].sums);
        }
    }
    return staged;
}

}  // namespace rheo::inline v0
