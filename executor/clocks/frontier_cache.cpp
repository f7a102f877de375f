// SPDX-License-Identifier: Apache-2.0
#include "executor/clocks/frontier_cache.hpp"

#include <chrono>
#include <tuple>
#include <utility>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "executor/os/background_thread.hpp"

namespace rheo::inline v0 {

frontier_cache::~frontier_cache() { give_up(); }

void frontier_cache::give_up()
{
    ahead_ends_.request_stop();
    if (ahead_.joinable()) {
        ahead_.join();
    }
}

namespace {

/// What a map has for a key, else what is made now without the lock: of two threads that make the same, the first one's stays.
template <class Map, class Make>
std::pair<typename Map::mapped_type const*, bool> find_or_make(Map& map, std::mutex& mutex, typename Map::key_type const& key, Make make)
{
    {
        std::lock_guard const lock{mutex};
        if (auto const there = map.find(key); there != map.end()) {
            return {&there->second, false};
        }
    }
    auto made = make();
    std::lock_guard const lock{mutex};
    auto const [place, fresh] = map.try_emplace(key, std::move(made));
    return {&place->second, fresh};
}

/// The clocks of pipelines, or why one of them has no frontier.
result<chosen_clocks> choose_clocks_if_made(std::vector<result<pipeline_frontier> const*> const& made, clock_request const& request)
{
    std::vector<pipeline_frontier const*> all;
    for (auto const* one : made) {
        if (!*one) {
            return failure{one->error()};
        }
        all.push_back(&**one);
    }
    return choose_clocks(all, request);
}

}  // namespace

frontier_cache::found frontier_cache::clocks_of(plan const& p, std::span<slow_rank const> slow, std::stop_token ends)
{
    found there{};
    std::vector<pipeline_frontier_key> keys;
    std::vector<result<pipeline_frontier> const*> all;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        if (ends.stop_requested()) {
            return there;
        }
        keys.push_back(frontier_key_of(p, i, slow, exchanges_.grid));
        auto const [frontier, made] =
            find_or_make(frontiers_, mutex_, keys.back(), [&] { return make_pipeline_frontier(p, i, layers_, request_, slow, exchanges_); });
        there.frontiers += made ? 1 : 0;
        all.push_back(frontier);
    }
    if (!ends.stop_requested()) {
        std::tie(there.clocks, there.searched) = find_or_make(clocks_, mutex_, keys, [&] { return choose_clocks_if_made(all, request_); });
    }
    return there;
}

result<chosen_clocks> frontier_cache::choose(plan const& p, std::span<slow_rank const> slow)
{
    auto const there = clocks_of(p, slow, {});
    at_once_ += there.frontiers;
    searches_ += there.searched ? 1 : 0;
    return *there.clocks;
}

void frontier_cache::precompute(std::function<std::optional<plan>()> next)
{
    give_up();
    done_.reset();
    ahead_ends_ = std::stop_source{};
    ahead_ = background_thread([this, next = std::move(next), ends = ahead_ends_.get_token()] {
        ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 19);  // of this thread alone: training goes first
        auto const begun = std::chrono::steady_clock::now();
        precomputed_clocks done;
        while (!ends.stop_requested()) {
            auto const p = next();
            if (!p) {
                done.took = {std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count()};
                std::lock_guard const lock{mutex_};
                done_ = done;
                return;
            }
            ++done.plans;
            done.frontiers += clocks_of(*p, {}, ends).frontiers;
        }
    });
}

std::optional<precomputed_clocks> frontier_cache::take_precomputed()
{
    std::lock_guard const lock{mutex_};
    return std::exchange(done_, std::nullopt);
}

std::size_t frontier_cache::made()
{
    if (ahead_.joinable()) {
        ahead_.join();
    }
    std::lock_guard const lock{mutex_};
    return frontiers_.size();
}

}  // namespace rheo::inline v0
