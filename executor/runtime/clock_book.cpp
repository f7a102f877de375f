// SPDX-License-Identifier: Apache-2.0
#include "runtime/clock_book.hpp"

#include <chrono>
#include <utility>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/background_thread.hpp"

namespace rheo::inline v0 {

clock_book::~clock_book() { give_up(); }

void clock_book::give_up()
{
    ahead_ends_.request_stop();
    if (ahead_.joinable()) {
        ahead_.join();
    }
}

clock_book::found clock_book::frontier_of(plan const& p, std::size_t pipeline, std::span<slow_rank const> slow)
{
    auto const key = frontier_key_of(p, pipeline, slow);
    {
        std::lock_guard const lock{mutex_};
        if (auto const there = frontiers_.find(key); there != frontiers_.end()) {
            return {there->second};
        }
    }
    auto made = std::make_shared<pipeline_frontier const>(make_pipeline_frontier(p, pipeline, layers_, request_, slow));
    std::lock_guard const lock{mutex_};
    auto const [place, fresh] = frontiers_.try_emplace(key, std::move(made));
    return {place->second, fresh};
}

chosen_clocks clock_book::choose(plan const& p, std::span<slow_rank const> slow)
{
    std::vector<std::shared_ptr<pipeline_frontier const>> kept;
    std::vector<pipeline_frontier const*> all;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const [frontier, made] = frontier_of(p, i, slow);
        at_once_ += made ? 1 : 0;
        kept.push_back(frontier);
        all.push_back(kept.back().get());
    }
    return choose_clocks(all, request_);
}

void clock_book::make_ahead(std::function<std::optional<plan>()> next)
{
    give_up();
    done_.reset();
    ahead_ends_ = std::stop_source{};
    ahead_ = background_thread([this, next = std::move(next), ends = ahead_ends_.get_token()] {
        ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 19);  // of this thread alone: training goes first
        auto const begun = std::chrono::steady_clock::now();
        made_ahead done;
        while (!ends.stop_requested()) {
            auto const p = next();
            if (!p) {
                done.took = {std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()};
                std::lock_guard const lock{mutex_};
                done_ = done;
                return;
            }
            ++done.plans;
            for (std::size_t i = 0; i < p->pipelines.size() && !ends.stop_requested(); ++i) {
                done.frontiers += frontier_of(*p, i, {}).made ? 1 : 0;
            }
        }
    });
}

std::optional<made_ahead> clock_book::done_ahead()
{
    std::lock_guard const lock{mutex_};
    return std::exchange(done_, std::nullopt);
}

std::size_t clock_book::made()
{
    if (ahead_.joinable()) {
        ahead_.join();
    }
    std::lock_guard const lock{mutex_};
    return frontiers_.size();
}

}  // namespace rheo::inline v0
