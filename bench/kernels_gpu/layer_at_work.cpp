// SPDX-License-Identifier: Apache-2.0
#include "layer_at_work.hpp"

#include "device_memory.hpp"
#include "rheo/model/state.hpp"

namespace bench {

namespace {

constexpr stage_item first_item{.seed = 1, .step = step_id{0}, .microbatch = microbatch_id{0}};

}  // namespace

layer_at_work::layer_at_work(compute_backend& backend, model_description const& model, layer_id which, microbatch_shape shape)
    : backend_{&backend},
      info_{state_of(model)},
      state_{info_, backend},
      stage_{backend.make_stage(std::span{model.layers}.subspan(at(which), 1), which, shape, 8, state_)},
      item_{stage_->layout()},
      above_{backend.own(), stage_->output_bytes()},
      below_{backend.own(), stage_->input_bytes()}
{
    initialise_layers(state_, which, layer_id{which.value + 1}, 1);
    state_.clear_accumulators();
    fill(item_.input.data(), stage_->input_bytes());
    fill(above_.data(), above_.size());
    auto const vocabulary = static_cast<unsigned>(model.layers.front().ops[0].in_width);
    std::mt19937 random{1};
    for (std::size_t row = 0; row < item_.tokens.size(); ++row) {
        item_.tokens[row] = item_.targets[row] = static_cast<std::int32_t>(random() % vocabulary);
    }
}

void layer_at_work::fill(void* with_numbers, std::size_t size)
{
    auto const values = numbers<bfloat16>(static_cast<std::int64_t>(size / sizeof(bfloat16)));
    check(cudaMemcpyAsync(with_numbers, values.data(), size, cudaMemcpyDeviceToDevice, nullptr), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

void layer_at_work::forward() { stage_->forward(item_, first_item, loss_); }

void layer_at_work::backward()
{
    stage_->reserve(item_);  // the memory that the backward before has given back, as it was
    stage_->backward(item_, first_item, stage_->first_layer(), above_.empty() ? nullptr : above_.data(), below_.empty() ? nullptr : below_.data(),
                     [](use_id) { return true; });
}

}  // namespace bench
