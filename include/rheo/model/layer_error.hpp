#pragma once
// SPDX-License-Identifier: Apache-2.0

// Why a layer cannot run, as one sentence: an operation that does not fit the slots and parameters that the layer declares would read and
// write beyond them, and one whose result is never read, or whose input another one reads in a way that cannot be shared, would train
// with wrong gradients. The compiler refuses a model type with it (model.hpp), and `run` a model value.

#include "rheo/model/detail/layer_dataflow.hpp"
#include "rheo/model/detail/layer_fit.hpp"
#include "rheo/model/detail/layer_judge.hpp"
#include "rheo/model/layer.hpp"

namespace rheo::inline v0 {

/// Empty: there is none.
using layer_error = detail::layer_sentence;

/// What is wrong with the layer's operations, against its slots and parameters and in their order; empty: nothing. Cost: operations x parameters.
template <class OnlyWhenCalled = void>
constexpr layer_error error_of(layer_description const& layer)
{
    layer_error fault{};
    static_cast<void>(detail::layer_fit<>{{layer, fault}}.is_wrong() || detail::layer_dataflow<>{{layer, fault}}.is_wrong());
    return fault;
}

}  // namespace rheo::inline v0
