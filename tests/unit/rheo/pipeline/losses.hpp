#pragma once
// SPDX-License-Identifier: Apache-2.0
// Losses to plan for: a small model, pipelines of it, and all cases up to 18 nodes in which f + 1 pipelines still fit.

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "rheo/pipeline/plan_templates.hpp"
#include "rheo/pipeline/recomposition.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/topology/holdings.hpp"

namespace rheo {

/// A model of equal layers whose first and last share a tensor.
struct job {
    std::vector<seconds> times;
    std::vector<tensor_bytes> tensors;
};

inline job make_job(int layers)
{
    job result;
    for (int l = 0; l < layers; ++l) {
        result.times.push_back(milliseconds(1));
        result.tensors.push_back({{layer_id{l}}, bytes{1000 + l}});
    }
    result.tensors.push_back({{layer_id{0}, layer_id{layers - 1}}, bytes{5000}});
    return result;
}

inline rank_holdings holder(int rank, layer_span span)
{
    rank_holdings result{.rank = rank_id{rank}, .version = {}, .layers = {}, .uses = {}};
    for (auto l = span.begin; l < span.end; ++l) {
        result.layers.push_back(l);
    }
    return result;
}

/// Survivors of pipelines of these sizes, numbered through; `lost[p]` ranks of pipeline p, its last ones, are gone.
inline std::vector<rank_holdings> survivors_of(template_set_value const& ready, std::vector<int> const& sizes, std::vector<int> const& lost)
{
    std::vector<rank_holdings> result;
    int rank = 0;
    for (std::size_t p = 0; p < sizes.size(); ++p) {
        auto const& bounds = template_of_size(ready, sizes[p]).cuts;
        for (int s = 0; s < sizes[p]; ++s, ++rank) {
            if (s < sizes[p] - lost[p]) {
                result.push_back(holder(rank, layers_of(bounds, stage_id{s})));
            }
        }
    }
    return result;
}

inline std::vector<int> sizes_of(recomposition const& answer)
{
    std::vector<int> sizes;
    for (auto const& pipeline : answer.pipelines) {
        sizes.push_back(static_cast<int>(pipeline.stages.size()));
    }
    return sizes;
}

/// The bytes that a rank lacks for these layers.
inline std::int64_t missing(rank_holdings const& rank, layer_span span, std::vector<tensor_bytes> const& tensors)
{
    std::int64_t sum = 0;
    for (auto const& tensor : tensors) {
        bool needed = false;
        bool held = false;
        for (auto const l : tensor.layers) {
            needed = needed || contains(span, l);
            held = held || std::count(rank.layers.begin(), rank.layers.end(), l) > 0;
        }
        sum += needed && !held ? tensor.size.count : 0;
    }
    return sum;
}

/// Pipelines of some sizes, some of whose last ranks are lost.
struct loss_case {
    int smallest;
    int failures;
    template_set_value ready;
    std::vector<int> sizes;
    std::vector<int> lost;
    std::vector<rank_holdings> survivors;
};

/// Visits n0 in 2..5, f in 1..4, every multiset of at least f + 1 sizes in n0 .. N - f n0 with a sum N of at most 18, and every
/// way to lose 1..f ranks that leaves (f + 1) n0; ways that leave the same sorted sizes count once.
inline void for_each_loss(job const& model, std::function<void(loss_case const&)> const& visit)
{
    auto const all = plan_templates(model.times, {1, 18});
    loss_case of;
    auto& [n0, f, ready, sizes, lost, survivors] = of;
    std::function<void(std::set<std::vector<int>>&, std::size_t, int, int)> lose = [&](std::set<std::vector<int>>& seen, std::size_t p, int left, int most) {
        if (p == sizes.size()) {
            std::vector<int> rest;
            for (std::size_t i = 0; i < sizes.size(); ++i) {
                rest.push_back(sizes[i] - lost[i]);
            }
            std::sort(rest.begin(), rest.end());
            if (left < most && seen.insert(rest).second) {
                survivors = survivors_of(ready, sizes, lost);
                visit(of);
            }
            return;
        }
        for (int n = 0; n <= std::min(left, sizes[p]); ++n) {
            lost[p] = n;
            lose(seen, p + 1, left - n, most);
        }
        lost[p] = 0;
    };
    for (n0 = 2; n0 <= 5; ++n0) {
        for (f = 1; f <= 4; ++f) {
            for (int nodes = (f + 1) * n0 + 1; nodes <= 18; ++nodes) {
                ready.templates.assign(all.templates.begin() + n0 - 1, all.templates.begin() + nodes - f * n0);
                std::function<void(int, int)> const compose = [&](int left, int least) {
                    if (left == 0) {
                        if (static_cast<int>(sizes.size()) >= f + 1) {
                            lost.assign(sizes.size(), 0);
                            std::set<std::vector<int>> seen;
                            auto const most = std::min(f, nodes - (f + 1) * n0);
                            lose(seen, 0, most, most);
                        }
                        return;
                    }
                    for (int n = least; n <= std::min(left, nodes - f * n0); ++n) {
                        sizes.push_back(n);
                        compose(left - n, n);
                        sizes.pop_back();
                    }
                };
                compose(nodes, n0);
            }
        }
    }
}

}  // namespace rheo
