#pragma once
// SPDX-License-Identifier: Apache-2.0

// A model: a list of layers, as a type (`model<embedding<s>, repeat<12, transformer_block<s>>, ...>`)
// and as the value that the type describes. Everything that plans, proves or runs takes the value, so
// models read from a file and models written as types meet here.

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "rheo/model/fusion.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/layer.hpp"
#include "rheo/model/layer_error.hpp"
#include "rheo/model/llama.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct model_description {
    std::vector<layer_description> layers;

    friend constexpr bool operator==(model_description const&, model_description const&) = default;
};

template <std::size_t Count, layer Layer>
struct repeat {};

/// Why a list of layers is no model, and where.
struct model_error {
    enum class kind { none, empty, does_not_read_tokens, widths_differ, does_not_end_in_loss, layer_does_not_fit, loss_is_narrow } error = kind::none;
    int layer = 0;         ///< the culprit
    int gives = 0;         ///< columns that the layer before it writes; of a narrow loss: tokens that the first layer reads
    int takes = 0;         ///< columns that it reads
    layer_error within{};  ///< what does not fit within the layer

    friend constexpr bool operator==(model_error const&, model_error const&) = default;
};

namespace detail {

/// How the layers fit each other.
template <class OnlyWhenCalled = void>
constexpr model_error check_neighbours(model_description const& model)
{
    using enum model_error::kind;
    if (model.layers.empty()) {
        return {.error = empty};
    }
    if (model.layers.front().in_width != 0) {
        return {.error = does_not_read_tokens, .takes = model.layers.front().in_width};
    }
    for (std::size_t i = 1; i < model.layers.size(); ++i) {
        auto const gives = model.layers[i - 1].out_width;
        auto const takes = model.layers[i].in_width;
        if (gives != takes || takes == 0) {
            return {.error = widths_differ, .layer = static_cast<int>(i), .gives = gives, .takes = takes};
        }
    }
    auto const last = static_cast<int>(model.layers.size()) - 1;
    if (model.layers.back().out_width != 0) {
        return {.error = does_not_end_in_loss, .layer = last, .gives = model.layers.back().out_width};
    }
    auto const& first_ops = model.layers.front().ops;
    auto const& last_ops = model.layers.back().ops;
    if (!first_ops.empty() && !last_ops.empty() && last_ops.back().in_width < first_ops[0].in_width) {
        return {.error = loss_is_narrow, .layer = last, .gives = first_ops[0].in_width, .takes = last_ops.back().in_width};
    }
    return {};
}

}  // namespace detail

/// Checks that the operations of each layer fit it, the first layer reads tokens, each takes what the one before it gives, and the
/// last ends in the loss of as many tokens. Cost: one pass.
template <class OnlyWhenCalled = void>
constexpr model_error check(model_description const& model)
{
    if (auto const fault = detail::check_neighbours(model); fault.error != model_error::kind::none) {
        return fault;
    }
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        if (auto const within = error_of(model.layers[i]); !within.empty()) {
            return {.error = model_error::kind::layer_does_not_fit, .layer = static_cast<int>(i), .within = within};
        }
    }
    return {};
}

/// The fault as a sentence; empty when there is none.
inline std::string to_string(model_error fault)
{
    auto const where = "layer " + std::to_string(fault.layer);
    switch (fault.error) {
    case model_error::kind::none: return {};
    case model_error::kind::empty: return "a model needs at least one layer";
    case model_error::kind::does_not_read_tokens: return where + " must read tokens but takes " + std::to_string(fault.takes) + " columns";
    case model_error::kind::widths_differ:
        if (fault.takes == 0) {
            return where + " reads tokens but is not the first one";
        }
        if (fault.gives == 0) {
            return "layer " + std::to_string(fault.layer - 1) + " ends in the loss but is not the last one";
        }
        return where + " takes " + std::to_string(fault.takes) + " columns but the layer before it gives " + std::to_string(fault.gives);
    case model_error::kind::does_not_end_in_loss: return where + " is the last one and must end in the loss";
    case model_error::kind::layer_does_not_fit: return where + ": " + std::string{fault.within.view()};
    case model_error::kind::loss_is_narrow:
        return where + " has logits of " + std::to_string(fault.takes) + " tokens, but the first layer reads " + std::to_string(fault.gives);
    }
    return {};
}

namespace detail {

/// Numbers layers of the same prefix, which gives `#` in parameter names its value.
template <class OnlyWhenCalled = void>
constexpr void append(model_description& model, layer_description layer)
{
    layer.ordinal = 0;
    for (auto const& earlier : model.layers) {
        if (earlier.prefix == layer.prefix) {
            ++layer.ordinal;
        }
    }
    model.layers.push_back(layer);
}

template <class Part>
struct appends {
    static constexpr void to(model_description& model) { append(model, Part::describe()); }
};

template <std::size_t Count, class Layer>
struct appends<repeat<Count, Layer>> {
    static constexpr void to(model_description& model)
    {
        for (std::size_t i = 0; i < Count; ++i) {
            append(model, Layer::describe());
        }
    }
};

template <model_error::kind What, int Layer, int Gives, int Takes>
struct neighbours {
    static_assert(What != model_error::kind::widths_differ,
                  "rheo: two neighbouring layers of the model do not fit: the second takes another number of columns than "
                  "the first gives (layer, gives and takes are this check's last three parameters)");
    static_assert(What != model_error::kind::does_not_read_tokens, "rheo: the first layer of a model must read tokens (an embedding)");
    static_assert(What != model_error::kind::does_not_end_in_loss, "rheo: the last layer of a model must end in the loss (a classifier)");
    static_assert(What != model_error::kind::empty, "rheo: a model needs at least one layer");
    static_assert(What != model_error::kind::loss_is_narrow,
                  "rheo: the loss of a model must tell all tokens apart that its first layer reads (these are this check's third parameter, "
                  "those its last)");
};

template <stated Fault>
struct operations_fit {
    static_assert(
        Fault.empty(),
        "rheo: an operation does not fit the slots and parameters that its layer declares; which one and why are the words of this check's parameter");
};

template <class Layer>
concept constant_layer = layer<Layer> && requires { typename std::bool_constant<(static_cast<void>(Layer::describe()), true)>; };

/// The fault of a layer type; nothing where that cannot be asked, so that the sentence about it is the first error.
template <class Layer>
constexpr layer_error fault_of_layer()
{
    if constexpr (layer<Layer>) {
        return error_of(Layer::describe());
    } else {
        return {};
    }
}

/// A layer type, looked at once however often a model has it.
template <class Layer>
struct layer_check {
    static_assert(layer<Layer>, "rheo: a layer of a model needs a static function describe() that returns a layer_description");
    static_assert(!layer<Layer> || constant_layer<Layer>,
                  "rheo: the compiler cannot call describe() of this layer: it must be constexpr, call nothing that is not, and make at most 16 "
                  "operations, 16 slots and 16 parameters");
    static constexpr layer_error fault = fault_of_layer<Layer>();
    static constexpr operations_fit<stated<fault.size>{fault.letters}> verdict{};
};
template <std::size_t Count, class Layer>
struct layer_check<repeat<Count, Layer>> : layer_check<Layer> {};

template <class... Layers>
constexpr model_description list_layers()
{
    model_description result;
    (appends<Layers>::to(result), ...);
    return result;
}

/// A function of its own, so that the list is gone when the template argument is there (clang 16 asks for that).
template <class... Layers>
constexpr model_error fault_of_layers()
{
    auto const listed = list_layers<Layers...>();
    return check_neighbours(listed);
}

template <class... Layers>
struct model_check {
    static constexpr model_error fault = fault_of_layers<Layers...>();
    static constexpr neighbours<fault.error, fault.layer, fault.gives, fault.takes> verdict{};
};

}  // namespace detail

/// A model as a type. Layers that do not fit each other do not compile.
template <class... Layers>
struct model {
    static constexpr model_description describe()
    {
        (static_cast<void>(detail::layer_check<Layers>::verdict), ...);
        static_cast<void>(detail::model_check<Layers...>::verdict);
        return detail::list_layers<Layers...>();
    }
};

template <class Model>
concept described_model = requires { Model::describe(); };

/// The value of a model type.
template <described_model Model>
constexpr model_description describe()
{
    return Model::describe();
}

/// A GPT of a shape known at run time; the same value as the type of that shape.
template <class OnlyWhenCalled = void>
constexpr model_description gpt_model(gpt_shape shape)
{
    expects(shape.vocabulary > 0 && shape.context > 0 && shape.width > 0 && shape.heads > 0 && shape.blocks >= 0,
            "a GPT's vocabulary, context, width and heads must be positive");
    expects(shape.width % shape.heads == 0, "a GPT's width must be a multiple of its number of heads");
    expects(shape.dropout_per_mille >= 0 && shape.dropout_per_mille < 1000, "dropout must be at least 0 and below 1");
    expects(shape.norm_epsilon_e9 > 0, "a GPT's epsilon of the norms must be above 0");
    model_description result;
    detail::append(result, embedding_layer(shape));
    for (int i = 0; i < shape.blocks; ++i) {
        detail::append(result, block_layer(shape));
    }
    detail::append(result, classifier_layer(shape));
    return result;
}

/// A Llama of a shape known at run time; the same value as the type of that shape.
template <class OnlyWhenCalled = void>
constexpr model_description llama_model(llama_shape shape)
{
    expects(shape.vocabulary > 0 && shape.context > 0 && shape.width > 0 && shape.heads > 0 && shape.blocks >= 0 && shape.mlp_width > 0,
            "a Llama's vocabulary, context, width, heads and width of the MLP must be positive");
    expects(shape.head_dim >= 0 && (shape.head_dim != 0 || shape.width % shape.heads == 0) && head_dim_of(shape) > 0 && head_dim_of(shape) % 2 == 0,
            "a Llama's heads must be an even number wide, by default its width divided by its number of heads");
    expects(shape.kv_heads > 0 && shape.heads % shape.kv_heads == 0, "a Llama's heads of keys and values must divide its heads");
    expects(shape.rope_base >= 1, "a Llama's base of the rotary embedding must be at least 1");
    expects(error_of(shape.scaling).empty(), "a Llama's scaling of the rotary embedding must have the factors of its kind");
    expects(shape.norm_epsilon_e9 > 0, "a Llama's epsilon of the norms must be above 0");
    model_description result;
    detail::append(result, llama_embedding_layer(shape));
    for (int i = 0; i < shape.blocks; ++i) {
        detail::append(result, llama_block_layer(shape));
    }
    detail::append(result, llama_classifier_layer(shape));
    return result;
}

/// The model with every layer's operations fused.
template <class OnlyWhenCalled = void>
constexpr model_description fused(model_description model)
{
    for (auto& layer : model.layers) {
        layer = fused(layer);
    }
    return model;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template model_description llama_model<>(llama_shape);
#endif

}  // namespace rheo::inline v0
