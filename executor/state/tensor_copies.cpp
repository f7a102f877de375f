// SPDX-License-Identifier: Apache-2.0
#include "executor/state/tensor_copies.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "executor/reshard/message_exchange.hpp"
#include "executor/reshard/plan_streams.hpp"
#include "executor/state/copy_digest.hpp"
#include "executor/state/messenger_transport.hpp"
#include "rheo/plan/keepers.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

/// A message is sent and hashed while it is in the cache.
constexpr std::size_t wished_message = std::size_t{1} << 20U;

/// What is shorter travels with others, in buffers; the rest is sent from where it lies and received where it stays. Digests join the last message of a
/// stream where that is short.
constexpr std::size_t short_message = std::size_t{64} << 10U;

state_array& values_in(tensor_storage& storage, tensor_role role, committed_roles roles)
{
    if (role == tensor_role::parameter) {
        return roles == committed_roles::copy ? storage.stored : storage.parameter;
    }
    return role == tensor_role::first_moment ? storage.first_moment : storage.second_moment;
}

constexpr std::array copied_roles{tensor_role::parameter, tensor_role::first_moment, tensor_role::second_moment};

/// The digests of the tensors of a stream, in its order.
struct digest_table {
    std::vector<tensor_id> tensors{};
    std::vector<state_digest> digests{};
};

/// A tensor on its way to this rank.
struct arrival {
    tensor_storage values;
    std::size_t transfers = 0;  ///< that are still to come
    state_digest expected{};    ///< as the senders have it
    state_digest found{};
};

class plan_run {
public:
    plan_run(mpi::messenger& messages, reshard_plan const& plan, collection const& of, resident_state& state)
        : messages_{messages},
          plan_{plan},
          of_{of},
          state_{state},
          self_{messages.members().self},
          copy_rows_{rows_of(state.backend())},
          transport_{messages, state.backend().messages()},
          exchange_{transport_, copy_rows_, [this](detail::packed_box const& box, std::byte const* bytes) { observe(box, bytes); }},
          message_bytes_{detail::message_length(plan, wished_message)}
    {
        std::set<tensor_id> sent;
        for (auto const& t : plan.transfers) {
            position_of_.resize(std::max({position_of_.size(), at(t.from) + 1, at(t.to) + 1}));
            if (t.to == self_) {
                ++transfers_of_[t.tensor];
            } else if (t.from == self_ && sent.insert(t.tensor).second) {
                bool const optimizer = has_role(roles_of(t.tensor), tensor_role::second_moment);
                expects(optimizer ? state.keeps(own(t.tensor)) : state.holds(own(t.tensor)), "a rank sends what it holds");
                add(held_, t.tensor, state.tensor(own(t.tensor)));
            }
        }
        held_.sort();
        for (std::size_t r = 0; r < position_of_.size(); ++r) {
            position_of_[r] = static_cast<int>(r);
        }
    }

    void run(array_view<transfer const> round, std::function<void()> const& begun, std::function<void(tensor_id)> const& arrived)
    {
        make_room(round);
        auto streams = detail::streams_of(plan_, round, {self_, held_, wanted_, position_of_}, {message_bytes_, short_message});
        incoming_ = tables_of(round, [&](transfer const& t) { return t.to == self_ ? std::optional{t.from} : std::nullopt; });
        outgoing_ = tables_of(round, [&](transfer const& t) { return t.from == self_ ? std::optional{t.to} : std::nullopt; });
        append(streams.incoming, incoming_);
        append(streams.outgoing, outgoing_);
        exchange_.run(streams.outgoing, streams.incoming, {}, begun);
        for (auto const& [peer, table] : incoming_) {
            for (std::size_t i = 0; i < table.tensors.size(); ++i) {
                arrivals_.at(table.tensors[i]).expected += table.digests[i];
            }
        }
        for (auto const& t : round) {
            if (t.to == self_ && --arrivals_.at(t.tensor).transfers == 0) {
                take(t.tensor);
                arrived(t.tensor);
            }
        }
    }

private:
    /// By the peer's rank, as streams name it.
    using tables = std::map<int, digest_table>;

    /// What it is in the state.
    tensor_id own(tensor_id t) const { return tensor_of(of_, t); }
    committed_roles roles_of(tensor_id t) const { return of_.tensors[at(t)].committed; }

    static row_copier rows_of(compute_backend& backend)
    {
        if (backend.has_one_memory()) {
            return {};
        }
        return [&backend](row_block const& block) {
            for (std::size_t row = 0; row < block.rows; ++row) {
                auto const distance = static_cast<std::ptrdiff_t>(row);
                backend.copy(block.to + distance * block.to_pitch, block.from + distance * block.from_pitch, block.row_bytes);
            }
            backend.wait();
        };
    }

    void add(detail::local_arrays& arrays, tensor_id t, tensor_storage& storage)
    {
        for (auto const role : copied_roles) {
            if (has_role(roles_of(t), role)) {
                auto& values = values_in(storage, role, roles_of(t));
                auto const element = static_cast<std::ptrdiff_t>(values.element_bytes());
                auto const row = static_cast<std::ptrdiff_t>(of_.tensors[at(t)].shape.columns) * element;
                arrays.add(t, role, {whole(plan_.tensors[at(t)].shape), values.data(), {row, element}, values.element_bytes(), arrays_++});
            }
        }
    }

    /// For the tensors of which the first pieces come in this round.
    void make_room(array_view<transfer const> round)
    {
        auto& where = state_.backend().own();
        auto const master = state_.backend().policy().master;
        std::vector<std::pair<state_array*, std::size_t>> arrays;
        std::vector<std::size_t> sizes;
        std::vector<tensor_id> coming;
        for (auto const& t : round) {
            if (t.to != self_ || arrivals_.contains(t.tensor)) {
                continue;
            }
            auto& mine = arrivals_.emplace(t.tensor, arrival{empty_storage(where, master)}).first->second;
            mine.transfers = transfers_of_.at(t.tensor);
            coming.push_back(t.tensor);
            for (auto const role : copied_roles) {
                if (has_role(roles_of(t.tensor), role)) {
                    auto& values = values_in(mine.values, role, roles_of(t.tensor));
                    arrays.emplace_back(&values, static_cast<std::size_t>(elements(of_.tensors[at(t.tensor)].shape)));
                    sizes.push_back(arrays.back().second * values.element_bytes());
                }
            }
        }
        auto const taken = where.take_all(sizes);
        for (std::size_t i = 0; i < taken.size(); ++i) {
            arrays[i].first->adopt(taken[i], arrays[i].second);
        }
        for (auto const t : coming) {
            add(wanted_, t, arrivals_.at(t).values);
        }
        wanted_.sort();
    }

    template <class Peer>
    static tables tables_of(array_view<transfer const> round, Peer const& peer_of)
    {
        tables result;
        for (auto const& t : round) {
            if (auto const peer = peer_of(t)) {
                auto& table = result[peer->value];
                if (table.tensors.empty() || table.tensors.back() != t.tensor) {  // ascending in a round
                    table.tensors.push_back(t.tensor);
                    table.digests.emplace_back();
                }
            }
        }
        return result;
    }

    /// The table is the last of its stream, so it is packed when all that it is about has been.
    void append(std::vector<detail::message_stream>& streams, tables& all)
    {
        for (auto& stream : streams) {
            auto& table = all.at(stream.peer);
            auto const bytes = table.digests.size() * sizeof(state_digest);
            if (stream.messages.empty() || stream.messages.back().bytes > short_message) {
                stream.messages.emplace_back();
            }
            auto& message = stream.messages.back();
            detail::strided_box box{.dimensions = 1, .element_bytes = 1};
            box.extent[0] = static_cast<std::int64_t>(bytes);
            box.to_stride[0] = box.from_stride[0] = 1;
            message.boxes.push_back({box, reinterpret_cast<std::byte*>(table.digests.data()), message.bytes});
            message.bytes += bytes;
        }
    }

    void observe(detail::packed_box const& box, std::byte const* bytes)
    {
        if (box.of == nullptr) {  // a table
            return;
        }
        auto const t = box.of->tensor;
        bool const comes = box.of->to == self_;
        auto& storage = comes ? arrivals_.at(t).values : state_.tensor(own(t));
        auto const place = box.user - values_in(storage, box.role, roles_of(t)).data();
        auto size = box.box.element_bytes;
        for (std::size_t d = 0; d < box.box.dimensions; ++d) {
            size *= static_cast<std::size_t>(box.box.extent[d]);
        }
        auto const digest = digest_of_copy(t, box.role, place, {bytes, size});
        if (comes) {
            arrivals_.at(t).found += digest;
        } else {
            auto& table = outgoing_.at(box.of->to.value);
            auto const entry = std::lower_bound(table.tensors.begin(), table.tensors.end(), t) - table.tensors.begin();
            table.digests[static_cast<std::size_t>(entry)] += digest;
        }
    }

    /// Moves a tensor that is complete into the state. @throws exit_error when its digest is not that of its sources
    void take(tensor_id t)
    {
        auto& mine = arrivals_.at(t);
        if (mine.found != mine.expected) {
            throw exit_error{exit_code::environment, "the copy of tensor " + of_.tensors[at(t)].name + " has another digest than its source"};
        }
        state_.put(own(t), std::move(mine.values), roles_of(t));
        messages_.beat();
    }

    mpi::messenger& messages_;
    reshard_plan const& plan_;
    collection const& of_;
    resident_state& state_;
    rank_id self_;
    row_copier copy_rows_;
    std::map<tensor_id, arrival> arrivals_{};  ///< outlive the messages into them
    tables incoming_{};
    tables outgoing_{};
    messenger_transport transport_;
    detail::message_exchange exchange_;
    std::size_t message_bytes_;
    std::size_t arrays_ = 0;
    detail::local_arrays held_{};
    detail::local_arrays wanted_{};
    std::vector<int> position_of_{};                   ///< ranks are their own numbers here
    std::map<tensor_id, std::size_t> transfers_of_{};  ///< to this rank
};

}  // namespace

void copy_tensors(mpi::messenger& messages, reshard_plan const& plan, collection const& of, resident_state& state, std::function<void()> const& begun,
                  std::function<void(tensor_id)> const& arrived)
{
    state.backend().wait();
    plan_run mine{messages, plan, of, state};
    auto const* next = plan.transfers.data();
    auto const* const end = next + plan.transfers.size();
    while (next != end) {
        auto const* const first = next;
        next = std::find_if(first, end, [&](transfer const& t) { return t.round != first->round; });
        mine.run({first, static_cast<std::size_t>(next - first)}, begun, arrived);
    }
}

}  // namespace rheo::inline v0
