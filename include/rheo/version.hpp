#pragma once
// SPDX-License-Identifier: Apache-2.0

// The version of rheo, read by the build, too; and the oldest compilers that can read the library.

#define RHEO_VERSION_MAJOR 0
#define RHEO_VERSION_MINOR 1
#define RHEO_VERSION_PATCH 0

#define RHEO_DETAIL_QUOTED_(x) #x
#define RHEO_DETAIL_QUOTED(x) RHEO_DETAIL_QUOTED_(x)
/// "0.1.0"
#define RHEO_VERSION RHEO_DETAIL_QUOTED(RHEO_VERSION_MAJOR) "." RHEO_DETAIL_QUOTED(RHEO_VERSION_MINOR) "." RHEO_DETAIL_QUOTED(RHEO_VERSION_PATCH)

#if __cplusplus < 202002L
#error "rheo is written in C++20: compile with -std=c++20, or link the CMake target rheo::library, which asks for it"
#elif defined(__clang__)
#if __clang_major__ < 16 && !defined(__apple_build_version__)
#error "rheo needs clang 16 or later"
#endif
#elif defined(__GNUC__) && __GNUC__ < 12
#error "rheo needs g++ 12 or later"
#endif
#if defined(__CUDACC_VER_MAJOR__) && (__CUDACC_VER_MAJOR__ < 12 || (__CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ < 4))
#error "rheo needs nvcc 12.4 or later"
#endif
