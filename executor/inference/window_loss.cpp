// SPDX-License-Identifier: Apache-2.0
#include "executor/inference/window_loss.hpp"

#include <algorithm>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

constexpr std::int64_t rows_at_once = 1024;  // of windows that are not the training's own

/// That of the training where windows are as long as its sequences: then they have its bits.
microbatch_shape shape_of_windows(loaded_model const& model, std::int64_t window)
{
    if (auto const& trained = model.config().train.microbatch; window == trained.tokens) {
        return trained;
    }
    return {.sequences = static_cast<int>(std::max<std::int64_t>(1, rows_at_once / window)), .tokens = static_cast<int>(window)};
}

}  // namespace

window_loss::window_loss(loaded_model& model, std::int64_t window) : model_{&model}, shape_{shape_of_windows(model, window)}
{
    expects(window >= 1 && window <= model.context(), "a window lies within the model's context");
    auto const layers = std::span{model.model().layers};
    // Nothing is kept for a backward, except that slices of a sequence attend to those before; levels change no bits.
    std::vector<recompute_level> levels(layers.size(), shape_.slices == 1 ? recompute_level::full : recompute_level::none);
    layers_ = model.backend().make_stage(layers, layer_id{0}, shape_, 1, model.state(), levels, {});
    for (int s = 0; s < shape_.slices; ++s) {
        slices_.push_back(std::make_unique<activation>(layers_->layout()));
        for (int before = 0; before < s; ++before) {
            slices_.back()->before.push_back(slices_[static_cast<std::size_t>(before)].get());
        }
    }
}

void window_loss::add(std::span<token_id const> document, std::int64_t stride)
{
    expects(stride >= 1 && stride <= shape_.tokens, "windows begin within the one before or where it ends");
    auto const last = std::ssize(document) - 1;  // the last token is predicted and predicts nothing
    for (std::int64_t begin = 0, counted = 0; counted < last; begin += stride) {
        put(document, begin, counted);
        counted = std::min<std::int64_t>(begin + shape_.tokens, last);
    }
}

/// @param counts_from the first token whose successor counts
void window_loss::put(std::span<token_id const> document, std::int64_t begin, std::int64_t counts_from)
{
    auto const length = std::int64_t{slice_tokens(shape_)};
    for (std::int64_t i = 0; i < shape_.tokens; ++i) {
        auto& to = *slices_[static_cast<std::size_t>(i / length)];
        auto const row = static_cast<std::size_t>(waiting_ * length + i % length);
        auto const at = begin + i;
        bool const is_there = at + 1 < std::ssize(document);
        to.tokens[row] = is_there ? document[static_cast<std::size_t>(at)] : 0;
        to.targets[row] = is_there && at >= counts_from ? document[static_cast<std::size_t>(at + 1)] : ignored_target;
    }
    if (++waiting_ == shape_.sequences) {
        compute();
    }
}

void window_loss::add_microbatch(std::span<std::vector<std::int32_t> const> tokens, std::span<std::vector<std::int32_t> const> targets)
{
    expects(waiting_ == 0 && tokens.size() == slices_.size() && targets.size() == slices_.size(), "a microbatch has all slices, and is computed alone");
    for (std::size_t s = 0; s < slices_.size(); ++s) {
        slices_[s]->tokens = tokens[s];
        slices_[s]->targets = targets[s];
    }
    compute();
}

void window_loss::compute()
{
    std::vector<loss_sum> losses(layers_->loss_uses().size());
    for (int s = 0; s < shape_.slices; ++s) {
        auto& a = *slices_[static_cast<std::size_t>(s)];
        layers_->forward(a, {.seed = 0, .step = {}, .microbatch = {}, .training = false, .slice = s}, losses);
        std::fill(a.targets.begin(), a.targets.end(), ignored_target);
    }
    model_->backend().wait();
    for (auto const& one : losses) {
        loss_ = loss_ + one;
    }
    waiting_ = 0;
}

loss_sum window_loss::loss()
{
    if (waiting_ > 0) {
        auto const length = slice_tokens(shape_);
        for (auto& a : slices_) {  // windows that are not there
            std::fill(a->targets.begin() + waiting_ * length, a->targets.end(), ignored_target);
        }
        compute();
    }
    return loss_;
}

}  // namespace rheo::inline v0
