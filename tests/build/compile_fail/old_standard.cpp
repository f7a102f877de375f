// SPDX-License-Identifier: Apache-2.0
// expect: rheo is written in C++20: compile with -std=c++20
#ifdef RHEO_MISTAKE
#undef __cplusplus
#define __cplusplus 201703L
#endif
#include "rheo/units/quantity.hpp"
