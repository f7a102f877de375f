#pragma once
// SPDX-License-Identifier: Apache-2.0

// A layer with memory of its own for every slot, gradient and sum, so that a pass over it moves what it moves in a training.

#include <map>

#include "device_memory.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/product.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/linear/linear.hpp"
#include "rheo/model/fusion.hpp"

namespace bench {

struct sequences {
    std::int64_t batch;
    std::int64_t length;
    std::int64_t rows() const { return batch * length; }
};

template <class T>
class layer_on_device {
public:
    layer_on_device(layer_description const& layer, sequences of);

    void forward();
    void backward();
    layer_description const& description() const { return layer_; }

private:
    static constexpr auto policy = cuda::policy_storing<T>;

    struct kept {
        memory<T> value;
        exact_memory sum;
    };

    void forward(op const& o);
    void backward(op const& o);
    T* slot(int number) const { return slots_[static_cast<std::size_t>(number)].data(); }
    T* gradient(int number) const { return gradients_[static_cast<std::size_t>(number)].data(); }
    T const* parameter(op const& o, std::size_t i) const { return o.parameters[i] == no_parameter ? nullptr : parameters_[static_cast<std::size_t>(o.parameters[i])].value.data(); }
    gradient_sum_of<dtype::i64> sum(op const& o, std::size_t i) const
    {
        return o.parameters[i] == no_parameter ? gradient_sum_of<dtype::i64>{} : parameters_[static_cast<std::size_t>(o.parameters[i])].sum.target();
    }
    float* saved(op const& o) const { return saved_.at(o.id.value).data(); }
    dropout drop(op const& o) const { return {.probability = o.dropout_per_mille / 1000.0, .key = {.seed = 1, .op = o.id}}; }
    weight_order order(op const& o) const { return o.kind == op_kind::unembed ? weight_order::out_in : weight_order::in_out; }

    layer_description layer_;
    sequences of_;
    std::vector<memory<T>> slots_, gradients_;
    std::vector<kept> parameters_;
    std::map<int, memory<float>> saved_;
    memory<float> turns_;
    memory<std::int32_t> tokens_;
    token_order order_;
    memory<std::int32_t> order_rows_, order_first_, order_tokens_;
    memory<loss_sum> loss_{std::vector<loss_sum>(1)};
    memory<char> bytes_;
    cuda::workspace room_;
    cuda::products by_;
};

}  // namespace bench
