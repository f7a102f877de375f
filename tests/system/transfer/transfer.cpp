// SPDX-License-Identifier: Apache-2.0
// Rank 0 gives, rank 1 takes. `copies`: tensors arrive with their bits, whole and in pieces, from all ranks that have them. `damaged`: one bit differs on the way, in each part in turn and in the digest,
// and the copy is rejected. `moves`: accumulators arrive with sums, scales, maxima and every combination of flags, and count only once they are merged. `safety_copies`: a keeper has the bits of
// the tensors that it keeps, and after each reduction those of their gradients.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include "executor/host/backend.hpp"
#include "executor/state/copy_digest.hpp"
#include "executor/state/reduction.hpp"
#include "executor/state/transfer.hpp"
#include "executor/train/parts/safety_copying.hpp"
#include "executor/transport/mpi_transport.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/state_layout.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/units/exit_error.hpp"

using namespace rheo;

namespace {

auto const nothing = [] {};

constexpr rank_id giver{0};
constexpr rank_id taker{1};

collection const info = state_of(gpt_model({.vocabulary = 24000, .context = 6, .width = 8, .heads = 2, .blocks = 2}));

int wrong = 0;

void check(bool right, std::string const& what)
{
    if (!right) {
        ++wrong;
        std::printf("wrong: %s\n", what.c_str());
    }
}

void fill(resident_state& state, tensor_id t)
{
    auto& tensor = state.add(t);
    auto word = mix_bits(static_cast<std::uint64_t>(t.value));
    for (auto* values : {&tensor.parameter, &tensor.first_moment, &tensor.second_moment}) {
        for (auto& value : values->floats()) {
            word = mix_bits(word + 1);
            value = static_cast<float>(word >> 40) / 1024.0F;
        }
    }
}

std::vector<tensor_id> parameters()
{
    std::vector<tensor_id> all;
    for (tensor_id t{0}; at(t) < info.tensors.size(); ++t) {
        if (info.tensors[at(t)].is_parameter) {
            all.push_back(t);
        }
    }
    return all;
}

/// From everyone but the taker.
reshard_plan copy_of(std::vector<tensor_id> const& tensors, int ranks = 2, std::optional<bytes> round_budget = {})
{
    reshard_request request;
    request.from.tensors = request.to.tensors = layout_tensors(info, committed_formats);
    std::vector<array_part> parts;
    for (auto const t : tensors) {
        parts.push_back({t, whole(request.to.tensors[at(t)].shape)});
    }
    for (rank_id rank{0}; rank.value < ranks; ++rank) {
        (rank == taker ? request.to : request.from).places.push_back({{rank}, parts});
    }
    request.round_budget = round_budget;
    auto plan = plan_reshard(request);
    check(static_cast<bool>(plan), plan.error());
    return *plan;
}

void copies(mpi::messenger& messages, std::optional<bytes> round_budget)
{
    auto const self = messages.members().self;
    auto const ranks = static_cast<int>(messages.members().members.size());
    host_backend backend{1};
    resident_state state{info, backend};
    resident_state source{info, backend};
    for (auto const t : parameters()) {
        fill(self == taker ? source : state, t);
    }
    auto const plan = copy_of(parameters(), ranks, round_budget);
    std::set<rank_id> senders;
    for (auto const& t : plan.transfers) {
        senders.insert(t.from);
    }
    check(static_cast<int>(senders.size()) == ranks - 1, "all that hold the tensors send");
    check((plan.certificate.rounds.value > 3) == round_budget.has_value(), "a budget makes rounds");
    std::vector<tensor_id> arrived;
    auto rounds = 0;
    auto const count_round = [&] { ++rounds; };
    copy_tensors(messages, plan, state.info(), state, count_round, [&](tensor_id t) { arrived.push_back(t); });
    std::sort(arrived.begin(), arrived.end());
    check(arrived == (self == taker ? parameters() : std::vector<tensor_id>{}), "each tensor arrives once");
    check(rounds == plan.certificate.rounds.value, "each round is begun");
    for (auto const t : parameters()) {
        check(self != taker || state.digest(t) == source.digest(t), "the bits of " + info.tensors[at(t)].name);
    }
}

/// Each of its roles comes in a message of its own, and so do the digests.
bool is_large(tensor_id t) { return 4 * elements(info.tensors[at(t)].shape) > 65536; }

/// The giver's messages as copy_tensors() sends them, but for one bit. @param damaged a role, or a half of the digest
void send_damaged(mpi::messenger& messages, resident_state& state, tensor_id t, int damaged)
{
    auto& storage = state.tensor(t);
    state_digest digest;
    std::vector<std::vector<std::byte>> values(1);
    auto const append = [&](std::span<std::byte const> bytes) {
        if (is_large(t) && !values.back().empty()) {
            values.emplace_back();
        }
        values.back().insert(values.back().end(), bytes.begin(), bytes.end());
    };
    auto role = tensor_role::parameter;
    for (auto* part : {&storage.parameter, &storage.first_moment, &storage.second_moment}) {
        auto const bytes = std::as_bytes(part->floats());
        digest += digest_of_copy(t, role, 0, bytes);
        append(bytes);
        if (static_cast<int>(role) == damaged) {
            values.back()[values.back().size() - 4] ^= std::byte{1};
        }
        role = static_cast<tensor_role>(static_cast<int>(role) + 1);
    }
    std::array<std::uint64_t, 2> words{digest.high, digest.low};
    if (damaged >= 3) {
        words[static_cast<std::size_t>(damaged) - 3] ^= 1U;
    }
    append(std::as_bytes(std::span{words}));
    for (auto const& message : values) {
        messages.wait(messages.send(taker, mpi::channel::copy, 0, std::span<std::byte const>{message}));
    }
}

void damaged(mpi::messenger& messages)
{
    auto const all = parameters();
    auto const large = *std::find_if(all.begin(), all.end(), is_large);
    for (int turn = 0; turn < 12; ++turn) {
        int const which = turn % 6;  // the sixth time nothing is damaged
        tensor_id const t = turn < 6 ? tensor_id{2 + which} : large;
        host_backend backend{1};
        resident_state state{info, backend};
        messages.begin_section();
        if (messages.members().self == giver) {
            fill(state, t);
            send_damaged(messages, state, t, which == 5 ? -1 : which);
            continue;
        }
        std::string said;
        bool counted = false;
        try {
            copy_tensors(messages, copy_of({t}), state.info(), state, nothing, [&](tensor_id) { counted = true; });
        } catch (exit_error const& error) {
            said = error.what();
        }
        check(which == 5 ? said.empty() : said.find(info.tensors[at(t)].name) != std::string::npos, "a damaged copy is refused, and named: '" + said + "'");
        check(counted == (which == 5), "a damaged copy is not booked");
        check(state.holds(t) == (which == 5), "a damaged copy is not taken over");
    }
}

/// Flags of the use's accumulator on a rank: with the uses every combination on the two ranks is met.
bool overflow_on(std::size_t use, rank_id rank) { return (use >> rank.value & 1U) != 0; }
bool not_finite_on(std::size_t use, rank_id rank) { return (use >> (2 + rank.value) & 1U) != 0; }

void fill(gradient_accumulator& of, std::size_t use, rank_id rank)
{
    auto const seed = static_cast<int>(use) * 100 + rank.value * 7 + 1;
    for (std::size_t i = 0; i < of.sums.size(); ++i) {
        of.sums[i] = (std::int64_t{seed} << 33) - static_cast<std::int64_t>(i);
    }
    for (std::size_t i = 0; i < of.sums_in_32.size(); ++i) {
        of.sums_in_32[i] = seed * 1000 - static_cast<std::int32_t>(i);
    }
    for (std::size_t i = 0; i < of.rows.size(); ++i) {
        of.rows[i].max_abs = static_cast<float>(seed) + static_cast<float>(i);
    }
    of.state.max_abs = static_cast<float>(seed) / 8;
    of.state.overflow = overflow_on(use, rank);
    of.state.not_finite = not_finite_on(use, rank);
    of.not_finite_at = microbatch_id{of.state.not_finite ? 3 + rank.value : -1};
}

bool same(gradient_accumulator const& a, gradient_accumulator const& b)
{
    return a.sums == b.sums && a.sums_in_32 == b.sums_in_32 && a.rows == b.rows && a.state == b.state && a.not_finite_at == b.not_finite_at;
}

/// What the taker has when both accumulators of a use are one.
void expect_sum_of_both(gradient_accumulator& have, gradient_accumulator const& giving, gradient_accumulator const& taking, std::size_t use)
{
    auto const name = "use " + std::to_string(use);
    bool right = true;
    for (std::size_t i = 0; i < have.sums.size(); ++i) {
        right = right && have.sums[i] == giving.sums[i] + taking.sums[i];
    }
    for (std::size_t i = 0; i < have.sums_in_32.size(); ++i) {
        right = right && have.sums_in_32[i] == giving.sums_in_32[i] + taking.sums_in_32[i];
    }
    for (std::size_t i = 0; i < have.rows.size(); ++i) {
        right =
            right && have.rows[i].scale_log2 == giving.rows[i].scale_log2 && have.rows[i].max_abs == std::max(giving.rows[i].max_abs, taking.rows[i].max_abs);
    }
    check(right, name + ": sums and rows are those of both");
    check(have.state.scale_log2 == giving.state.scale_log2, name + ": the scale");
    check(have.state.max_abs == std::max(giving.state.max_abs, taking.state.max_abs), name + ": the larger maximum");
    check(have.state.overflow == (overflow_on(use, giver) || overflow_on(use, taker)), name + ": whether a contribution overflowed");
    check(have.state.not_finite == (not_finite_on(use, giver) || not_finite_on(use, taker)), name + ": whether a contribution was not finite");
    check(have.not_finite_at == microbatch_id{not_finite_on(use, taker) ? 4 : not_finite_on(use, giver) ? 3 : -1}, name + ": which microbatch was not finite");
}

void moves(mpi::messenger& messages, dtype_policy const& policy)
{
    auto const self = messages.members().self;
    host_backend backend{1, policy};
    resident_state state{info, backend};
    resident_state given{info, backend};
    resident_state taken{info, backend};
    recovery_plan plan;
    for (auto* each : {&state, &given, &taken}) {
        for (std::size_t i = 0; i < each->scales.size(); ++i) {
            each->scales[i] = 20 + static_cast<int>(i % 5);
        }
    }
    check(info.uses.size() >= 16, "every combination of flags is met");
    for (use_id use{0}; at(use) < info.uses.size(); ++use) {
        fill(state.accumulator(use), at(use), self);
        fill(given.accumulator(use), at(use), giver);
        fill(taken.accumulator(use), at(use), taker);
        plan.salvage.moves.push_back({use, giver, taker, {}});
    }
    auto const staged = transfer_state(messages, plan, state.info(), state, nothing, [](tensor_id) {});
    check(staged.size() == (self == taker ? info.uses.size() : 0), "each accumulator arrives once, at the taker");
    for (use_id use{0}; at(use) < info.uses.size(); ++use) {
        check(same(state.accumulator(use), (self == giver ? given : taken).accumulator(use)),
              "use " + std::to_string(use.value) + ": what has arrived does not count yet");
    }
    for (auto const& each : staged) {
        check(same(*each.sums, given.accumulator(each.use)), "use " + std::to_string(each.use.value) + ": what has arrived is what was sent");
        state.merge(each.use, *each.sums);
        expect_sum_of_both(state.accumulator(each.use), given.accumulator(each.use), taken.accumulator(each.use), at(each.use));
    }
}

/// Sums of all uses, reduced by this rank alone.
std::deque<reduction> reduced(mpi::messenger& messages, std::vector<reduction_unit> const& units, resident_state& state)
{
    for (std::size_t i = 0; i < state.scales.size(); ++i) {
        state.scales[i] = 20 + static_cast<int>(i % 5);
    }
    for (use_id use{0}; at(use) < info.uses.size(); ++use) {
        fill(state.accumulator(use), at(use), giver);
    }
    std::deque<reduction> all;
    mpi_transport by{messages, state.backend().has_one_memory()};
    for (std::size_t u = 0; u < units.size(); ++u) {
        auto& one = all.emplace_back(reduction_id{static_cast<std::int32_t>(u)}, units[u], std::vector{messages.members().self}, state);
        one.post(by);
        messages.wait_until([&] { return one.advance(by); });
    }
    return all;
}

/// Layer 1, whose sums become floats in place, and the last one, which has the tied tensor.
void up_to_date(mpi::messenger& messages, dtype_policy const& policy, bool has_row_sums)
{
    auto const self = messages.members().self;
    constexpr int layers = 4;
    replanning const known{.state = info, .layers = layers, .ready = {}, .wanted = {}};
    membership_plan plan;
    plan.salvage.after = {{giver, step_id{1}, {layer_id{0}, layer_id{1}, layer_id{2}, layer_id{3}}, {}}, {taker, step_id{1}, {}, {}}};
    plan.safety_copies = {{layer_id{1}, giver, taker, {}}, {layer_id{layers - 1}, giver, taker, {}}};
    auto const copies = kept_tensors(plan, known);
    host_backend backend{1, policy};
    resident_state state{info, backend};
    resident_state source{info, backend};  // what the giver has, here
    auto& givers = self == giver ? state : source;
    for (auto const t : parameters()) {
        fill(givers, t);
    }

    safety_copying upkeep{self};
    upkeep.choose(plan, known);
    std::size_t arrived = 0;
    upkeep.copy_first(messages, state, [&](tensor_id) { ++arrived; });
    check(!copies.empty() && arrived == (self == taker ? copies.size() : 0), "each tensor of a safety copy arrives once");
    for (auto const& c : copies) {
        check(state.digest(c.tensor) == givers.digest(c.tensor), "the bits of " + info.tensors[at(c.tensor)].name);
    }

    auto const units = reduction_units(info, layers);
    auto reductions = reduced(messages, units, givers);
    array<float> room{backend.own(), 0};
    std::deque<reduction> const none;
    for (int step = 0; step < 2; ++step) {  // the second time in the place of the first
        upkeep.pass_gradients(messages, state, self == giver ? reductions : none, room);
    }
    check(upkeep.gradients().size() == (self == taker ? copies.size() : 0), "a keeper has one gradient of each tensor that it keeps");
    bool in_place = false;
    for (auto const& [tensor, values] : upkeep.gradients()) {
        for (auto& r : reductions) {
            if (auto const& of = r.unit().tensors; std::find(of.begin(), of.end(), tensor) != of.end()) {
                in_place = in_place || r.in_place();
                check(std::equal(values.begin(), values.end(), r.gradient(tensor)), "the gradient of " + info.tensors[at(tensor)].name);
            }
        }
    }
    check(in_place == (self == taker && has_row_sums), "sums in 32 bits on one rank have no buffer of floats");
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    std::string_view const which = argc == 2 ? argv[1] : "";
    {
        auto const members = mpi::first_generation(MPI_COMM_WORLD, generation_id{1}, 1);
        mpi::messenger messages{members};
        if (which == "copies") {
            copies(messages, {});
            copies(messages, bytes{100'000});
        } else if (which == "damaged") {
            damaged(messages);
        } else if (which == "moves") {
            moves(messages, fp32);
            moves(messages, fp32_i32);
        } else if (which == "safety_copies") {
            up_to_date(messages, fp32, false);
            up_to_date(messages, fp32_i32, true);
        } else {
            check(false, "transfer copies|damaged|moves|safety_copies");
        }
    }
    MPI_Finalize();
    return wrong == 0 ? 0 : 1;
}
