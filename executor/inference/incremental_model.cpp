// SPDX-License-Identifier: Apache-2.0
#include "executor/inference/incremental_model.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "rheo/units/exit_error.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

std::unique_ptr<stage> stage_of_rows(loaded_model& model, std::span<layer_description const> layers, layer_id first, int rows, recompute_level level)
{
    std::vector<recompute_level> const levels(layers.size(), level);
    return model.backend().make_stage(layers, first, {.sequences = rows, .tokens = 1}, 1, model.state(), levels, {});
}

stage_item item_of(std::span<sequence_run const> runs) { return {.seed = 0, .step = {}, .microbatch = {}, .training = false, .runs = runs}; }

}  // namespace

void expect_within_context(std::int64_t tokens, std::int64_t context)
{
    if (tokens > context) {
        throw exit_error{exit_code::usage, fmt::format("a sequence of {} tokens goes beyond the model's context of {}", tokens, context)};
    }
}

incremental_model::incremental_model(loaded_model& model, int rows, int logit_rows, model_part part) : model_{&model}, part_{std::move(part)}
{
    auto const layers = std::span{model.model().layers};
    expects(layers.size() >= 2 && layers.front().shards == 1, "a model is computed in rows with whole layers, the last of which gives logits");
    auto const last = layers.size() - 1;
    // Nothing is kept for a backward: the slots of a layer share memory with those of the others.
    auto const own = model.layers();
    body_ = stage_of_rows(model, layers.subspan(at(own.begin), static_cast<std::size_t>(size(own))), own.begin, rows, recompute_level::full);
    rows_ = std::make_unique<activation>(body_->layout());
    body_->reserve(*rows_);
    if (part_.is_last()) {
        head_ = stage_of_rows(model, layers.subspan(last), layer_id{static_cast<int>(last)}, logit_rows, recompute_level::none);
        heads_ = std::make_unique<activation>(head_->layout());
        head_->reserve(*heads_);
        std::fill(heads_->targets.begin(), heads_->targets.end(), ignored_target);
    }
}

void incremental_model::forward(std::span<continuation const> all, logits_receiver const& receive)
{
    std::int64_t longest = 0;
    for (auto const& one : all) {
        longest = std::max(longest, one.sequence->tokens + std::ssize(one.tokens));
    }
    expect_within_context(longest, model_->context());
    if (longest > reached_) {
        reached_ = std::min(model_->context(), std::max(longest, 2 * reached_));
        body_->reach(reached_);
    }
    std::vector<sequence_run> runs;
    std::vector<wanted_row> wanted;
    std::int64_t filled = 0;
    auto const flush = [&] {
        if (filled > 0) {
            pass(runs, wanted, receive);
        }
        runs.clear();
        wanted.clear();
        filled = 0;
    };
    for (std::size_t which = 0; which < all.size(); ++which) {
        auto const& [sequence, tokens, logits_from] = all[which];
        for (std::int64_t done = 0; done < std::ssize(tokens);) {
            auto const some = std::min(body_->rows() - filled, std::ssize(tokens) - done);
            runs.push_back({.rows = some, .first = sequence->tokens, .cache = &sequence->cache});
            std::copy_n(tokens.begin() + done, some, rows_->tokens.begin() + filled);
            for (auto i = std::max(done, logits_from); i < done + some; ++i) {
                wanted.push_back({which, i, filled + i - done});
            }
            sequence->tokens += some;
            done += some;
            filled += some;
            if (filled == body_->rows()) {
                flush();
            }
        }
    }
    flush();
}

void incremental_model::pass(std::span<sequence_run const> runs, std::span<wanted_row const> wanted, logits_receiver const& receive)
{
    loss_sum unused;
    auto const count = static_cast<std::size_t>(rows_of(runs));
    auto const of_row = [&](std::size_t all) { return all / static_cast<std::size_t>(body_->rows()); };
    if (part_.receive) {
        part_.receive({static_cast<std::byte*>(body_->input(*rows_)), count * of_row(body_->input_bytes())});
    }
    body_->forward(*rows_, item_of(runs), unused);
    auto const row_bytes = of_row(body_->output_bytes());
    auto const* const output = static_cast<std::byte const*>(body_->output(*rows_));
    if (head_ == nullptr) {
        return part_.send({output, count * row_bytes});
    }
    auto* const input = static_cast<std::byte*>(head_->input(*heads_));
    while (!wanted.empty()) {
        auto const some = wanted.first(std::min(wanted.size(), static_cast<std::size_t>(head_->rows())));
        for (std::size_t i = 0; i < some.size(); ++i) {
            std::memcpy(input + i * row_bytes, output + static_cast<std::size_t>(some[i].row) * row_bytes, row_bytes);
        }
        sequence_run const rows{.rows = std::ssize(some)};
        head_->forward(*heads_, item_of({&rows, 1}), unused);
        for (std::size_t i = 0; i < some.size(); ++i) {
            receive(some[i].which, some[i].index, head_->logits(*heads_, static_cast<std::int64_t>(i)));
        }
        wanted = wanted.subspan(some.size());
    }
}

}  // namespace rheo::inline v0
