// SPDX-License-Identifier: Apache-2.0
#include "executor/inference/generate.hpp"

#include <algorithm>
#include <list>
#include <memory>

#include <fmt/format.h>

#include "rheo/units/exit_error.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

struct active_sequence {
    std::size_t prompt;
    std::vector<token_id> tokens;  ///< of the prompt, then those that were generated
    cached_sequence computed;
};

void check(std::span<std::vector<token_id> const> prompts, std::int64_t more, std::int64_t context)
{
    for (std::size_t p = 0; p < prompts.size(); ++p) {
        expects(!prompts[p].empty(), "a prompt has at least one token");
        if (std::ssize(prompts[p]) + more > context) {
            throw exit_error{exit_code::usage, fmt::format("prompt {} has {} tokens, with the {} that are to follow {}: the model's context is {}", p + 1,
                                                           prompts[p].size(), more, std::ssize(prompts[p]) + more, context)};
        }
    }
}

}  // namespace

std::vector<generated_tokens> generate(incremental_model& with, std::span<std::vector<token_id> const> prompts, generation_options const& options)
{
    check(prompts, options.tokens, with.model().context());
    std::vector<generated_tokens> made(prompts.size());
    std::list<active_sequence> active;
    std::size_t next = 0;
    for (;;) {
        for (; next < prompts.size() && active.size() < std::max<std::size_t>(1, options.batch) && options.tokens > 0; ++next) {
            active.push_back({next, prompts[next], cached_sequence{with.model()}});
        }
        if (active.empty()) {
            return made;
        }
        std::vector<continuation> all;
        for (auto& one : active) {
            one.computed.tokens = options.cached ? one.computed.tokens : 0;
            auto const rest = std::span<token_id const>{one.tokens}.subspan(static_cast<std::size_t>(one.computed.tokens));
            all.push_back({&one.computed, rest, std::ssize(rest) - 1});
        }
        std::vector<token_id> drawn(all.size());
        std::vector<active_sequence*> of(all.size());
        std::transform(active.begin(), active.end(), of.begin(), [](auto& one) { return &one; });
        with.forward(all, [&](std::size_t which, std::int64_t, std::span<float const> logits) {
            auto const& one = *of[which];
            auto const word = sampling_word(options.seed, static_cast<std::int64_t>(one.prompt), std::ssize(made[one.prompt].tokens));
            drawn[which] = sampled_token(logits, options.how, word);
        });
        with.share(drawn);
        for (std::size_t i = 0; i < of.size(); ++i) {
            auto& to = made[of[i]->prompt];
            to.ended = drawn[i] == options.end;
            if (!to.ended) {
                to.tokens.push_back(drawn[i]);
                of[i]->tokens.push_back(drawn[i]);
                if (options.each) {
                    options.each(of[i]->prompt, drawn[i]);
                }
            }
        }
        active.remove_if([&](auto const& one) { return made[one.prompt].ended || std::ssize(made[one.prompt].tokens) == options.tokens; });
    }
}

}  // namespace rheo::inline v0
