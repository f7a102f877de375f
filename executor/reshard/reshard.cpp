// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/reshard.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "executor/mpi/communicator.hpp"
#include "executor/reshard/array_check.hpp"
#include "executor/reshard/message_exchange.hpp"
#include "executor/reshard/node_transport.hpp"
#include "executor/reshard/plan_streams.hpp"
#include "executor/reshard/sum_order.hpp"
#include "rheo/reshard/detail/check_request.hpp"

namespace rheo::inline v0 {

namespace {

/// The ranks of the plan by the communicator's numbers, and the other way round; -1: not in it.
struct numbering {
    rank_id self{-1};
    std::vector<int> position_of{};
    std::string fault{};
};

numbering number_ranks(mpi::communicator const& comm, reshard_plan const& plan, std::vector<rank_id> members)
{
    numbering result;
    auto const size = static_cast<std::size_t>(comm.size());
    if (members.empty()) {
        for (std::size_t i = 0; i < size; ++i) {
            members.push_back(rank_id{static_cast<std::int32_t>(i)});
        }
    }
    if (members.size() != size) {
        result.fault = "the options name " + std::to_string(members.size()) + " members, but the communicator has " + std::to_string(size) + " ranks";
        return result;
    }
    result.self = members[static_cast<std::size_t>(comm.rank())];
    auto const position = [&](rank_id rank) -> int& {
        auto const needed = at(rank) + 1;
        result.position_of.resize(std::max(result.position_of.size(), needed), -1);
        return result.position_of[at(rank)];
    };
    for (std::size_t i = 0; i < size; ++i) {
        if (members[i].value < 0 || position(members[i]) >= 0) {
            result.fault = "the options name rank " + std::to_string(members[i].value) + (members[i].value < 0 ? ", but ranks count from 0" : " twice");
            return result;
        }
        position(members[i]) = static_cast<int>(i);
    }
    for (auto const& t : plan.transfers) {
        for (auto const rank : {t.from, t.to}) {
            if (rank.value < 0 || at(rank) >= result.position_of.size() || result.position_of[at(rank)] < 0) {
                result.fault = "the plan has a transfer between rank " + std::to_string(t.from.value) + " and rank " + std::to_string(t.to.value) +
                               ", but rank " + std::to_string(rank.value) + " is not in the communicator of " + std::to_string(size) + " ranks";
                return result;
            }
        }
    }
    return result;
}

/// Why no rank could run a plan like this, whatever its arrays; verify() finds more.
std::string fault_of(reshard_plan const& plan, reshard_options const& options)
{
    if (options.message.count < 1 || options.message > gibibytes(1)) {
        return "messages are 1 byte to 1 GiB long, not " + std::to_string(options.message.count) + " bytes";
    }
    for (std::size_t t = 0; t < plan.held.size(); ++t) {
        for (std::size_t r = 0; t < plan.tensors.size() && r < plan.held[t].element.size(); ++r) {
            auto const& held = plan.held[t].element[r];
            auto const& wanted = plan.tensors[t].element[r];
            bool const is_sum = wanted.size.count > 0 && plan.held[t].addends.has(static_cast<tensor_role>(r));
            if (is_sum ? !detail::adds_up(held, wanted) : !detail::converts(held, wanted)) {
                return "the plan moves tensor \"" + std::string{plan.tensors[t].name.view()} +
                       "\" between formats that are not converted; verify() says what is wrong with a plan";
            }
        }
    }
    if (!plan.held.empty() && plan.held.size() != plan.tensors.size()) {
        return "the plan has the formats of " + std::to_string(plan.held.size()) + " held tensors, but it has " + std::to_string(plan.tensors.size()) +
               " tensors";
    }
    int round = 0;
    for (auto const& t : plan.transfers) {
        auto const known = t.tensor.value >= 0 && at(t.tensor) < plan.tensors.size();
        if (!known || t.round < round || t.from == t.to || !contains(whole(plan.tensors[at(t.tensor)].shape), t.box) || !count_elements(t.box)) {
            return "the plan has a transfer from rank " + std::to_string(t.from.value) + " to rank " + std::to_string(t.to.value) +
                   " that no plan has; verify() says what is wrong with a plan";
        }
        round = t.round;
    }
    for (auto const& place : plan.kept) {
        for (auto const& part : place.parts) {
            if (part.tensor.value < 0 || at(part.tensor) >= plan.tensors.size() || part.box.dimensions != plan.tensors[at(part.tensor)].shape.dimensions) {
                return "the plan keeps a box that is not of its tensors; verify() says what is wrong with a plan";
            }
        }
    }
    return {};
}

/// More than this is not in the caches when it is used next.
constexpr std::int64_t cached_bytes = std::int64_t{8} << 20U;

struct prepared_round {
    detail::round_streams streams;
    std::vector<detail::local_copy> local;
};

}  // namespace

/// What a rank does in each run.
struct prepared_reshard::state {
    state(MPI_Comm caller, reshard_plan const& p, array_view<held_array const> held, array_view<wanted_array const> wanted, reshard_options o)
        : plan{p}, options{std::move(o)}, comm{mpi::duplicate(caller)}, ranks{number_ranks(comm, plan, options.members)}
    {
        arrays.fault = fault_of(plan, options);
        if (arrays.fault.empty()) {
            arrays.fault = ranks.fault;
        }
        if (arrays.fault.empty()) {
            arrays = detail::check_arrays(plan, ranks.self, held, wanted);
        }
        auto const order = detail::agree_on(comm, plan, arrays, options.message);
        auto const count = plan.transfers.empty() ? 1 : plan.transfers.back().round + 1;
        sums.emplace(plan, mine, count);
        auto kept = detail::kept_of(plan, mine);
        auto kept_bytes = kept.bytes;
        auto const message_bytes = detail::message_length(plan, static_cast<std::size_t>(options.message.count));
        auto const* next = plan.transfers.data();
        auto const* const end = next + plan.transfers.size();
        for (int r = 0; r < count; ++r) {
            auto const* const first = next;
            next = std::find_if(first, end, [&](transfer const& t) { return t.round != r; });
            auto& round = rounds.emplace_back();
            round.streams = detail::streams_of(plan, {first, static_cast<std::size_t>(next - first)}, mine, {.most = message_bytes}, order);
            round.local = r == 0 ? std::exchange(kept.copies, {}) : std::vector<detail::local_copy>{};
            if (!sums->empty()) {
                auto addends = sums->link(r, round.streams.incoming, kept_bytes);
                round.local.insert(round.local.end(), std::move_iterator{addends.begin()}, std::move_iterator{addends.end()});
            }
            moved.sent += bytes{static_cast<std::int64_t>(round.streams.sent)};
            moved.received += bytes{static_cast<std::int64_t>(round.streams.received)};
        }
        moved.kept = bytes{static_cast<std::int64_t>(kept_bytes)};
        open_transport(message_bytes);
        auto const written = (moved.received + moved.kept).count;
        exchange.emplace(*transport, options.copy_rows, detail::box_observer{},
                         written > cached_bytes ? detail::row_stores::streaming : detail::row_stores::cached);
    }

    /// Collective. Ranks of a node lend each other memory where that saves more than setting it up costs.
    void open_transport(std::size_t message_bytes)
    {
        std::size_t streams = 0;
        std::size_t packed = 0;
        for (auto const& round : rounds) {
            std::size_t now = 0;
            for (auto const& stream : round.streams.outgoing) {
                auto const before = packed;
                for (auto const& message : stream.messages) {
                    packed += detail::message_exchange::is_in_place(message, !options.copy_rows) ? 0 : message.bytes;
                }
                now += packed > before ? 1 : 0;
            }
            streams = std::max(streams, now);
        }
        std::array<std::int64_t, 2> least{-static_cast<std::int64_t>(packed), options.shared_from.count};
        mpi::check(MPI_Allreduce(MPI_IN_PLACE, least.data(), 2, MPI_INT64_T, MPI_MIN, comm.handle()), "MPI_Allreduce");
        auto const most_packed = -least[0];
        auto const shared_from = least[1];
        if (most_packed == 0 || most_packed < shared_from) {
            transport = std::make_unique<detail::mpi_transport>(comm);
        } else {
            transport = std::make_unique<detail::node_transport>(comm, message_bytes, streams * detail::message_exchange::buffered,
                                                                 static_cast<std::size_t>(std::max(shared_from, std::int64_t{0})));
        }
    }

    reshard_result run()
    {
        auto const begin = MPI_Wtime();
        sums->begin(options.copy_rows);
        for (std::size_t r = 0; r < rounds.size(); ++r) {
            auto const& [streams, local] = rounds[r];
            exchange->run(streams.outgoing, streams.incoming, local);
            if (!plan.dropped.empty()) {  // copies that are dropped are to be elsewhere
                mpi::check(MPI_Barrier(comm.handle()), "MPI_Barrier");
            }
            if (options.round_ended) {
                options.round_ended(static_cast<int>(r));
            }
        }
        auto result = moved;
        result.time = seconds{MPI_Wtime() - begin};
        return result;
    }

    reshard_plan const& plan;
    reshard_options options;
    mpi::communicator comm;
    numbering ranks;
    detail::checked_arrays arrays{};
    detail::rank_arrays const mine{ranks.self, arrays.held, arrays.wanted, ranks.position_of};
    std::optional<detail::sum_order> sums{};
    std::vector<prepared_round> rounds{};
    reshard_result moved{};
    std::unique_ptr<detail::mpi_transport> transport{};
    std::optional<detail::message_exchange> exchange{};
};

prepared_reshard::prepared_reshard(MPI_Comm comm, reshard_plan const& plan, array_view<held_array const> held, array_view<wanted_array const> wanted,
                                   reshard_options options)
    : state_{std::make_unique<state>(comm, plan, held, wanted, std::move(options))}
{
}

prepared_reshard::prepared_reshard(prepared_reshard&&) noexcept = default;
prepared_reshard& prepared_reshard::operator=(prepared_reshard&&) noexcept = default;
prepared_reshard::~prepared_reshard() = default;

reshard_result prepared_reshard::run()
{
    if (state_ == nullptr) {
        throw std::logic_error{
            "this resharding was moved away, or an error ended an earlier run: prepare it again on a communicator of the ranks that are left"};
    }
    try {
        return state_->run();
    } catch (...) {
        state_.reset();
        throw;
    }
}

reshard_result reshard(MPI_Comm comm, reshard_plan const& plan, array_view<held_array const> held, array_view<wanted_array const> wanted,
                       reshard_options const& options)
{
    return prepared_reshard{comm, plan, held, wanted, options}.run();
}

}  // namespace rheo::inline v0
