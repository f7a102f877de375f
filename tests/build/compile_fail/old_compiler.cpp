// SPDX-License-Identifier: Apache-2.0
// expect: rheo needs
// expect: or later
#ifdef RHEO_MISTAKE
#ifdef __clang__
#undef __clang_major__
#define __clang_major__ 15
#else
#undef __GNUC__
#define __GNUC__ 11
#endif
#endif
#include "rheo/version.hpp"
