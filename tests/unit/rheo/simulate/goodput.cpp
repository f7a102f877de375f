// SPDX-License-Identifier: Apache-2.0
// Jobs on nodes that come and go: published traces to the millisecond, an oracle that walks through every one of them, laws.
#include <cmath>
#include <map>
#include <random>

#include "rheo/simulate/goodput/node_trace_csv.hpp"
#include "rheo/simulate/goodput/replay_goodput.hpp"
#include "rheo/simulate/goodput/replay_policies_csv.hpp"
#include "support/public_vectors.hpp"

using namespace rheo;

namespace {

std::string text_of(std::string const& file) { return test::read_vectors("goodput/" + file); }

steps_table table_named(std::string const& model)
{
    auto const tables = parse_steps_tables(text_of("throughput.csv"), "throughput.csv");
    REQUIRE(tables);
    for (auto const& named : *tables) {
        if (named.model == model) {
            return named.table;
        }
    }
    FAIL(model);
    return {};
}

replay_policy policy_named(std::string const& model, std::string const& policy)
{
    auto const policies = parse_replay_policies(text_of("policies.csv"), "policies.csv");
    REQUIRE(policies);
    for (auto const& named : *policies) {
        if (named.model == model && name_of(named.policy.kind) == policy) {
            return named.policy;
        }
    }
    FAIL(model << " " << policy);
    return {};
}

/// The same rules, millisecond by millisecond.
class walked_job {
public:
    walked_job(steps_table const& table, replay_policy const& policy, node_trace const& trace) : table_{table}, policy_{policy}, trace_{trace} {}

    goodput_account<> walk()
    {
        auto const end = trace_.events.back().at.count;
        for (now_ = 0; now_ < end; ++now_) {
            while (doing_ != "" && left_ == 0) {
                finish();
            }
            for (auto& [node, ready] : on_the_way_) {
                if (ready == now_) {
                    waits_[node] = true;
                }
            }
            std::erase_if(on_the_way_, [&](auto const& n) { return n.second == now_; });
            if (doing_ == "") {
                configure();
            }
            change_nodes();
            while (doing_ != "" && left_ == 0) {
                finish();
            }
            spend();
        }
        for (auto const& t : steps_) {
            ++account_.steps;
            account_.good.count += t;
        }
        account_.unfinished.count += doing_ == "step" || doing_ == "checkpoint" ? spent_ : 0;
        account_.end = {end};
        return account_;
    }

private:
    void begin(std::string const& what, std::int64_t takes)
    {
        doing_ = what;
        left_ = takes;
        spent_ = 0;
    }

    void configure()
    {
        begin("", 0);
        if (static_cast<int>(waits_.size() + takes_part_.size()) >= table_.fewest) {
            takes_part_.insert(waits_.begin(), waits_.end());
            waits_.clear();
            created_ = true;
            begin("configure", policy_.configure.count);
        }
    }

    void step()
    {
        nodes_ = static_cast<std::int64_t>(takes_part_.size());
        whole_ = step_time(table_, static_cast<int>(nodes_)).count;
        had_ = static_cast<std::int64_t>(std::floor(static_cast<long double>(whole_) * static_cast<long double>(kept_) / static_cast<long double>(kept_of_)));
        begin("step", whole_ - had_);
    }

    void finish()
    {
        bool joins = policy_.kind != replay_kind::checkpoint;
        if (doing_ == "step") {
            steps_.push_back(spent_);
            kept_ = 0;
            if (!joins && static_cast<std::int64_t>(steps_.size()) == policy_.checkpoint_every_steps) {
                begin("checkpoint", policy_.checkpoint.count);
                return;
            }
        } else if (doing_ == "checkpoint") {
            account_.checkpoint.count += spent_;
            joins = true;
        }
        if (doing_ != "configure" && joins) {
            for (auto const& t : steps_) {
                ++account_.steps;
                account_.good.count += t;
            }
            steps_.clear();
        }
        if (doing_ != "configure" && joins && !waits_.empty()) {
            configure();
        } else {
            step();
        }
    }

    void change_nodes()
    {
        bool lost = false;
        for (auto const& event : trace_.events) {
            auto const node = event.node.value;
            if (event.at.count == now_ && event.comes) {
                on_the_way_[node] = now_ + policy_.ready.count;
            } else if (event.at.count == now_) {
                on_the_way_.erase(node);
                waits_.erase(node);
                lost = takes_part_.erase(node) > 0 || lost;
            }
        }
        if (lost && doing_ != "") {
            if (doing_ == "step" && policy_.kind == replay_kind::salvage) {
                auto const kept = spent_ * (nodes_ - 1) / nodes_;
                account_.good.count += kept;
                account_.lost.count += spent_ - kept;
                kept_ = had_ + kept;
                kept_of_ = whole_;
            } else if (doing_ != "configure") {
                account_.lost.count += spent_;
            }
            if (policy_.kind == replay_kind::checkpoint) {
                for (auto const& t : steps_) {
                    account_.lost.count += t;
                }
                steps_.clear();
            }
            configure();
        }
    }

    void spend()
    {
        if (doing_ == "") {
            ++(created_ ? account_.halted : account_.creating).count;
            return;
        }
        account_.recovery.count += doing_ == "configure" ? 1 : 0;
        ++spent_;
        --left_;
    }

    steps_table table_;
    replay_policy policy_;
    node_trace trace_;
    goodput_account<> account_;
    std::int64_t now_ = 0;
    std::string doing_;
    std::int64_t left_ = 0;
    std::int64_t spent_ = 0;
    bool created_ = false;
    std::map<int, std::int64_t> on_the_way_;
    std::map<int, bool> waits_;
    std::map<int, bool> takes_part_;
    std::vector<std::int64_t> steps_;  ///< that a loss may take back
    std::int64_t nodes_ = 0;
    std::int64_t whole_ = 0;
    std::int64_t had_ = 0;
    std::int64_t kept_ = 0;
    std::int64_t kept_of_ = 1;
};

struct random_job {
    steps_table table;
    replay_policy policy;
    node_trace trace;
};

random_job make_job(std::mt19937& random)
{
    auto const below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
    random_job job;
    job.table.fewest = 1 + static_cast<int>(below(3));
    for (auto rows = 1 + below(4); rows > 0; --rows) {
        job.table.times.push_back({1 + below(40)});
    }
    job.policy = {static_cast<replay_kind>(below(3)), {below(12)}, {below(9)}, 1 + below(4), {1 + below(15)}};
    auto const nodes = 1 + static_cast<int>(below(7));
    std::vector<bool> present(static_cast<std::size_t>(nodes), false);
    std::int64_t now = below(3) * below(10);
    for (int k = 0; k < nodes; ++k) {
        job.trace.names.push_back("n" + std::to_string(k));
    }
    for (auto events = 1 + below(25); events > 0; --events) {
        auto const node = static_cast<std::size_t>(below(nodes));
        present[node] = !present[node];
        job.trace.events.push_back({{now}, node_id{static_cast<int>(node)}, present[node]});
        now += below(3) == 0 ? below(150) : below(12);
    }
    return job;
}

/// The account of the published simulator, for a trace in which nodes only go: it counts a step when it begins, also one that begins because the
/// step before it has ended while the job is configured; a loss is charged with a whole step, and the last one is not looked at.
struct published_account {
    std::int64_t effective = 0;
    std::int64_t rebalance = 0;
    std::int64_t fallback = 0;
};

published_account as_published(steps_table const& table, replay_policy const& policy, node_trace const& trace)
{
    std::vector<std::int64_t> losses;
    int nodes = 0;
    for (auto const& event : trace.events) {
        nodes += event.comes ? 1 : 0;
        if (!event.comes) {
            losses.push_back(event.at.count);
        }
    }
    losses.pop_back();
    published_account account;
    account.rebalance = policy.configure.count;
    std::size_t next = 0;
    for (auto now = policy.ready.count + policy.configure.count; now < trace.events.back().at.count;) {
        auto const takes = step_time(table, nodes).count;
        account.effective += takes;
        if (next == losses.size() || losses[next] >= now + takes) {
            now += takes;
            continue;
        }
        auto const configured = losses[next++] + policy.configure.count;
        account.effective += now + takes < configured ? takes : 0;
        account.fallback += takes;
        account.rebalance += policy.configure.count;
        now = configured;
        --nodes;
    }
    return account;
}

}  // namespace

TEST_CASE("goodput: published traces to the millisecond")
{
    test::vector_table const expected{text_of("expected.csv")};
    for (auto const& line : expected.lines) {
        CAPTURE(line);
        auto const model = expected.cell(line, "model");
        auto const file = "traces/" + expected.cell(line, "trace") + ".csv";
        auto const trace = parse_node_trace(text_of(file), file);
        REQUIRE(trace);
        auto const account = replay_goodput(table_named(model), policy_named(model, expected.cell(line, "policy")), *trace);
        REQUIRE(account);
        CHECK(account->steps == expected.integer(line, "steps"));
        for (auto const& c : goodput_classes<>) {
            CAPTURE(c.name);
            CHECK(((*account).*c.time).count == expected.integer(line, std::string{c.name} + "_ms"));
        }
        CHECK(account->end.count == expected.integer(line, "end_ms"));
    }
}

TEST_CASE("goodput: the published account follows from its rules")
{
    test::vector_table const published{text_of("published_account.csv")};
    if (published.lines.empty()) {
        return;
    }
    auto const trace = parse_node_trace(text_of("traces/10m.csv"), "10m.csv");
    REQUIRE(trace);
    auto const account = as_published(table_named("bert-large"), policy_named("bert-large", "replay"), *trace);
    std::map<std::string, std::int64_t> const by_name{{"effective", account.effective}, {"rebalance", account.rebalance}, {"fallback", account.fallback}};
    for (auto const& line : published.lines) {
        CAPTURE(line);
        CHECK(by_name.at(published.cell(line, "account")) == published.integer(line, "ms"));
    }
}

TEST_CASE("goodput: accounts are those of an oracle")
{
    std::mt19937 random{5};
    std::map<replay_kind, int> with_losses;
    for (int round = 0; round < 3000; ++round) {
        auto const job = make_job(random);
        CAPTURE(round, name_of(job.policy.kind));
        auto const account = replay_goodput(job.table, job.policy, job.trace);
        CAPTURE(account.error());
        REQUIRE(account);
        auto const walked = walked_job{job.table, job.policy, job.trace}.walk();
        CHECK(account->steps == walked.steps);
        for (auto const& c : goodput_classes<>) {
            CAPTURE(c.name);
            CHECK(((*account).*c.time).count == (walked.*c.time).count);
        }
        CHECK(total_time(*account) == job.trace.events.back().at);
        with_losses[job.policy.kind] += account->lost.count > 0 ? 1 : 0;
    }
    CHECK(with_losses[replay_kind::replay] > 100);
    CHECK(with_losses[replay_kind::checkpoint] > 100);
    CHECK(with_losses[replay_kind::salvage] > 100);
}

TEST_CASE("goodput: without losses a job is its steps")
{
    steps_table const table{1, {{100}, {70}}};
    for (auto const end : std::initializer_list<std::int64_t>{10, 57, 58, 127, 128, 129, 1'000, 1'000'000'000'000}) {
        node_trace const trace{{{{0}, node_id{0}, true}, {{0}, node_id{1}, true}, {{end}, node_id{0}, false}}, {"a", "b"}};
        auto const account = *replay_goodput(table, {.kind = replay_kind::salvage, .configure = {7}, .ready = {50}}, trace);
        auto const steps = std::max<std::int64_t>(0, end - 1 - 57) / 70;
        CHECK(account.steps == steps);
        CHECK(account.good.count == steps * 70);
        CHECK(account.lost.count == 0);
        // every third step a checkpoint of 10 ms
        auto const written = *replay_goodput(table, {replay_kind::checkpoint, {7}, {10}, 3, {50}}, trace);
        auto const rounds = std::max<std::int64_t>(0, end - 1 - 57) / 220;
        CHECK(written.checkpoint.count == rounds * 10);
        CHECK(written.steps == rounds * 3 + std::min<std::int64_t>(3, (std::max<std::int64_t>(0, end - 1 - 57) - rounds * 220) / 70));
    }
}

TEST_CASE("goodput: salvage keeps more than replay where nodes only go")
{
    std::mt19937 random{13};
    for (int round = 0; round < 300; ++round) {
        node_trace trace;
        int const nodes = 3 + static_cast<int>(random() % 8);
        for (int n = 0; n < nodes; ++n) {
            trace.names.push_back(std::to_string(n));
            trace.events.push_back({{0}, node_id{n}, true});
        }
        std::int64_t now = 100;
        for (int n = 0; n < nodes - 1; ++n) {
            trace.events.push_back({{now}, node_id{n}, false});
            now += 1 + static_cast<std::int64_t>(random() % 3000);
        }
        steps_table table{1, {}};
        for (int n = 1; n <= nodes; ++n) {
            table.times.push_back({1000 / n + 50});
        }
        replay_policy policy{.configure = {20}, .ready = {10}};
        auto const again = *replay_goodput(table, policy, trace);
        policy.kind = replay_kind::salvage;
        auto const kept = *replay_goodput(table, policy, trace);
        CAPTURE(round);
        CHECK(kept.steps >= again.steps);
        CHECK(kept.recovery == again.recovery);
    }
}

TEST_CASE("goodput: what cannot be is refused in a sentence")
{
    steps_table const table{1, {{100}}};
    node_trace const trace{{{{0}, node_id{0}, true}}, {"a"}};
    auto const refused = [&](steps_table const& t, replay_policy const& p, node_trace const& n) { return replay_goodput(t, p, n).error(); };
    CHECK(refused({1, {}}, {}, trace) == "a table of steps has at least one row, and at least one node in it");
    CHECK(refused({2, {{5}, {0}}}, {}, trace) == "a step on 3 nodes takes 0 ms, but 1 to 2^31 ms were expected");
    CHECK(refused(table, {.configure = {-1}}, trace) == "a time of a policy is -1 ms, but 0 to 2^31 ms were expected");
    CHECK(refused(table, {.kind = replay_kind::checkpoint}, trace) == "a checkpoint is written every 0 steps, but 1 to 2^31 were expected");
    CHECK(refused(table, {}, {}) == "a trace has at least one event: it ends with its last one");
    CHECK(refused(table, {}, {{{{0}, node_id{1}, true}}, {"a"}}) == "event 0: node 1 has no name");
    CHECK(refused(table, {}, {{{{5}, node_id{0}, true}, {{4}, node_id{0}, false}}, {"a"}}) ==
          "event 1: time 4 is before that of the event before it, 5; events come in the order of time, from 0 on");
}
