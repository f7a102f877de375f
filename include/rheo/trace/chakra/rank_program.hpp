#pragma once
// SPDX-License-Identifier: Apache-2.0

// How far a rank is with its trace: which steps are ready and which are under way. Of some kinds only one is at once: a channel each.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/trace_set.hpp"

namespace rheo::inline v0 {

namespace detail {

/// What only one step of a rank can have at once.
enum class play_channel : std::uint8_t { device, host, network, none };

constexpr play_channel channel_of(chakra_step const& step)
{
    switch (step.type) {
    case chakra_node_type::comp: return step.on_host ? play_channel::host : play_channel::device;
    case chakra_node_type::comm_recv: return play_channel::none;
    default: return play_channel::network;
    }
}

/// What only one step of a rank can have at once; by rheo's rules that is the device, and the host.
constexpr play_channel channel_of(chakra_step const& step, bool of_consumers)
{
    if (of_consumers && step.type != chakra_node_type::metadata) {
        return channel_of(step);
    }
    return step.type == chakra_node_type::comp ? channel_of(step) : play_channel::none;
}

template <class OnlyWhenCalled = void>
class rank_program {
public:
    rank_program(chakra_rank_trace const& trace, bool of_consumers) : trace_{&trace}, of_consumers_{of_consumers}
    {
        auto const steps = trace.steps.size();
        waits_.resize(steps);
        state_.resize(steps, step_state::waits);
        followers_end_.resize(steps);
        for (auto const other : trace.dependencies) {
            ++followers_end_[other];
        }
        for (std::size_t i = 1; i < steps; ++i) {
            followers_end_[i] += followers_end_[i - 1];
        }
        followers_.resize(trace.dependencies.size());
        auto next = followers_end_;
        for (auto i = static_cast<std::uint32_t>(steps); i-- > 0;) {
            auto const waits = trace.waits_for(i);
            waits_[i] = static_cast<std::uint32_t>(waits.size());
            for (auto const other : waits) {
                followers_[--next[other]] = i;
            }
        }
        for (std::uint32_t i = 0; i < steps; ++i) {
            if (waits_[i] == 0) {
                ready_[channel(i)].push(i);
            }
        }
    }

    /// Calls begin(step) for steps that can begin now, by ascending id as far as channels allow.
    template <class Begin>
    void begin_ready(Begin const& begin)
    {
        for (std::size_t c = 0; c < ready_.size(); ++c) {
            bool const is_free = c == static_cast<std::size_t>(play_channel::none);
            while (!ready_[c].empty() && (is_free || !taken_[c])) {
                auto const step = ready_[c].top();
                ready_[c].pop();
                taken_[c] = !is_free;
                state_[step] = step_state::under_way;
                begin(step);
            }
        }
    }

    void end(std::uint32_t step)
    {
        state_[step] = step_state::over;
        ++over_;
        taken_[channel(step)] = false;
        for (auto k = step == 0 ? 0 : followers_end_[step - 1]; k < followers_end_[step]; ++k) {
            if (--waits_[followers_[k]] == 0) {
                ready_[channel(followers_[k])].push(followers_[k]);
            }
        }
    }

    bool is_over() const { return over_ == state_.size(); }
    bool is_under_way(std::size_t step) const { return state_[step] == step_state::under_way; }
    std::size_t steps() const { return state_.size(); }

private:
    enum class step_state : std::uint8_t { waits, under_way, over };

    std::size_t channel(std::uint32_t step) const { return static_cast<std::size_t>(channel_of(trace_->steps[step], of_consumers_)); }

    chakra_rank_trace const* trace_;
    bool of_consumers_;
    std::vector<std::uint32_t> waits_;  ///< step -> how many that it waits for have not ended
    std::vector<step_state> state_;
    std::vector<std::uint32_t> followers_;  ///< of all steps, one after the other
    std::vector<std::size_t> followers_end_;
    std::array<std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>, 4> ready_;  ///< by channel; steps stand by ascending id
    std::array<bool, 4> taken_{};
    std::size_t over_ = 0;
};

}  // namespace detail
}  // namespace rheo::inline v0
