// SPDX-License-Identifier: Apache-2.0
#include "runtime/clock_book.hpp"

#include <utility>

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

std::shared_ptr<pipeline_frontier const> clock_book::frontier_of(plan const& p, std::size_t pipeline, std::span<slow_rank const> slow)
{
    auto const key = frontier_key_of(p, pipeline, slow);
    {
        std::lock_guard const lock{mutex_};
        if (auto const found = frontiers_.find(key); found != frontiers_.end()) {
            return found->second;
        }
    }
    auto made = std::make_shared<pipeline_frontier const>(make_pipeline_frontier(p, pipeline, layers_, request_, slow));
    std::lock_guard const lock{mutex_};
    return frontiers_.try_emplace(key, std::move(made)).first->second;
}

chosen_clocks clock_book::choose(plan const& p, std::span<slow_rank const> slow)
{
    std::vector<std::shared_ptr<pipeline_frontier const>> kept;
    std::vector<pipeline_frontier const*> all;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        kept.push_back(frontier_of(p, i, slow));
        all.push_back(kept.back().get());
    }
    return choose_clocks(all, request_);
}

void clock_book::make_ahead(std::function<std::vector<plan>()> plans)
{
    give_up();
    ahead_ends_ = std::stop_source{};
    ahead_ = background_thread([this, plans = std::move(plans), ends = ahead_ends_.get_token()] {
        for (auto const& p : plans()) {
            for (std::size_t i = 0; i < p.pipelines.size() && !ends.stop_requested(); ++i) {
                frontier_of(p, i, {});
            }
        }
    });
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
