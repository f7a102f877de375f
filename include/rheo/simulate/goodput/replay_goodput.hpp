#pragma once
// SPDX-License-Identifier: Apache-2.0

// A job on nodes that come and go, replayed in whole milliseconds. What happens at one time happens in this order: an end, then nodes
// that become ready, then nodes that go. Steps between two events are counted, not walked through, so a replay costs what its events cost.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "rheo/simulate/goodput/goodput_account.hpp"
#include "rheo/simulate/goodput/node_trace.hpp"
#include "rheo/simulate/goodput/replay_policy.hpp"
#include "rheo/simulate/goodput/steps_table.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The nodes of a job: who is on the way, who waits, who takes part.
template <class OnlyWhenCalled = void>
class node_pool {
public:
    explicit node_pool(node_trace const& trace, whole_milliseconds ready) : trace_{&trace}, ready_{ready}, nodes_(trace.names.size()) {}

    /// When the next node becomes ready, comes or goes.
    whole_milliseconds next() const { return std::min(next_ready(), next_event()); }

    /// Nodes that become ready at that time wait.
    void become_ready(whole_milliseconds now)
    {
        for (; next_ready() == now; ++ready_count_) {
            auto const& c = coming_[ready_count_];
            auto& n = nodes_[at(c.node)];
            if (n.state == node_state::coming && n.visit == c.visit) {
                n.state = node_state::waiting;
                ++waiting_;
            }
        }
    }

    /// Events of that time; true when a node went that took part.
    bool come_and_go(whole_milliseconds now)
    {
        bool one_went = false;
        for (; next_event() == now; ++event_) {
            auto const& event = trace_->events[event_];
            auto& n = nodes_[at(event.node)];
            if (event.comes) {
                n.state = node_state::coming;
                ++n.visit;
                coming_.push_back({now + ready_, event.node, n.visit});
                continue;
            }
            waiting_ -= n.state == node_state::waiting ? 1 : 0;
            taking_part_ -= n.state == node_state::taking_part ? 1 : 0;
            one_went = one_went || n.state == node_state::taking_part;
            n.state = node_state::gone;
        }
        return one_went;
    }

    /// All that wait take part.
    void take_all()
    {
        for (auto& n : nodes_) {
            n.state = n.state == node_state::waiting ? node_state::taking_part : n.state;
        }
        taking_part_ += std::exchange(waiting_, 0);
    }

    int waiting() const { return waiting_; }
    int taking_part() const { return taking_part_; }

private:
    enum class node_state : unsigned char { gone, coming, waiting, taking_part };
    struct node {
        node_state state = node_state::gone;
        int visit = 0;  ///< how often it has come
    };
    struct arrival {
        whole_milliseconds at;
        node_id node;
        int visit;
    };

    static constexpr whole_milliseconds never{std::numeric_limits<std::int64_t>::max()};
    whole_milliseconds next_ready() const { return ready_count_ < coming_.size() ? coming_[ready_count_].at : never; }
    whole_milliseconds next_event() const { return event_ < trace_->events.size() ? trace_->events[event_].at : never; }

    node_trace const* trace_;
    whole_milliseconds ready_;
    std::vector<node> nodes_;
    std::vector<arrival> coming_;  ///< in the order of time
    std::size_t ready_count_ = 0;  ///< of these
    std::size_t event_ = 0;
    int waiting_ = 0;
    int taking_part_ = 0;
};

template <class OnlyWhenCalled = void>
class goodput_replay {
public:
    goodput_replay(steps_table const& table, replay_policy const& policy, node_trace const& trace) : table_{&table}, policy_{policy}, pool_{trace, policy.ready}
    {
        account_.end = trace.events.back().at;
    }

    goodput_account<> run()
    {
        while (true) {
            auto const now = std::min(pool_.next(), phase_end());
            if (now >= account_.end) {  // what happens at the end is not looked at
                break;
            }
            while (phase_end() == now) {  // what takes no time ends with what it follows
                end_phase(now);
            }
            pool_.become_ready(now);
            if (doing_ == phase::none) {
                configure(now);
            }
            if (pool_.come_and_go(now)) {
                lose(now);
            }
            if (doing_ == phase::step) {
                count_quiet_steps();
            }
        }
        close();
        return account_;
    }

private:
    enum class phase : unsigned char { none, configuration, step, checkpoint };

    static constexpr whole_milliseconds never{std::numeric_limits<std::int64_t>::max()};
    whole_milliseconds phase_end() const { return doing_ == phase::none ? never : begin_ + takes_; }

    void begin(phase next, whole_milliseconds now, whole_milliseconds takes)
    {
        doing_ = next;
        begin_ = now;
        takes_ = takes;
    }

    /// Begins one, or waits for more nodes.
    void configure(whole_milliseconds now)
    {
        if (doing_ == phase::none) {
            idle() += now - begin_;
        }
        begin(phase::none, now, {});
        if (pool_.taking_part() + pool_.waiting() >= table_->fewest) {
            pool_.take_all();
            is_created_ = true;
            begin(phase::configuration, now, policy_.configure);
        }
    }

    void begin_step(whole_milliseconds now)
    {
        nodes_ = pool_.taking_part();
        auto const whole = step_time(*table_, nodes_);
        had_ = kept_.count == 0 ? whole_milliseconds{} : whole_milliseconds{whole.count * kept_.count / step_time(*table_, kept_on_).count};
        begin(phase::step, now, whole - had_);
    }

    void end_phase(whole_milliseconds now)
    {
        if (doing_ == phase::configuration) {
            account_.recovery += takes_;
            begin_step(now);
            return;
        }
        bool const writes = policy_.kind == replay_kind::checkpoint;
        if (doing_ == phase::step) {
            kept_ = {};
            ++steps_;
            since_ += takes_;
            if (writes && steps_ == policy_.checkpoint_every_steps) {
                begin(phase::checkpoint, now, policy_.checkpoint);
                return;
            }
        } else {
            account_.checkpoint += takes_;
        }
        bool const may_join = !writes || doing_ == phase::checkpoint;
        if (may_join) {
            commit();
        }
        if (may_join && pool_.waiting() > 0) {
            configure(now);
        } else {
            begin_step(now);
        }
    }

    /// Steps that end before anything else happens are counted at once: whole rounds from checkpoint to checkpoint, then steps of a round.
    /// The step under way after them is one as before.
    void count_quiet_steps()
    {
        if (had_.count > 0) {
            return;
        }
        bool const writes = policy_.kind == replay_kind::checkpoint;
        auto const every = writes ? policy_.checkpoint_every_steps : 1;
        auto const pause = writes ? policy_.checkpoint : whole_milliseconds{};
        auto const quiet = [&] { return std::max<std::int64_t>(0, (std::min(pool_.next(), account_.end) - begin_).count - 1); };
        if (pool_.waiting() == 0 && steps_ == 0) {
            auto const round = takes_ * every + pause;
            auto const rounds = quiet() / round.count;
            account_.steps += rounds * every;
            account_.good += takes_ * (rounds * every);
            account_.checkpoint += pause * rounds;
            begin_ += round * rounds;
        }
        if (writes) {
            auto const steps = std::min(quiet() / takes_.count, every - steps_ - 1);
            steps_ += steps;
            since_ += takes_ * steps;
            begin_ += takes_ * steps;
        }
    }

    /// A node that takes part has gone.
    void lose(whole_milliseconds now)
    {
        auto const spent = now - begin_;
        if (doing_ == phase::none) {
            return;
        }
        if (doing_ == phase::configuration) {
            account_.recovery += spent;
        } else if (doing_ == phase::step && policy_.kind == replay_kind::salvage) {
            auto const kept = keep(spent);
            account_.good += kept;
            account_.lost += spent - kept;
            kept_ = had_ + kept;
            kept_on_ = nodes_;
        } else {
            account_.lost += spent;
        }
        if (policy_.kind == replay_kind::checkpoint) {
            account_.lost += std::exchange(since_, {});
            steps_ = 0;
        }
        configure(now);
    }

    /// What n - 1 of n nodes keep, rounded down; no product of it overflows.
    whole_milliseconds keep(whole_milliseconds spent) const { return {spent.count * (nodes_ - 1) / nodes_}; }

    /// Steps that no loss takes back.
    void commit()
    {
        account_.steps += std::exchange(steps_, 0);
        account_.good += std::exchange(since_, {});
    }

    whole_milliseconds& idle() { return is_created_ ? account_.halted : account_.creating; }

    void close()
    {
        commit();
        auto const spent = account_.end - begin_;
        (doing_ == phase::none ? idle() : doing_ == phase::configuration ? account_.recovery : account_.unfinished) += spent;
        expects(total_time(account_) == account_.end, "every millisecond of a job is in exactly one class of its account");
    }

    steps_table const* table_;
    replay_policy policy_;
    node_pool<> pool_;
    goodput_account<> account_;
    phase doing_ = phase::none;
    whole_milliseconds begin_{};
    whole_milliseconds takes_{};
    bool is_created_ = false;
    int nodes_ = 0;              ///< of the step
    whole_milliseconds had_{};   ///< of the step before it began, in ms of its nodes
    whole_milliseconds kept_{};  ///< of a broken step, in ms of `kept_on_` nodes
    int kept_on_ = 1;
    std::int64_t steps_ = 0;  ///< since the last commit
    whole_milliseconds since_{};
};

}  // namespace detail

/// Where the time of a job goes from 0 to the last event of the trace; a refusal says what is wrong with the table, the policy or the trace.
/// Cost: the events, log their number.
template <class OnlyWhenCalled = void>
result<goodput_account<>> replay_goodput(steps_table const& table, replay_policy const& policy, node_trace const& trace)
{
    for (auto const& fault : {steps_table_fault(table), replay_policy_fault(policy), node_trace_fault(trace)}) {
        if (!fault.empty()) {
            return failure{fault};
        }
    }
    return detail::goodput_replay<>{table, policy, trace}.run();
}

}  // namespace rheo::inline v0
