#pragma once
// SPDX-License-Identifier: Apache-2.0

// Execution traces of some ranks, built step by step, and drawn at random so that they end.

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "rheo/trace/chakra/trace_set.hpp"

namespace test {

/// Ids are places in the trace, from 1.
class traced_job {
public:
    explicit traced_job(std::int32_t ranks, std::vector<rheo::chakra_group> groups = {})
    {
        traces.ranks.resize(static_cast<std::size_t>(ranks));
        traces.groups = rheo::with_all_ranks(std::move(groups), ranks);
    }

    std::uint32_t add(std::size_t rank, rheo::chakra_step step, std::vector<std::uint32_t> const& after = {})
    {
        auto& trace = traces.ranks[rank];
        step.id = trace.steps.size() + 1;
        trace.steps.push_back(step);
        trace.dependencies.insert(trace.dependencies.end(), after.begin(), after.end());
        trace.ends.push_back(trace.dependencies.size());
        return static_cast<std::uint32_t>(trace.steps.size() - 1);
    }

    std::uint32_t compute(std::size_t rank, std::uint64_t micros, std::vector<std::uint32_t> const& after = {})
    {
        return add(rank, {.duration_micros = micros, .type = rheo::chakra_node_type::comp}, after);
    }

    std::uint32_t send(std::size_t rank, std::int32_t to, std::int64_t bytes, std::int32_t tag = 0, std::vector<std::uint32_t> const& after = {})
    {
        return add(rank, {.bytes = bytes, .peer = to, .tag = tag, .type = rheo::chakra_node_type::comm_send}, after);
    }

    std::uint32_t receive(std::size_t rank, std::int32_t from, std::int64_t bytes, std::int32_t tag = 0, std::vector<std::uint32_t> const& after = {})
    {
        return add(rank, {.bytes = bytes, .peer = from, .tag = tag, .type = rheo::chakra_node_type::comm_recv}, after);
    }

    std::uint32_t collective(std::size_t rank, std::uint64_t group, rheo::chakra_collective what, std::int64_t bytes,
                             std::vector<std::uint32_t> const& after = {})
    {
        return add(rank, {.bytes = bytes, .group = group, .type = rheo::chakra_node_type::comm_coll, .collective = what}, after);
    }

    rheo::chakra_trace_set traces;
};

/// Each rank computes and reduces in a chain; receives are waited for by what comes next in it, sends by nobody. Everything is drawn in one order
/// for all ranks, so nothing waits for ever. @param with_all whether all ranks together have collectives, too
inline traced_job random_job(std::int32_t ranks, std::vector<rheo::chakra_group> groups, bool with_all, int steps, std::mt19937& draw)
{
    traced_job job{ranks, std::move(groups)};
    auto const below = [&](std::size_t most) { return static_cast<std::size_t>(draw() % most); };
    std::vector<std::vector<std::uint32_t>> last(static_cast<std::size_t>(ranks));  // what the next in the chain waits for
    auto const& all = job.traces.groups;
    for (int step = 0; step < steps; ++step) {
        auto const rank = below(last.size());
        auto const bytes = static_cast<std::int64_t>(1 + below(100'000));
        switch (below(3)) {
        case 0: last[rank] = {job.compute(rank, 1 + below(40), last[rank])}; break;
        case 1: {
            auto const other = (rank + 1 + below(last.size() - 1)) % last.size();
            job.send(rank, static_cast<std::int32_t>(other), bytes, step, last[rank]);
            auto const after = below(2) == 0 ? std::vector<std::uint32_t>{} : last[other];
            last[other].push_back(job.receive(other, static_cast<std::int32_t>(rank), bytes, step, after));
            break;
        }
        default: {
            if (all.size() == 1 && !with_all) {
                break;
            }
            auto const& group = all[with_all ? below(all.size()) : 1 + below(all.size() - 1)];
            auto const what = static_cast<rheo::chakra_collective>(below(rheo::chakra_collective_count));
            for (auto const member : group.ranks) {
                auto const m = static_cast<std::size_t>(member);
                last[m] = {job.collective(m, group.name, what, bytes, last[m])};
            }
        }
        }
    }
    for (std::size_t rank = 0; rank < last.size(); ++rank) {
        job.compute(rank, 1, last[rank]);
    }
    return job;
}

/// Equal copies of a random job, `ranks` apart, that send to the next copy and reduce with the others: place p of all copies is a group, and each
/// copy is one. @param with_roots whether there are collectives with a root, too
inline traced_job copied_job(std::int32_t ranks, std::int32_t copies, bool with_roots, int steps, std::mt19937& draw)
{
    std::vector<rheo::chakra_group> groups;
    for (std::int32_t p = 0; p < ranks; ++p) {
        auto& group = groups.emplace_back(rheo::chakra_group{static_cast<std::uint64_t>(1 + p), {}});
        for (std::int32_t copy = 0; copy < copies; ++copy) {
            group.ranks.push_back(copy * ranks + p);
        }
    }
    for (std::int32_t copy = 0; copy < copies; ++copy) {
        auto& group = groups.emplace_back(rheo::chakra_group{static_cast<std::uint64_t>(1 + ranks + copy), {}});
        for (std::int32_t p = ranks; p-- > 0;) {
            group.ranks.push_back(copy * ranks + p);
        }
    }
    traced_job job{ranks * copies, groups};
    auto const below = [&](std::int32_t most) { return static_cast<std::int32_t>(draw() % static_cast<unsigned>(most)); };
    std::vector<std::vector<std::uint32_t>> last(static_cast<std::size_t>(ranks * copies));
    constexpr rheo::chakra_collective circles[] = {rheo::chakra_collective::all_reduce, rheo::chakra_collective::all_gather,
                                                   rheo::chakra_collective::all_to_all, rheo::chakra_collective::reduce_scatter};
    for (int step = 0; step < steps; ++step) {
        auto const p = below(ranks);
        auto const q = below(ranks);
        auto const ahead = p == q ? 1 : below(2);
        auto const bytes = std::int64_t{1} + below(100'000);
        auto const kind = below(5);
        auto const micros = static_cast<std::uint64_t>(1 + below(40));
        auto const what = circles[below(4)];
        auto const rooted = static_cast<rheo::chakra_collective>(below(rheo::chakra_collective_count));
        auto const from_of = [&](std::int32_t copy) { return static_cast<std::size_t>(copy * ranks + p); };
        auto const to_of = [&](std::int32_t copy) { return static_cast<std::size_t>((copy + ahead) % copies * ranks + q); };
        auto const before = last;
        for (std::int32_t copy = 0; copy < copies; ++copy) {
            auto const from = from_of(copy);
            if (kind == 0) {
                last[from] = {job.compute(from, micros, last[from])};
            } else if (kind == 1) {
                job.send(from, static_cast<std::int32_t>(to_of(copy)), bytes, step, before[from]);
            } else if (kind == 2) {
                last[from] = {job.collective(from, static_cast<std::uint64_t>(1 + p), what, bytes, last[from])};
            } else if (kind >= 3) {
                for (std::int32_t other = 0; other < ranks; ++other) {
                    auto const member = static_cast<std::size_t>(copy * ranks + other);
                    auto const group = kind == 3 ? std::uint64_t{0} : static_cast<std::uint64_t>(1 + ranks + copy);
                    last[member] = {job.collective(member, group, kind == 4 && with_roots ? rooted : what, bytes, last[member])};
                }
            }
        }
        for (std::int32_t copy = 0; copy < copies && kind == 1; ++copy) {  // when all have sent: every copy has its steps in one order
            last[to_of(copy)].push_back(job.receive(to_of(copy), static_cast<std::int32_t>(from_of(copy)), bytes, step, {}));
        }
    }
    return job;
}

}  // namespace test
