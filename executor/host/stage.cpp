// SPDX-License-Identifier: Apache-2.0
#include "executor/host/stage.hpp"

#include "executor/stage/stage_on_pass.hpp"

namespace rheo::inline v0 {

template class stage_on<host_kernels<fp32>>;
template class stage_on<host_kernels<fp32_i32>>;

}  // namespace rheo::inline v0
