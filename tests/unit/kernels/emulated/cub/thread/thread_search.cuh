#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the kernels use of cub/thread/thread_search.cuh, for a C++ compiler.

#include <algorithm>

namespace cub {

template <class Iterator, class Offset, class T>
Offset UpperBound(Iterator input, Offset count, T value)
{
    return static_cast<Offset>(std::upper_bound(input, input + count, value) - input);
}

}  // namespace cub
