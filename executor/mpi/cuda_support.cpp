// SPDX-License-Identifier: Apache-2.0
#include "executor/mpi/cuda_support.hpp"

#include <dlfcn.h>

namespace rheo::inline v0::mpi {

bool has_cuda_support()
{
    auto* const query = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "MPIX_Query_cuda_support"));
    return query != nullptr && query() == 1;
}

}  // namespace rheo::inline v0::mpi
