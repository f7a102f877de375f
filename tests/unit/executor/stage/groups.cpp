// SPDX-License-Identifier: Apache-2.0
// A stage whose shards several ranks have: the bits of a stage that has them all, however many members the group has and however uneven their shares are.
// Members are threads that exchange through a mailbox.
#include "executor/stage/stage.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "rheo/model/exchange_traffic.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/model/llama.hpp"
#include "stage_steps.hpp"
#include "support/catch.hpp"

using namespace rheo;
using namespace stage_steps;

namespace {

constexpr gpt_shape wide{.vocabulary = 83, .context = 12, .width = 64, .heads = 4, .blocks = 2, .dropout_per_mille = 100};

/// Messages between threads, in order between any two of them. A member that fails ends the waits of all.
class mailbox {
public:
    class member final : public group_exchange {
    public:
        member(mailbox& box, int self) : box_{&box}, self_{self} {}

        void exchange(exchange_kind, std::span<outgoing const> out, std::span<incoming const> in) override
        {
            std::unique_lock lock{box_->mutex_};
            for (auto const& o : out) {
                box_->waiting_[{self_, o.to}].emplace_back(o.data.begin(), o.data.end());
            }
            box_->changed_.notify_all();
            for (auto const& i : in) {
                auto& from = box_->waiting_[{i.from, self_}];
                box_->changed_.wait(lock, [&] { return box_->failed_ || !from.empty(); });
                if (box_->failed_) {
                    throw precondition_error{"another member failed"};
                }
                expects(from.front().size() == i.data.size(), "a member sends what the other one expects");
                received += static_cast<std::int64_t>(i.data.size());
                std::copy(from.front().begin(), from.front().end(), i.data.begin());
                from.pop_front();
            }
        }

        std::int64_t received = 0;  ///< bytes

    private:
        mailbox* box_;
        int self_;
    };

    void fail()
    {
        std::lock_guard const lock{mutex_};
        failed_ = true;
        changed_.notify_all();
    }
    bool is_empty() const
    {
        return std::all_of(waiting_.begin(), waiting_.end(), [](auto const& entry) { return entry.second.empty(); });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::map<std::pair<int, int>, std::deque<std::vector<std::byte>>> waiting_;
    bool failed_ = false;
};

shard_group group_of(std::vector<int> const& shares)
{
    shard_group group;
    std::int64_t next = 0;
    for (auto const share : shares) {
        group.members.push_back({next, next + share});
        next += share;
    }
    return group;
}

/// What the members leave, put together as one rank with all shards leaves it.
step_result run_group(model_description const& model, std::vector<reference::microbatch> const& step, options const& o, std::vector<int> const& shares)
{
    auto const count = shares.size();
    mailbox box;
    std::vector<step_result> results(count);
    std::vector<std::exception_ptr> errors(count);
    std::vector<std::thread> threads;
    for (std::size_t m = 0; m < count; ++m) {
        threads.emplace_back([&, m] {
            try {
                mailbox::member exchange{box, static_cast<int>(m)};
                auto mine = o;
                mine.group = group_of(shares);
                mine.group.self = static_cast<int>(m);
                mine.exchange = &exchange;
                results[m] = run_step(model, step, mine);
            } catch (...) {
                errors[m] = std::current_exception();
                box.fail();
            }
        });
    }
    for (auto& t : threads) {
        t.join();
    }
    for (auto const& error : errors) {
        if (error != nullptr) {
            std::rethrow_exception(error);
        }
    }
    CHECK(box.is_empty());
    step_result all;
    auto const info = state_of(model);
    std::vector<std::size_t> next(count, 0);
    for (auto const& use : info.uses) {
        for (std::size_t m = 0; m < count && use.parameter >= 0; ++m) {
            auto const run = group_of(shares).members[m];
            if (use.shard >= run.begin && use.shard < run.end) {
                all.uses.push_back(results[m].uses[next[m]++]);
            }
        }
    }
    for (auto const& result : results) {
        all.loss = all.loss + result.loss;
    }
    // Logits of a row are those of one member after the other.
    auto const logit_rows = static_cast<std::int64_t>(rows({batch.sequences, batch.tokens, o.slices}));
    for (std::int64_t row = 0; row < logit_rows; ++row) {
        for (auto const& result : results) {
            auto const width = static_cast<std::ptrdiff_t>(result.logits.size()) / logit_rows;
            all.logits.insert(all.logits.end(), result.logits.begin() + row * width, result.logits.begin() + (row + 1) * width);
        }
    }
    return all;
}

std::vector<std::vector<int>> const shares_of_4{{1, 3}, {2, 2}, {3, 1}, {1, 2, 1}, {2, 1, 1}, {1, 1, 1, 1}};

}  // namespace

TEST_CASE("groups: same bits for any degree, even or uneven")
{
    for (bool const fuses : {true, false}) {
        auto const model = on_grid(fuses ? fused(gpt_model(wide)) : gpt_model(wide), 4);
        auto const step = random_step(wide, 2);
        auto const expected = run_step(model, step, whole(model));
        for (auto const& shares : shares_of_4) {
            CHECK(run_group(model, step, whole(model), shares) == expected);
        }
        CHECK(run_group(model, step, {.cuts = {0, 1, 3, 4}}, {1, 3}) == expected);
    }
    auto untied = wide;
    untied.tied = false;
    auto const model = on_grid(fused(gpt_model(untied)), 3);
    auto const step = random_step(untied, 1);
    CHECK(run_group(model, step, whole(model), {2, 1}) == run_step(model, step, whole(model)));
}

TEST_CASE("groups: a Llama with few and many key heads")
{
    for (int const kv : {1, 2, 4, -1}) {  // -1: with all that families have of their own
        llama_shape shape{.vocabulary = 83, .context = 12, .width = 64, .heads = 4, .kv_heads = std::abs(kv), .blocks = 2, .mlp_width = 96};
        if (kv < 0) {
            shape.head_dim = 20;
            shape.qkv_bias = shape.qk_norm = true;
        }
        auto const model = on_grid(fused(llama_model(shape)), 4);
        auto const step = random_step(wide, 1);
        auto const expected = run_step(model, step, whole(model));
        for (auto const& shares : {std::vector{2, 2}, {1, 3}, {1, 1, 1, 1}}) {
            INFO(kv << " heads of keys and values, " << shares.size() << " members");
            CHECK(run_group(model, step, whole(model), shares) == expected);
        }
    }
}

TEST_CASE("groups: same bits whatever is recomputed, split, sliced")
{
    auto const model = on_grid(fused(gpt_model(wide)), 4);
    auto const step = random_step(wide, 2);
    auto const expected = run_step(model, step, whole(model));
    for (auto const how : {backwards::split, backwards::split_late, backwards::recomputed, backwards::recomputed_split}) {
        CHECK(run_group(model, step, {.cuts = {0, 2, 4}, .how = how}, {1, 3}) == expected);
    }
    for (auto const level : {recompute_level::cheap, recompute_level::full}) {
        for (auto const how : {backwards::whole, backwards::split_late}) {
            std::vector<recompute_level> const levels{level, level, level, recompute_level::cheap};
            CHECK(run_group(model, step, {.cuts = {0, 2, 4}, .how = how, .recompute_levels = levels}, {2, 1, 1}) == expected);
        }
    }
    auto const sliced = run_step(model, step, {.cuts = {0, 4}, .slices = 3});
    CHECK(run_group(model, step, {.cuts = {0, 1, 3, 4}, .how = backwards::split_late, .slices = 3}, {2, 2}) == sliced);
}

TEST_CASE("groups: an evaluation has the loss of one rank")
{
    auto const model = on_grid(fused(gpt_model(wide)), 4);
    auto const step = random_step(wide, 2);
    options evaluates{.cuts = {0, 2, 4}, .training = false, .backward = false};
    CHECK(run_group(model, step, evaluates, {1, 2, 1}).loss == run_step(model, step, evaluates).loss);
}

TEST_CASE("groups: grids that are no power of two")
{
    auto shape = wide;
    shape.heads = 8;
    shape.width = 128;
    shape.vocabulary = 131;
    for (int const grid : {5, 6, 7, 8}) {
        shape.heads = grid == 5 ? 5 : grid == 7 ? 7 : grid;
        shape.width = shape.heads * 16;
        auto const model = on_grid(fused(gpt_model(shape)), grid);
        auto const step = random_step(shape, 1);
        auto const expected = run_step(model, step, whole(model));
        CHECK(run_group(model, step, whole(model), {1, grid - 1}) == expected);
        CHECK(run_group(model, step, whole(model), {2, grid - 3, 1}) == expected);
        CHECK(run_group(model, step, whole(model), std::vector<int>(static_cast<std::size_t>(grid), 1)) == expected);
    }
}

TEST_CASE("groups: runs that do not cover the grid are refused")
{
    auto const model = on_grid(fused(gpt_model(wide)), 4);
    auto const step = random_step(wide, 1);
    CHECK_THROWS_AS(run_group(model, step, whole(model), {1, 2}), precondition_error);
    CHECK_THROWS_AS(run_group(model, step, whole(model), {2, 3}), precondition_error);
}

namespace {

/// What a member of a group leaves when the exchange number `last` of a microbatch's forward and backward fails: what it summed, and what is booked.
struct torn_result {
    bool whole = false;
    std::vector<use_id> booked;
    std::vector<use_result> sums;  ///< by use; empty where the use is another member's
    std::int64_t received = 0;     ///< bytes
};

/// Counts exchanges, and fails in one of them on member 0.
class failing_exchange final : public group_exchange {
public:
    failing_exchange(mailbox& box, int self, int last) : box_{&box}, member_{box, self}, left_{self == 0 ? last : 1 << 20} {}

    void exchange(exchange_kind kind, std::span<outgoing const> out, std::span<incoming const> in) override
    {
        if (left_-- == 0) {
            box_->fail();
            throw precondition_error{"lost"};
        }
        member_.exchange(kind, out, in);
    }

    std::int64_t received() const { return member_.received; }

private:
    mailbox* box_;
    mailbox::member member_;
    int left_;
};

std::vector<torn_result> run_until(model_description const& model, reference::microbatch const& m, std::vector<int> const& shares, int last)
{
    mailbox box;
    auto const info = state_of(model);
    std::vector<torn_result> results(shares.size());
    std::vector<std::thread> threads;
    for (std::size_t member = 0; member < shares.size(); ++member) {
        threads.emplace_back([&, member] {
            auto& result = results[member];
            auto group = group_of(shares);
            group.self = static_cast<int>(member);
            host_backend host{1};
            resident_state state{info, host};
            std::fill(state.scales.begin(), state.scales.end(), first_scale);
            initialise_layers(state, layer_id{0}, layer_id{static_cast<int>(model.layers.size())}, seed);
            auto const layers = host.make_stage(model.layers, layer_id{0}, batch, 1, state, {}, group);
            for (auto const use : layers->uses()) {
                state.accumulator(use);
            }
            activation kept{layers->layout()};
            kept.tokens = m.tokens;
            kept.targets = m.targets;
            failing_exchange exchange{box, static_cast<int>(member), last};
            std::function<void(std::span<use_id const>)> const added = [&](std::span<use_id const> uses) {
                result.booked.insert(result.booked.end(), uses.begin(), uses.end());
            };
            stage_item const item{.seed = 5, .step = step_id{8}, .microbatch = microbatch_id{0}, .exchange = &exchange, .added = &added};
            loss_sum loss;
            try {
                layers->forward(kept, item, loss);
                layers->backward(kept, item, layer_id{0}, nullptr, nullptr, [](use_id) { return true; });
                result.whole = true;
            } catch (precondition_error const&) {
                box.fail();
            }
            result.received = exchange.received();
            result.sums.resize(info.uses.size());
            for (auto const use : layers->uses()) {
                result.sums[at(use)] = result_of(state, use);
            }
        });
    }
    for (auto& t : threads) {
        t.join();
    }
    return results;
}

}  // namespace

TEST_CASE("groups: a loss in an exchange leaves sums as booked")
{
    auto const model = on_grid(fused(gpt_model(wide)), 4);
    auto const step = random_step(wide, 1);
    for (auto const& shares : {std::vector{2, 2}, {1, 2, 1}}) {
        auto const whole_run = run_until(model, step[0], shares, 1 << 20);
        int partly = 0;
        for (int last = 0;; ++last) {
            auto const results = run_until(model, step[0], shares, last);
            if (results[0].whole) {
                REQUIRE(last > 20);
                break;
            }
            for (std::size_t member = 0; member < results.size(); ++member) {
                auto const& result = results[member];
                partly += !result.booked.empty() ? 1 : 0;
                for (std::size_t u = 0; u < result.sums.size() && !result.whole; ++u) {
                    bool const booked = std::find(result.booked.begin(), result.booked.end(), use_id{static_cast<int>(u)}) != result.booked.end();
                    auto const& sums = result.sums[u].sums;
                    INFO("exchange " << last << ", member " << member << ", use " << u << (booked ? ", booked" : ""));
                    REQUIRE((booked ? sums == whole_run[member].sums[u].sums : std::all_of(sums.begin(), sums.end(), [](auto sum) { return sum == 0; })));
                }
            }
        }
        CHECK(partly > 10);
    }
}

TEST_CASE("groups: members receive the bytes that are planned")
{
    auto const model = on_grid(fused(gpt_model(wide)), 4);
    auto const step = random_step(wide, 1);
    for (auto const& shares : shares_of_4) {
        auto const results = run_until(model, step[0], shares, 1 << 20);
        for (std::size_t member = 0; member < shares.size(); ++member) {
            auto group = group_of(shares);
            group.self = static_cast<int>(member);
            auto const planned = received_bytes(array_view{model.layers}, batch, fp32, group).count;
            auto const looked_up = rows_of(group.run(4), rows(batch), 4).count() * wide.width * 4;  // at most, by the tokens
            CHECK(results[member].received <= planned);
            CHECK(results[member].received >= planned - looked_up);
        }
    }
}
