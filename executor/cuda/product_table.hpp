#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a whole model wants of libraries. The table of products' algorithms as text: ranks that have the same compute a product with the same bits. One rank chooses
// for all, and a resumed job keeps what the run began with. The shapes of attention, whose plans follow from cuDNN's version and the device.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/attention/attention_cudnn.hpp"
#include "kernels/cuda/product.hpp"
#include "rheo/model/layer.hpp"
#include "rheo/tensor/shape.hpp"

namespace rheo::inline v0::cuda {

/// Of the forwards and backwards of these layers, in order and once each.
std::vector<product_shape> products_of(std::span<layer_description const> layers, microbatch_shape shape, dtype storage);

/// Bytes of the largest workspace that they take: counters, what an algorithm may want, and a panel of the gradient of a weight.
std::int64_t workspace_of_products(std::span<layer_description const> layers, microbatch_shape shape);

/// Of attention in these layers, once each. @throws exit_error for what cuDNN is not asked for: dropout, and slices of sequences
std::vector<attention_shape> attentions_of(std::span<layer_description const> layers, microbatch_shape shape);

/// "15 products, <digest>: " and twelve numbers in hexadecimal digits for each.
std::string to_text(std::span<product_choice const> table);
/// @throws exit_error when it is not a text of a table
std::vector<product_choice> table_from(std::string_view text);

}  // namespace rheo::inline v0::cuda
