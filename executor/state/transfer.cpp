// SPDX-License-Identifier: Apache-2.0
#include "executor/state/transfer.hpp"

#include <bit>
#include <utility>

#include "executor/state/accumulator_moves.hpp"
#include "executor/state/collectives.hpp"
#include "executor/state/tensor_copies.hpp"

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
        words.push_back(static_cast<std::int64_t>(use.done.first_word));
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
        use.done.first_word = static_cast<std::size_t>(take());
        for (auto length = take(); length > 0; --length) {
            use.done.words.push_back(std::bit_cast<std::uint64_t>(take()));
        }
        holds.uses.push_back(std::move(use));
    }
    return holds;
}

}  // namespace

std::vector<rank_holdings> gather_holdings(mpi::messenger& messages, rank_holdings const& mine)
{
    std::vector<rank_holdings> all;
    for (auto const& words : all_gather(messages, to_words(mine))) {
        all.push_back(from_words(words));
    }
    return all;
}

std::vector<staged_accumulator> transfer_state(mpi::messenger& messages, recovery_plan const& plan, collection const& of, resident_state& state,
                                               std::function<void()> const& begun, std::function<void(tensor_id)> const& arrived)
{
    copy_tensors(messages, plan.copies, of, state, begun, arrived);
    return move_accumulators(messages, plan.salvage.moves, state, begun);
}

}  // namespace rheo::inline v0
