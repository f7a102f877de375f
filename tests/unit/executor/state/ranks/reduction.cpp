// SPDX-License-Identifier: Apache-2.0
// Units that three ranks sum in many rounds, against sums of all their integers made here: for ties, for some keepers, in any order of units.
#include "executor/state/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "executor/host/backend.hpp"
#include "executor/transport/mpi_transport.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/parameter_bytes.hpp"
#include "rheo/model/state.hpp"
#include "support/catch.hpp"
#include "support/mpi_ranks.hpp"

using namespace rheo;

namespace {

/// The integers of rank, use and element: of few digits, so that doubles are exact.
std::int64_t integer_of(rank_id rank, use_id use, std::int64_t element)
{
    auto bits = static_cast<std::uint64_t>(rank.value) * 0x9E3779B97F4A7C15U + static_cast<std::uint64_t>(use.value) * 0xD1B54A32D192ED03U +
                static_cast<std::uint64_t>(element) * 0x8CB92BA72F3D8DD7U;
    bits ^= bits >> 29U;
    bits *= 0xBF58476D1CE4E5B9U;
    return static_cast<std::int64_t>(bits >> 40U) - (std::int64_t{1} << 23);
}

/// Rank 0 has layers 0 to 2, rank 1 has 1 to 3, rank 2 all: the tied table has its first end on 0, its last on 1, both on 2.
bool has_layer(rank_id rank, layer_id layer) { return rank.value == 2 || (rank.value == 0 ? layer.value < 3 : layer.value > 0); }

struct setup {
    mpi_ranks ranks;
    collection info = state_of(fused(gpt_model({.vocabulary = 701, .context = 16, .width = 64, .heads = 4, .blocks = 2, .tied = true})));
    std::vector<reduction_unit> units = reduction_units(info, 4);
    host_backend backend;
    resident_state state{info, backend};

    explicit setup(dtype_policy const& policy) : backend{1, policy}
    {
        state.begin_scales(8);
        for (use_id use{0}; at(use) < info.uses.size(); ++use) {
            if (has_layer(ranks.self(), info.uses[at(use)].layer)) {
                auto& sums = state.accumulator(use);
                for (std::size_t i = 0; i < sums.sums.size(); ++i) {
                    sums.sums[i] = integer_of(ranks.self(), use, static_cast<std::int64_t>(i));
                }
                for (std::size_t i = 0; i < sums.sums_in_32.size(); ++i) {
                    sums.sums_in_32[i] = static_cast<std::int32_t>(integer_of(ranks.self(), use, static_cast<std::int64_t>(i)));
                }
            }
        }
    }

    std::vector<rank_id> holders_of(reduction_unit const& unit) const
    {
        std::vector<rank_id> holders;
        for (rank_id r{0}; r.value < 3; ++r) {
            if (std::any_of(unit.layers.begin(), unit.layers.end(), [&](layer_id l) { return has_layer(r, l); })) {
                holders.push_back(r);
            }
        }
        return holders;
    }

    std::vector<float> expected(tensor_id t) const
    {
        auto const& tensor = info.tensors[at(t)];
        auto const scales = state.scales_of(t);
        std::vector<float> values(static_cast<std::size_t>(elements(tensor.shape)));
        for (std::size_t i = 0; i < values.size(); ++i) {
            std::int64_t sum = 0;
            for (auto const use : tensor.uses) {
                for (rank_id r{0}; r.value < 3; ++r) {
                    sum += has_layer(r, info.uses[at(use)].layer) ? integer_of(r, use, static_cast<std::int64_t>(i)) : 0;
                }
            }
            auto const row = scales.size() == 1 ? 0 : i / static_cast<std::size_t>(tensor.shape.columns);
            values[i] = static_cast<float>(std::ldexp(static_cast<double>(sum), -scales[row]));
        }
        return values;
    }
};

/// Sums, in the most obvious way: everything to everyone. No sum is complete at the first poll.
class summing_transport final : public transport {
public:
    explicit summing_transport(mpi::messenger& messages) : messages_{&messages}, by_mpi_{messages, true} {}

    std::map<reduction_id, std::vector<rank_id>> holders;
    std::size_t sums_made = 0;

    rank_id self() const override { return by_mpi_.self(); }
    bool is_direct() const override { return true; }
    bool permits_allocation() const override { return true; }
    ticket send(rank_id to, mpi::channel kind, int item, std::span<std::byte const> data) override { return by_mpi_.send(to, kind, item, data); }
    ticket receive(rank_id from, mpi::channel kind, int item, std::span<std::byte> data) override { return by_mpi_.receive(from, kind, item, data); }
    std::vector<ticket> exchange(mpi::channel kind, std::span<rank_id const> group, std::span<outgoing const> out, std::span<incoming const> in) override
    {
        return by_mpi_.exchange(kind, group, out, in);
    }
    bool sums() const override { return true; }
    ticket sum(reduction_id which, std::span<std::int32_t const> mine, std::int32_t* total, bool) override { return begin(which, mine, total); }
    ticket sum(reduction_id which, std::span<std::int64_t const> mine, std::int64_t* total, bool) override { return begin(which, mine, total); }
    bool done(ticket which) override
    {
        auto& one = all_[which];
        if (++one.polls < 4) {
            return false;
        }
        while (!one.messages.empty() && messages_->done(one.messages.back())) {
            one.messages.pop_back();
        }
        if (one.messages.empty() && one.add) {
            std::exchange(one.add, {})();
        }
        return one.messages.empty();
    }
    void abandon() noexcept override {}

private:
    struct under_way {
        std::vector<ticket> messages;
        std::function<void()> add;
        int polls = 0;
    };

    template <class T>
    ticket begin(reduction_id which, std::span<T const> mine, T* total)
    {
        ++sums_made;
        auto& one = all_.emplace_back();
        auto const sent = std::make_shared<std::vector<T>>(mine.begin(), mine.end());
        auto const arrived = std::make_shared<std::deque<std::vector<T>>>();
        for (auto const holder : holders.at(which)) {
            if (holder != self()) {
                one.messages.push_back(messages_->send(holder, mpi::channel::reduce_sums, which.value, std::span<T const>{*sent}));
                one.messages.push_back(messages_->receive(holder, mpi::channel::reduce_sums, which.value, std::span{arrived->emplace_back(mine.size())}));
            }
        }
        one.add = [sent, arrived, total] {
            std::copy(sent->begin(), sent->end(), total);
            for (auto const& of_one : *arrived) {
                std::transform(of_one.begin(), of_one.end(), total, total, std::plus<>{});
            }
        };
        return all_.size() - 1;
    }

    mpi::messenger* messages_;
    mpi_transport by_mpi_;
    std::deque<under_way> all_;
};

void check_sums(dtype_policy const& policy, bool transport_sums = false)
{
    setup with{policy};
    mpi_transport by_mpi{with.ranks.messages, true};
    summing_transport by_sums{with.ranks.messages};
    transport& by = transport_sums ? static_cast<transport&>(by_sums) : by_mpi;
    auto const self = with.ranks.self();
    std::deque<reduction> reductions;
    for (std::size_t u = 0; u < with.units.size(); ++u) {
        auto const holders = with.holders_of(with.units[u]);
        if (with.units[u].tensors.empty() || !std::binary_search(holders.begin(), holders.end(), self)) {
            continue;
        }
        std::vector<rank_id> const keepers = u == 1 ? std::vector{rank_id{2}} : std::vector<rank_id>{};
        auto const& r = reductions.emplace_back(reduction_id{static_cast<std::int32_t>(u)}, with.units[u], holders, with.state, keepers);
        bytes planned;
        for (auto const t : with.units[u].tensors) {
            planned += parameter_bytes_of(with.info.tensors[at(t)].shape, policy, gradient_buffer::joined).reduced;
        }
        CHECK(r.buffer_bytes() == planned);
        by_sums.holders[reduction_id{static_cast<std::int32_t>(u)}] = holders;
        if (transport_sums) {
            reductions.back().prepare_sums();
        }
    }
    REQUIRE(reductions.size() >= 4);
    for (int repetition = 0; repetition < 2; ++repetition) {  // buffers are used again
        with.ranks.messages.begin_section();
        for (std::size_t i = 0; i < reductions.size(); ++i) {
            auto& r = reductions[self.value == 1 ? reductions.size() - 1 - i : i];
            r.reset();
            CHECK_FALSE(r.posted());
            r.post(by);
            r.advance(by);
        }
        for (auto& r : reductions) {
            with.ranks.messages.wait_until([&] { return r.advance(by); });
            auto const& keepers = r.keepers();
            for (auto const t : r.unit().tensors) {
                if (!std::binary_search(keepers.begin(), keepers.end(), self)) {
                    continue;
                }
                auto const expected = with.expected(t);
                auto const* const found = r.gradient(t);
                CHECK(std::equal(expected.begin(), expected.end(), found));
            }
        }
    }
    CHECK((by_sums.sums_made > 2 * reductions.size()) == transport_sums);  // units are summed in parts
}

}  // namespace

TEST_CASE("reduction: exact in many rounds, in any order of units") { check_sums(fp32); }

TEST_CASE("reduction: sums in 32 bits, exact in many rounds") { check_sums(fp32_i32); }

TEST_CASE("reduction: the same by a transport that sums")
{
    check_sums(fp32, true);
    check_sums(fp32_i32, true);
}

TEST_CASE("reduction: a tie on one rank is joined piece by piece")
{
    for (auto const& policy : {fp32, fp32_i32}) {
        setup with{policy};
        if (with.ranks.self() != rank_id{2}) {
            continue;
        }
        auto const& unit = with.units.back();
        reduction alone{reduction_id{0}, unit, {rank_id{2}}, with.state};
        mpi_transport by{with.ranks.messages, true};
        alone.post(by);
        REQUIRE(alone.advance(by));
        auto const t = unit.tensors.front();
        auto const& uses = with.info.tensors[at(t)].uses;
        REQUIRE(uses.size() == 2);
        auto const scales = with.state.scales_of(t);
        auto const* const found = alone.gradient(t);
        auto const width = with.info.tensors[at(t)].shape.columns;
        for (std::int64_t i = 0; i < elements(with.info.tensors[at(t)].shape); ++i) {
            auto const sum = integer_of(rank_id{2}, uses[0], i) + integer_of(rank_id{2}, uses[1], i);
            auto const row = scales.size() == 1 ? 0 : static_cast<std::size_t>(i / width);
            REQUIRE(found[i] == static_cast<float>(std::ldexp(static_cast<double>(sum), -scales[row])));
        }
        CHECK(alone.buffer_bytes() == parameter_bytes_of(with.info.tensors[at(t)].shape, policy, gradient_buffer::joined).reduced);
    }
}
