#pragma once
// SPDX-License-Identifier: Apache-2.0

// Everything of tensor/: shapes, dtypes, boxes, the collection, exact sums, randomness, the digest, the grid of shards.

#include "rheo/tensor/bfloat16.hpp"
#include "rheo/tensor/box.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/exact_row_sum.hpp"
#include "rheo/tensor/exact_sum.hpp"
#include "rheo/tensor/fixed_vector.hpp"
#include "rheo/tensor/float16.hpp"
#include "rheo/tensor/nd_box.hpp"
#include "rheo/tensor/random.hpp"
#include "rheo/tensor/shape.hpp"
#include "rheo/tensor/shard_grid.hpp"
