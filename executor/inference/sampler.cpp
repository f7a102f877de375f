// SPDX-License-Identifier: Apache-2.0
#include "executor/inference/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "rheo/tensor/random.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

/// The likelihood of each token against the most likely one.
std::vector<double> weights_of(std::span<float const> logits, double temperature)
{
    auto const top = *std::max_element(logits.begin(), logits.end());
    std::vector<double> weights;
    weights.reserve(logits.size());
    for (auto const logit : logits) {
        weights.push_back(std::exp((logit - top) / temperature));
    }
    return weights;
}

std::vector<token_id> candidates_by(std::span<double const> weights, sampling const& how)
{
    std::vector<token_id> likeliest(weights.size());
    std::iota(likeliest.begin(), likeliest.end(), token_id{0});
    auto const is_likelier = [&](token_id a, token_id b) {
        auto const of_a = weights[static_cast<std::size_t>(a)];
        auto const of_b = weights[static_cast<std::size_t>(b)];
        return of_a != of_b ? of_a > of_b : a < b;
    };
    if (how.top_k > 0 && static_cast<std::size_t>(how.top_k) < likeliest.size()) {
        std::nth_element(likeliest.begin(), likeliest.begin() + how.top_k, likeliest.end(), is_likelier);
        likeliest.resize(static_cast<std::size_t>(how.top_k));
    }
    if (how.top_p < 1) {
        std::sort(likeliest.begin(), likeliest.end(), is_likelier);
        auto const weight_of = [&](double sum, token_id t) { return sum + weights[static_cast<std::size_t>(t)]; };
        auto const wanted = how.top_p * std::accumulate(likeliest.begin(), likeliest.end(), 0.0, weight_of);
        double sum = 0;
        std::size_t kept = 0;
        while (kept < likeliest.size() && (kept == 0 || sum < wanted)) {
            sum = weight_of(sum, likeliest[kept++]);
        }
        likeliest.resize(kept);
    }
    std::sort(likeliest.begin(), likeliest.end());
    return likeliest;
}

}  // namespace

token_id most_likely(std::span<float const> logits)
{
    expects(!logits.empty(), "a token is chosen among at least one");
    return static_cast<token_id>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

std::vector<token_id> candidates(std::span<float const> logits, sampling const& how) { return candidates_by(weights_of(logits, how.temperature), how); }

token_id sampled_token(std::span<float const> logits, sampling const& how, std::uint32_t word)
{
    if (how.temperature == 0) {
        return most_likely(logits);
    }
    expects(how.temperature > 0 && how.top_p > 0 && how.top_p <= 1 && how.top_k >= 0, "a sampling has a temperature and parts of the distribution");
    auto const weights = weights_of(logits, how.temperature);
    auto const among = candidates_by(weights, how);
    double total = 0;
    for (auto const t : among) {
        total += weights[static_cast<std::size_t>(t)];
    }
    double left = total * word * 0x1p-32;
    for (auto const t : among) {
        auto const weight = weights[static_cast<std::size_t>(t)];
        if (left < weight) {
            return t;
        }
        left -= weight;
    }
    return among.back();
}

std::uint32_t sampling_word(std::uint64_t seed, std::int64_t sequence, std::int64_t position)
{
    // No operation of any step draws from step -2.
    auto const stream = stream_of({.seed = seed, .step = step_id{-2}, .microbatch = microbatch_id{static_cast<std::int32_t>(sequence)}});
    return random_word(stream, static_cast<std::uint64_t>(position));
}

}  // namespace rheo::inline v0
