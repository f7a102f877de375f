#pragma once
// SPDX-License-Identifier: Apache-2.0

// Libraries that are opened at their first use and not linked: they are hundreds of megabytes, and programs that use no device would load them at every start.

#include <dlfcn.h>

#include <string>

#include "kernels/cuda/error.hpp"

namespace rheo::inline v0::cuda {

/// The library, which stays open. @param file where it was when this was configured, tried where the loader knows no `name`; may be null
/// @param what it is wanted for, the beginning of a sentence @throws error
inline void* opened_library(std::string const& name, char const* file, std::string const& what)
{
    auto* found = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (found == nullptr && file != nullptr) {
        found = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    }
    if (found == nullptr) {
        auto const* const why = dlerror();
        throw error{-1, what + " " + name + ", which cannot be opened: " + (why != nullptr ? why : "no reason is given")};
    }
    return found;
}

}  // namespace rheo::inline v0::cuda
